"""How long a test waits for what comes for certain."""

PATIENCE_S = 1800.0
"""In seconds. What comes ends the wait at once, so this costs nothing; no machine, however loaded, is so late."""
