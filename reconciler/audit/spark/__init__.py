"""The audit on Spark: trees listed by the executors, inventories joined where they lie."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.audit.spark.engine import audit
    from reconciler.audit.spark.log_dirs import KafkaLogDirs
    from reconciler.audit.spark.metadata import KafkaMetadata
    from reconciler.audit.spark.session import chosen_master, local_cores, open_session
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "engine": ("audit",),
            "log_dirs": ("KafkaLogDirs",),
            "metadata": ("KafkaMetadata",),
            "session": ("chosen_master", "local_cores", "open_session"),
        },
    )

__all__ = [
    "KafkaLogDirs",
    "KafkaMetadata",
    "audit",
    "chosen_master",
    "local_cores",
    "open_session",
]
