"""A live cluster by its brokers, and the output of kafka-topics."""
