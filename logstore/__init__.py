"""The engine that reads log dirs: what lies there, told in rows, without changing anything."""
