"""Moves a replica aside with its own way back, lists what is staged, and brings it back."""
