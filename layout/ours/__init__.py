"""Formats that only this program writes: what is staged, what is under way, what was repaired, what was run."""
