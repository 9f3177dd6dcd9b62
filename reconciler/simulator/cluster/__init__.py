"""One simulated cluster: its machines, what a test starts, breaks and looks at, and what is wanted by its znodes."""
