"""Files put right from a reviewed plan, with backup and undo."""
