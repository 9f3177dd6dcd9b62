"""Verdicts that change: what changed on the disks and in the metadata, compared again."""
