"""A small ZooKeeper in memory, what Kafka keeps in it, and its comparison with a real one.

::

    tree            ZooKeeper and its sessions: the face of this package
    nodes           the tree of nodes, changed by transactions: all or nothing
    errors          what a call can fail with
    kafka_paths     where Kafka keeps what, namespaces included (FACTS §8, KIP37-4)
    kafka_nodes     what stands in Kafka's nodes, encoded and decoded
    mirror          the same nodes in a real ZooKeeper: read, written, compared
"""
