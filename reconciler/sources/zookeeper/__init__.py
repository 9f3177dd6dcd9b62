"""What Kafka keeps in ZooKeeper, from a snapshot file or a live server."""
