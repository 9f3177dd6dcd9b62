"""The data source ``kafka_metadata``, on a desired state that was saved before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from reconciler.audit.spark import KafkaMetadata
from reconciler.audit.spark.metadata import TABLES
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.errors import UsageError
from reconciler.sources import parquet

TOPIC_ID = "UXyU9i5ARn6W00ON2taeWA"


@pytest.fixture
def saved(tmp_path: Path) -> str:
    builder = DesiredBuilder()
    builder.partition("orders", TOPIC_ID, 0, [1, 2], isr=[1])
    builder.broker(1, 7, False, ["s33AdXtkR8Gf_xRO-R_dpA"])
    identity = MetadataIdentity("kraft", "/meta", "C", scope=frozenset({2, 1}), offset=42, problems=("torn tail",))
    parquet.save_state(builder.build(identity), str(tmp_path))
    return f"parquet:{tmp_path}"


def read(spark: Any, spec: str, table: str) -> list[dict[str, Any]]:
    spark.dataSource.register(KafkaMetadata)
    frame = spark.read.format("kafka_metadata").option("path", spec).option("table", table).load()
    assert frame.columns == ["cluster", *TABLES[table].names]
    return [row.asDict() for row in frame.collect()]


@pytest.mark.spark
def test_replicas_and_topics_have_their_cluster_in_front(spark: Any, saved: str) -> None:
    replicas = read(spark, saved, "replicas")
    assert sorted((row["cluster"], row["topic"], row["node_id"], row["in_sync"]) for row in replicas) == [
        ("C", "orders", 1, True), ("C", "orders", 2, False),
    ]  # fmt: skip
    assert read(spark, saved, "topics") == [{"cluster": "C", "topic": "orders", "topic_id": TOPIC_ID, "partitions": 1}]


@pytest.mark.spark
def test_brokers_and_identity_arrive_with_their_lists(spark: Any, saved: str) -> None:
    (broker,) = read(spark, saved, "brokers")
    assert (broker["node_id"], broker["directory_ids"]) == (1, ["s33AdXtkR8Gf_xRO-R_dpA"])
    (identity,) = read(spark, saved, "identity")
    assert (identity["cluster"], identity["scope"], identity["offset"]) == ("C", [1, 2], 42)
    assert identity["problems"] == ["torn tail"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, "must name a metadata source"),
        ({"path": "/x", "table": "acls"}, "there is no table 'acls'; the tables are replicas, topics"),
        ({"path": "/x", "node": "1"}, "has no option 'node'"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, str], shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        KafkaMetadata(options).reader(None)
