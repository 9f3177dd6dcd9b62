"""Deletes for ever what is staged and due, throttled, resumable, and never anything else."""
