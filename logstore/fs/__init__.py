"""The only code that touches a disk: directories by descriptor, durable changes, copies, small files."""
