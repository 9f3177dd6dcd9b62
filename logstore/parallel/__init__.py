"""Processes and threads, and when they pay."""
