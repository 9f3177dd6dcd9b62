"""A change of many steps ends wholly done or wholly undone, whatever ends the process."""
