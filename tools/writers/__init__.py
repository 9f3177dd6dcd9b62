"""KRaft metadata and ZooKeeper snapshots as files, as Kafka and ZooKeeper write them."""

from tools.writers.kraft_writer import (
    delete_topic_partitions_record,
    feature_level_record,
    log_batch,
    no_op_record,
    partition_change_record,
    partition_record,
    partition_with_mode_record,
    register_broker_record,
    remove_topic_record,
    topic_record,
    write_metadata_dir,
)

__all__ = [
    "delete_topic_partitions_record",
    "feature_level_record",
    "log_batch",
    "no_op_record",
    "partition_change_record",
    "partition_record",
    "partition_with_mode_record",
    "register_broker_record",
    "remove_topic_record",
    "topic_record",
    "write_metadata_dir",
]
