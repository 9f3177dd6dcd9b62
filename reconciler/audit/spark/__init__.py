"""The audit on Spark: trees listed by the executors, inventories joined where they lie."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.audit.spark.engine import audit
    from reconciler.audit.spark.exchange import check_store, left_exchanges
    from reconciler.audit.spark.log_dirs import KafkaLogDirs
    from reconciler.audit.spark.metadata import KafkaMetadata
    from reconciler.audit.spark.notebook import spark_findings
    from reconciler.audit.spark.session import open_session, runs_on_cluster
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "engine": ("audit",),
            "exchange": ("check_store", "left_exchanges"),
            "log_dirs": ("KafkaLogDirs",),
            "metadata": ("KafkaMetadata",),
            "notebook": ("spark_findings",),
            "session": ("open_session", "runs_on_cluster"),
        },
    )

__all__ = [
    "KafkaLogDirs",
    "KafkaMetadata",
    "audit",
    "check_store",
    "left_exchanges",
    "open_session",
    "runs_on_cluster",
    "spark_findings",
]
