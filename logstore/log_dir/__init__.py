"""One disk: its lock, identity, checkpoints and open files, and how it goes offline after an I/O error."""
