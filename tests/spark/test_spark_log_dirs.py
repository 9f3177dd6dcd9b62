"""The data source ``kafka_log_dirs``, on small trees, and Arrow schemas as DDL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.rows import ROW_SCHEMA
from reconciler.audit.spark import KafkaLogDirs
from reconciler.audit.spark import log_dirs as spark_log_dirs
from reconciler.audit.spark.log_dirs import LogDirsReader, by_broker, ddl, group_brokers, log_dirs_in
from reconciler.desired import BROKER_SCHEMA, BrokerKey
from reconciler.errors import UsageError


def listed(spark: Any, **options: str) -> list[dict[str, Any]]:
    spark.dataSource.register(KafkaLogDirs)
    return [row.asDict() for row in spark.read.format("kafka_log_dirs").options(**options).load().collect()]


@pytest.mark.spark
def test_a_folder_of_log_dirs_is_found_and_listed_with_sizes(spark: Any, two_disks: list[str]) -> None:
    rows = listed(spark, paths=json.dumps([str(Path(two_disks[0]).parent)]))
    assert sorted((row["log_dir"], row["name"]) for row in rows if row["kind"] == "live") == [
        (two_disks[0], "orders-0"), (two_disks[1], "orders-0"), (two_disks[1], "orders-1"),
    ]  # fmt: skip
    assert {row["log_dir"] for row in rows if row["kind"] == "log_dir"} == set(two_disks)
    # The log alone has 100 bytes; what else is added up is the scan's business.
    assert all(row["bytes"] > 100 for row in rows if row["kind"] == "live")


@pytest.mark.spark
def test_replicas_that_a_broker_has_twice_get_their_leader_epochs(spark: Any, two_disks: list[str]) -> None:
    rows = listed(spark, paths="\n".join(two_disks), sizes="false")
    epochs = {(row["log_dir"], row["name"]): row["leader_epoch"] for row in rows if row["kind"] == "live"}
    assert epochs == {
        (two_disks[0], "orders-0"): 3, (two_disks[1], "orders-0"): 4, (two_disks[1], "orders-1"): None,
    }  # fmt: skip
    assert all(row["bytes"] is None for row in rows if row["kind"] == "live")


@pytest.mark.spark
def test_a_disk_that_is_not_there_is_a_row_and_the_others_are_listed(spark: Any, two_disks: list[str]) -> None:
    gone = str(Path(two_disks[0]).parent / "gone")
    rows = listed(spark, paths=json.dumps([*two_disks, gone]))
    (bad,) = [row for row in rows if row["log_dir"] == gone]
    assert (bad["kind"], bad["metadata_state"]) == ("log_dir", "absent")
    assert len([row for row in rows if row["kind"] == "live"]) == 3


def test_a_scan_that_fails_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch, two_disks: list[str]) -> None:
    scan = spark_log_dirs.scan

    def failing(log_dir: str, **options: bool) -> Any:
        if log_dir == two_disks[0]:
            raise OSError(5, "Input/output error")
        return scan(log_dir, **options)

    def failing_together(*_: object, **__: object) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(spark_log_dirs, "scan", failing)
    monkeypatch.setattr(spark_log_dirs, "scan_all", failing_together)
    reader = LogDirsReader(two_disks, sizes=True, groups=1)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    first = next(row for row in rows if row["log_dir"] == two_disks[0])
    assert first["metadata_state"] == "absent"
    assert "Input/output error" in first["problem"]
    assert sum(row["kind"] == "live" for row in rows) == 2


def test_a_log_dir_that_is_named_twice_is_listed_once(two_disks: list[str]) -> None:
    parent = str(Path(two_disks[0]).parent)
    assert log_dirs_in([two_disks[1], parent, f"{two_disks[0]}/../one"]) == [two_disks[1], two_disks[0]]


def test_log_dirs_of_one_broker_stay_together(two_disks: list[str]) -> None:
    found = by_broker([two_disks[0], "/nowhere", two_disks[1]])
    assert found == {BrokerKey("C", 1): tuple(two_disks), "/nowhere": ("/nowhere",)}


def test_brokers_are_spread_over_at_most_as_many_groups_as_asked_for() -> None:
    brokers = [(f"/b{number}/1", f"/b{number}/2") for number in range(10)] + [("/alone",)]
    groups = group_brokers(brokers, 4)
    assert sorted(broker for group in groups for broker in group.brokers) == sorted(brokers)
    assert sorted(sum(map(len, group.brokers)) for group in groups) == [4, 5, 6, 6]


def test_there_are_never_more_groups_than_brokers() -> None:
    assert len(group_brokers([("/a",), ("/b",)], 8)) == 2


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, "must name log dirs"),
        ({"paths": "[1]"}, "must name log dirs"),
        ({"paths": "["}, "no JSON list"),
        ({"paths": "/a", "sizes": "perhaps"}, "must be true or false"),
        ({"paths": "/a", "groups": "0"}, "must be a number from 1"),
        ({"path": "/a"}, "has no option 'path'"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, str], shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        KafkaLogDirs(options).reader(None)


def test_every_column_keeps_its_name_its_place_and_its_width() -> None:
    columns = ddl(ROW_SCHEMA).split(", ")
    assert [column.split("`")[1] for column in columns] == ROW_SCHEMA.names
    assert "`partition` int" in columns
    assert "`bytes` bigint" in columns


def test_a_list_is_an_array() -> None:
    assert ddl(BROKER_SCHEMA).endswith("`directory_ids` array<string>")


def test_a_type_that_no_table_has_is_refused() -> None:
    with pytest.raises(KeyError):
        ddl(pa.schema([pa.field("x", pa.float16())]))
