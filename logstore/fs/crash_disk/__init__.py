"""A disk that loses what was not synced: one history of changes, and what a crash may leave of it."""
