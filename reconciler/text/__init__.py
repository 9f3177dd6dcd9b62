"""Numbers, times and rows for people."""
