"""The audit on Spark: trees listed by the executors, inventories joined where they lie."""
