"""Changes of names and scheme, planned and shown before they are done."""
