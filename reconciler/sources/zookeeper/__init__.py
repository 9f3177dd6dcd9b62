"""What Kafka keeps in ZooKeeper as a metadata source, from a snapshot file or a live server."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.sources.zookeeper.jute import Znode
    from reconciler.sources.zookeeper.live import split_address
    from reconciler.sources.zookeeper.snapshot import DATA_DIR, is_data_dir
    from reconciler.sources.zookeeper.state import assemble, first_few, marked_for_deletion
    from reconciler.sources.zookeeper.znodes import (
        TopicNode,
        decode_cluster_id,
        decode_number,
        decode_state,
        decode_topic,
        migrated_to,
        split_topics,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "jute": ("Znode",),
            "live": ("split_address",),
            "snapshot": ("DATA_DIR", "is_data_dir"),
            "state": ("assemble", "first_few", "marked_for_deletion"),
            "znodes": (
                "TopicNode",
                "decode_cluster_id",
                "decode_number",
                "decode_state",
                "decode_topic",
                "migrated_to",
                "split_topics",
            ),
        },
    )

__all__ = [
    "DATA_DIR",
    "TopicNode",
    "Znode",
    "assemble",
    "decode_cluster_id",
    "decode_number",
    "decode_state",
    "decode_topic",
    "first_few",
    "is_data_dir",
    "marked_for_deletion",
    "migrated_to",
    "split_address",
    "split_topics",
]
