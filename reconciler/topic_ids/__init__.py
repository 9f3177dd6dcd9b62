"""Topics without IDs get them in ZooKeeper."""
