"""What a scan says, as data: kinds and states of what was found, the table's columns, Arrow, inventories."""
