"""What each command of ``logstore`` takes, without loading what it does: one verb to a file."""
