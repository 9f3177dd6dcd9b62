"""What the verbs for log dirs of our own take."""
