"""What the tests of the Spark audit ask of two answers, and the metadata that they share."""

from __future__ import annotations

from collections import Counter
from typing import Any

from reconciler.audit import AuditResult
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity

TOPIC_ID = "UXyU9i5ARn6W00ON2taeWA"
OTHER_ID = "AtgGav8yQjiaJ3rTXE7VCA"


def findings_of(result: AuditResult) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for batch in result.batches() for row in batch.to_pylist())


def assert_same(spark: AuditResult, duck: AuditResult) -> None:
    assert findings_of(spark) == findings_of(duck)
    for name in ("totals", "bytes", "disk_bytes", "brokers", "fleet", "metadata", "notes", "audited_ms"):
        assert getattr(spark, name) == getattr(duck, name)


def jobs_begun(spark: Any) -> int:
    """How many jobs a session has begun since it was started; Spark's public tracker forgets old ones."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def orders(topic_id: str = TOPIC_ID, cluster: str = "C") -> DesiredState:
    """orders-0, orders-1 and orders-2 are wanted on broker 1."""
    builder = DesiredBuilder()
    for partition in range(3):
        builder.partition("orders", topic_id, partition, [1], isr=[1])
    return builder.build(MetadataIdentity("kraft", "/metadata", cluster))
