"""Metadata from Kafka's own tools and brokers: a live cluster, and the output of kafka-topics."""
