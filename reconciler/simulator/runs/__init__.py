"""Whole clusters and their histories: by a test, from a seed, or written by hand."""
