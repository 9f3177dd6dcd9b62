"""What both ways of an audit by Spark leave in the output folder, and how it is found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from reconciler.audit import FINDING_SCHEMA
from reconciler.audit.dimension_tables import rows_of
from reconciler.audit.spark.exchange import Exchange
from reconciler.audit.spark.output import (
    AuditRequest,
    make_searched,
    register_found,
    write_topics,
)
from tests.fleets import NOW_MS
from tests.spark.answers import OTHER_ID, TOPIC_ID, orders


def a_request(folder: Path) -> AuditRequest:
    return AuditRequest([], [orders()], str(folder), NOW_MS, sizes=False, all_rows=False)


def leave_findings(ask: AuditRequest, *others: dict[str, Any]) -> None:
    found = dict.fromkeys(FINDING_SCHEMA.names) | {"verdict": "MISSING", "topic": "orders", "partition": 2, "broker": 1}
    nameless = dict.fromkeys(FINDING_SCHEMA.names) | {"verdict": "FOREIGN", "log_dir": "/data", "name": "x"}
    Path(ask.findings).mkdir()
    table = pa.Table.from_pylist([found, nameless, *others], schema=FINDING_SCHEMA)
    pq.write_table(table, Path(ask.findings, "part-00000.parquet"))


def test_topics_are_left_with_their_cluster_and_without_what_nobody_compares(tmp_path: Path) -> None:
    ask = a_request(tmp_path)
    with duckdb.connect() as small:
        write_topics(small, {"C": orders()}, ask.topics)
        assert rows_of(small, "FROM topics") == [{"cluster": "C", "topic": "orders", "topic_id": TOPIC_ID}]
    assert pq.read_schema(tmp_path / "topics.parquet").names == ["cluster", "topic", "topic_id"]


def test_without_metadata_the_file_of_topics_is_there_and_empty(tmp_path: Path) -> None:
    with duckdb.connect() as small:
        write_topics(small, {}, a_request(tmp_path).topics)
        assert rows_of(small, "FROM topics") == []


def test_findings_are_found_again_in_the_words_of_the_join(tmp_path: Path) -> None:
    ask = a_request(tmp_path)
    leave_findings(ask)
    with duckdb.connect() as small:
        register_found(small, ask.findings)
        rows = rows_of(small, "SELECT verdict, cluster, node, topic, partition, on_disk FROM found ORDER BY verdict")
    assert [tuple(row.values()) for row in rows] == [
        ("FOREIGN", "", -1, "", -1, True),
        ("MISSING", "", 1, "orders", 2, False),
    ]


@pytest.mark.spark
def test_spark_searches_the_fleet_as_the_driver_does(spark: Any, tmp_path: Path) -> None:
    ask = a_request(tmp_path)
    stale = {"verdict": "STALE_ID", "cluster_id": "C", "broker": 1, "log_dir": "/data", "name": "orders-0"}
    leave_findings(ask, stale | {"kind": "live", "topic": "orders", "partition": 0, "disk_topic_id": OTHER_ID})
    columns = ("cluster_id", "node_id", "kind", "metadata_state", "topic", "partition", "topic_id")
    wanted = ("C", 2, "live", "ok", "orders", 1, TOPIC_ID)  # of the topic that has another ID elsewhere
    copy = ("C", 3, "staged", "ok", "orders-before", 0, OTHER_ID)  # of the replica that somebody may delete
    others = (("C", 3, "live", "ok", "payments", 0, "x"), ("C", 3, "live", "ok", "orders", 2, ""))
    rows = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in (wanted, copy, *others)])
    found = []
    for name, in_spark in (("driver", None), ("spark", spark.createDataFrame(rows))):
        with duckdb.connect() as small:
            small.register("rows", rows)
            write_topics(small, {"C": orders()}, ask.topics)
            register_found(small, ask.findings)
            (tmp_path / name).mkdir()
            make_searched(small, ask, in_spark, Exchange(str(tmp_path / name)))
            found.append(sorted(tuple(row.values()) for row in rows_of(small, "FROM searched")))
    assert found == [[wanted, copy]] * 2
