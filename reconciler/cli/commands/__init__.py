"""One file a verb: its options, and how it ends."""
