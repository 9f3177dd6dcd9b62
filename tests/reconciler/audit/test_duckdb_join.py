"""The join in DuckDB, step by step; that its verdicts are those of the case table is tested with both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logstore.rows import ROW_SCHEMA
from reconciler.audit import duckdb_join
from reconciler.audit.dimension_tables import DesiredTables, keep_metadata, register_desired, rows_of
from reconciler.audit.duckdb_join import configure, judge, make_observed
from reconciler.desired import REPLICA_SCHEMA, TOPIC_SCHEMA, BrokerKey, JudgedBroker
from tests.fleets import NOW_MS, healthy_fleet

TOPIC_ID, OLD_ID = "I" * 21 + "A", "J" * 21 + "A"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        configure(opened, str(tmp_path / "spill"), "100MB", threads=1)
        yield opened


def rows(*names: str) -> pa.Table:
    """Broker 1's log dir with these live directories, all with the old topic ID."""
    log_dir = dict.fromkeys(ROW_SCHEMA.names) | {"cluster_id": "c1", "node_id": 1, "log_dir": "/data"}
    found: list[dict[str, Any]] = [log_dir | {"name": ".", "kind": "log_dir", "metadata_state": "ok"}]
    for name in names:
        topic, _, partition = name.rpartition("-")
        replica = {"kind": "live", "topic": topic, "partition": int(partition), "topic_id": OLD_ID, "bytes": 5}
        found.append(log_dir | {"name": name, "metadata_state": "ok"} | replica)
    return pa.Table.from_pylist(found, schema=ROW_SCHEMA)


def wanted(*nodes: int) -> tuple[pa.Table, pa.Table]:
    """The replicas and topics of t-0, wanted on these brokers under the new topic ID."""
    replica = dict.fromkeys(REPLICA_SCHEMA.names) | {"topic": "t", "topic_id": TOPIC_ID, "partition": 0}
    known = {"in_sync": False, "isr_size": 2, "adding": False, "removing": False}
    replicas = [replica | known | {"node_id": node} for node in nodes]
    topics = [{"topic": "t", "topic_id": TOPIC_ID, "partitions": 1}]
    return pa.Table.from_pylist(replicas, schema=REPLICA_SCHEMA), pa.Table.from_pylist(topics, schema=TOPIC_SCHEMA)


def judged(
    connection: duckdb.DuckDBPyConnection, desired: DesiredTables, path: Path, *names: str
) -> list[tuple[Any, ...]]:
    make_observed(connection, [rows(*names)], [], 0)
    keep_metadata(connection, ["c1"], [JudgedBroker("c1", 1, True)])
    register_desired(connection, {"c1": desired})
    judge(connection, str(path), all_rows=False)
    return sorted((row["verdict"], row["broker"], row["name"]) for row in pq.read_table(path).to_pylist())


def test_a_connection_keeps_to_its_memory_and_threads(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    asked = "SELECT current_setting('threads'), current_setting('memory_limit'), current_setting('temp_directory')"
    assert connection.execute(asked).fetchall() == [(1, "95.3 MiB", str(tmp_path / "spill"))]


def test_a_look_tells_the_brokers_and_what_lies_on_them(connection: duckdb.DuckDBPyConnection) -> None:
    assert make_observed(connection, [rows("t-0", "u-1")], [], 0) == [BrokerKey("c1", 1)]
    (disk,) = rows_of(connection, "FROM disks")
    assert (disk["cluster"], disk["node"], disk["live"], disk["bytes"]) == ("c1", 1, 2, 10)


def test_only_a_cluster_of_which_something_was_seen_needs_a_join_of_its_own(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_join, "ROWS_JOINED_AT_ONCE", 1)
    make_observed(connection, [rows("t-0", "u-1")], [], 0)
    keep_metadata(connection, ["c0", "c1", "c2"], [])
    assert duckdb_join._parts(connection, in_ranges=False) == [(["", "c0", "c1", "c2"], ("true",))]


def test_topics_are_joined_in_ranges_that_hold_about_as_much(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_observed(connection, [rows("t-0", "t-1", "t-2", "u-0", "it's-0", "z-0")], [], 0)
    keep_metadata(connection, ["c1"], [])
    topics = pa.Table.from_pylist(
        [{"topic": name, "topic_id": None, "partitions": n} for name, n in (("t", 3), ("u", 1), ("it's", 1), ("z", 1))],
        TOPIC_SCHEMA,
    )
    register_desired(connection, {"c1": DesiredTables(REPLICA_SCHEMA.empty_table(), topics)})
    several = ["true AND topic < 'u'", "topic >= 'u' AND topic IS NOT NULL", "topic IS NULL"]
    each = ["true AND topic < 't'", "topic >= 't' AND topic < 'u'", "topic >= 'u' AND topic < 'z'"]
    last = ["topic >= 'z' AND topic IS NOT NULL", "topic IS NULL"]
    for most, expected in ((5, ("true",)), (3, several), (1, [*each, *last])):
        monkeypatch.setattr(duckdb_join, "ROWS_JOINED_AT_ONCE", most)
        assert duckdb_join._parts(connection, in_ranges=True) == [(["", "c1"], expected)]


def test_what_is_wanted_may_lie_in_tables_or_in_files(tmp_path: Path) -> None:
    replicas, topics = wanted(1)
    files = DesiredTables(str(tmp_path / "it's replicas.parquet"), str(tmp_path / "topics.parquet"))
    for table, path in zip((replicas, topics), files, strict=True):
        pq.write_table(table, path)
    for desired in (DesiredTables(replicas, topics), files):
        with duckdb.connect() as fresh:
            assert judged(fresh, desired, tmp_path / "found.parquet", "t-0") == [("STALE_ID", 1, "t-0")]


def test_replicas_that_are_wanted_where_nobody_looked_are_no_findings(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    assert judged(connection, DesiredTables(*wanted(1, 2)), tmp_path / "found.parquet") == [("MISSING", 1, None)]


def test_without_metadata_nothing_is_compared(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    make_observed(connection, [rows("t-0")], [], 0)
    keep_metadata(connection, [], [])
    register_desired(connection, {})
    judge(connection, str(tmp_path / "found.parquet"), all_rows=True)
    assert [row["verdict"] for row in pq.read_table(tmp_path / "found.parquet").to_pylist()] == ["NOT_COMPARED"]


def judged_healthy(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[int, list[dict[str, Any]]]:
    """How many rows of a fleet that is in order, but for one in ten, are looked at closely, and its findings."""
    table, state = healthy_fleet("c1", 100)
    brokers = make_observed(connection, [table], [], NOW_MS)
    keep_metadata(connection, ["c1"], [JudgedBroker("c1", broker.node, True) for broker in brokers])
    assert isinstance(state.replicas, pa.Table)
    register_desired(connection, {"c1": DesiredTables(state.replicas, state.topics)})
    judge(connection, str(path), all_rows=False)
    (left,) = rows_of(connection, "SELECT count(*) AS number FROM unsettled")
    return left["number"], sorted(pq.read_table(path).to_pylist(), key=repr)


def test_only_what_is_not_plainly_in_order_is_looked_at_closely(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    looked_at, findings = judged_healthy(connection, tmp_path / "found.parquet")
    assert {row["verdict"] for row in findings} == {"STALE_ID", "MISSING", "DUPLICATE", "STAGED_DUE"}
    # The others are a row for each log dir, and a live replica beside each staged one.
    staged = sum(row["verdict"] == "STAGED_DUE" for row in findings)
    assert looked_at == len(findings) + 6 + staged


def test_partitions_of_one_hash_are_counted_apart(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, expected = judged_healthy(connection, tmp_path / "found.parquet")
    plain, same = duckdb_join._HASH, "partition % 7"
    monkeypatch.setattr(duckdb_join, "_SEEN", duckdb_join._SEEN.replace(plain, same))
    monkeypatch.setattr(duckdb_join, "_HASH", same)
    monkeypatch.setattr(duckdb_join, "_settlement", duckdb_join._settlement.__wrapped__)
    with duckdb.connect() as fresh:
        looked_at, findings = judged_healthy(fresh, tmp_path / "found.parquet")
    assert findings == expected
    assert looked_at > 300 > few
