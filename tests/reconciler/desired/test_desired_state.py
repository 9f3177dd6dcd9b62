"""The tables of a desired state, and a saved table that stays in its file until it is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.desired import (
    BROKER_SCHEMA,
    REPLICA_SCHEMA,
    TOPIC_SCHEMA,
    DesiredBuilder,
    MetadataIdentity,
    SavedTable,
    in_full,
    in_memory,
    is_none_in_sync,
    is_only_in_sync,
)
from reconciler.errors import MetadataError

IDENTITY = MetadataIdentity("kraft", "/metadata")


def test_nothing_collected_gives_empty_tables_with_their_schemas() -> None:
    state = DesiredBuilder().build(IDENTITY)
    assert (state.replicas.schema, state.topics.schema, state.brokers.schema) == (
        REPLICA_SCHEMA,
        TOPIC_SCHEMA,
        BROKER_SCHEMA,
    )
    assert state.replicas.num_rows == state.topics.num_rows == state.brokers.num_rows == 0


def test_a_partition_gives_one_row_per_replica() -> None:
    builder = DesiredBuilder()
    builder.partition("t", "ID", 3, [5, 6], isr=[6], directories=["d5", None], leader=6, leader_epoch=9)
    rows = builder.build(IDENTITY).replicas.to_pylist()
    assert [(r["node_id"], r["directory_id"], r["leader"], r["in_sync"], r["isr_size"]) for r in rows] == [
        (5, "d5", False, False, 1),
        (6, None, True, True, 1),
    ]
    assert all((r["topic"], r["topic_id"], r["partition"], r["leader_epoch"]) == ("t", "ID", 3, 9) for r in rows)


@pytest.mark.parametrize(
    ("isr", "only", "none"), [((1, 2), False, False), ((1,), True, False), ((2,), False, False), ((), False, True)]
)
def test_a_replica_is_the_only_one_in_sync_or_none_is_known(isr: tuple[int, ...], only: bool, none: bool) -> None:
    builder = DesiredBuilder()
    builder.partition("t", None, 0, [1, 2], isr=isr)
    row = builder.build(IDENTITY).replicas.to_pylist()[0]
    assert (is_only_in_sync(row), is_none_in_sync(row)) == (only, none)


def test_a_replica_in_flight_outside_the_replicas_gets_a_row_of_its_own() -> None:
    builder = DesiredBuilder()
    builder.partition("t", None, 0, [1, 2], adding=[2, 3], removing=[4])
    rows = builder.build(IDENTITY).replicas.to_pylist()
    assert {r["node_id"]: (r["adding"], r["removing"]) for r in rows} == {
        1: (False, False),
        2: (True, False),
        3: (True, False),
        4: (False, True),
    }


def test_a_broker_listed_twice_gives_one_row() -> None:
    builder = DesiredBuilder()
    builder.partition("t", None, 0, [1, 1, 2])
    assert builder.build(IDENTITY).replicas["node_id"].to_pylist() == [1, 2]


def test_a_topic_without_partitions_is_known() -> None:
    builder = DesiredBuilder()
    builder.topic("empty", "ID")
    builder.partition("full", None, 0, [1])
    builder.partition("full", None, 1, [1])
    assert builder.build(IDENTITY).topics.to_pylist() == [
        {"topic": "empty", "topic_id": "ID", "partitions": 0},
        {"topic": "full", "topic_id": None, "partitions": 2},
    ]


def test_a_broker_is_kept_with_its_log_dirs() -> None:
    builder = DesiredBuilder()
    builder.broker(7, 42, False, ["d1", "d2"])
    assert builder.build(IDENTITY).brokers.to_pylist() == [
        {"node_id": 7, "broker_epoch": 42, "fenced": False, "directory_ids": ["d1", "d2"]}
    ]


TABLE = pa.table({"topic": ["orders", None], "node_id": pa.array([1, 2], pa.int32())})


@pytest.fixture
def saved(tmp_path: Path) -> SavedTable:
    path = str(tmp_path / "replicas.parquet")
    pq.write_table(TABLE, path)
    return SavedTable(path, TABLE.schema, TABLE.num_rows)


def test_all_of_it_can_be_read(saved: SavedTable) -> None:
    assert saved.read().equals(TABLE, check_metadata=True)
    assert in_memory(saved).equals(TABLE)


def test_one_column_can_be_read_alone(saved: SavedTable) -> None:
    assert saved.column("node_id").to_pylist() == [1, 2]


def test_a_table_in_memory_is_itself() -> None:
    assert in_memory(TABLE) is TABLE


def test_a_file_that_went_or_broke_is_a_metadata_error_with_its_path(saved: SavedTable) -> None:
    path = Path(saved.path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(MetadataError, match=r"replicas.parquet cannot be read"):
        saved.read()
    path.unlink()
    with pytest.raises(MetadataError, match=r"replicas.parquet cannot be read"):
        saved.column("topic")


def test_a_source_in_full_is_the_absolute_path_of_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a:b").mkdir()
    monkeypatch.chdir(tmp_path)
    given = ("a:b", "kraft:a:b", "nothing", "kafka:host:9092", "none", f"{tmp_path}/a:b", "")
    named = (f"{tmp_path}/a:b", f"kraft:{tmp_path}/a:b", "nothing", "kafka:host:9092", "none", f"{tmp_path}/a:b", "")
    assert tuple(map(in_full, given)) == named
