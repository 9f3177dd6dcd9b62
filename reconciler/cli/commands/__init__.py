"""What each command of ``logstore`` does, and how it ends: one verb to a file."""
