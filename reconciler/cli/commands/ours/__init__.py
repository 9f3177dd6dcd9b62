"""Verbs for log dirs of our own, never for a real broker's: one file a verb."""
