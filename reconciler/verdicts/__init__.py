"""The case table, and the one comparison of a disk with metadata in Python."""
