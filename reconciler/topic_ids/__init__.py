"""Give topics without topic IDs their IDs in ZooKeeper."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.topic_ids.migrate import TopicFound, TopicIdState, new_ids
    from reconciler.topic_ids.write import ClusterSeen, assign_topic_id, connect, read_cluster
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "migrate": ("TopicFound", "TopicIdState", "new_ids"),
            "write": ("ClusterSeen", "assign_topic_id", "connect", "read_cluster"),
        },
    )

__all__ = [
    "ClusterSeen",
    "TopicFound",
    "TopicIdState",
    "assign_topic_id",
    "connect",
    "new_ids",
    "read_cluster",
]
