"""KRaft metadata and ZooKeeper snapshots as files, as Kafka and ZooKeeper write them."""
