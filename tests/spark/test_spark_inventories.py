"""Inventories and trees in one join of Spark: the findings are those of the embedded audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.rows import ROW_SCHEMA, LogDirOnHost, inventory
from logstore.scan import scan_all
from reconciler.audit import embedded
from reconciler.audit.spark import engine as spark_engine
from reconciler.audit.spark.inventories import list_trees, write_inventories
from reconciler.audit.spark.log_dirs import LogDirs
from reconciler.audit.spark.output import AuditRequest
from tests.fleets import NOW_MS, random_fleet
from tests.spark.answers import assert_same, orders


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "all_rows"), [(7, False), (12, True)])
def test_spark_and_duckdb_agree_on_findings_totals_bytes_and_the_fleet(
    spark: Any, tmp_path: Path, seed: int, all_rows: bool
) -> None:
    rows, states = random_fleet(seed)
    (tmp_path / "duck").mkdir()
    pq.write_table(rows.slice(0, 5), tmp_path / "first.parquet")
    pq.write_table(rows.slice(5), tmp_path / "second.parquet")
    inventories = [str(tmp_path / "first.parquet"), str(tmp_path / "second.parquet")]
    duck = embedded.audit([], inventories, states, str(tmp_path / "duck"), now_ms=NOW_MS, all_rows=all_rows)
    result = spark_engine.audit(spark, [], inventories, states, str(tmp_path), now_ms=NOW_MS, all_rows=all_rows)
    assert_same(result, duck)


@pytest.mark.spark
def test_the_rows_of_an_older_scan_do_not_count_in_either_engine(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    one, two = (observation.rows for observation in scan_all(two_disks))
    pq.write_table(pa.concat_tables([one, two]), tmp_path / "old.parquet")
    pq.write_table(two, tmp_path / "new.parquet")
    paths = [str(tmp_path / "old.parquet"), str(tmp_path / "new.parquet")]
    ignored = {paths[0]: {LogDirOnHost(two.column("host")[0].as_py(), two_disks[1])}}
    (tmp_path / "duck").mkdir()
    apart = embedded.audit([one, two], [], [orders()], str(tmp_path / "duck"), now_ms=NOW_MS)
    duck = embedded.audit([], paths, [orders()], str(tmp_path / "duck"), now_ms=NOW_MS, superseded=ignored)
    found = spark_engine.audit(spark, [], paths, [orders()], str(tmp_path), now_ms=NOW_MS, superseded=ignored)
    assert_same(found, duck)
    assert found.totals == apart.totals


@pytest.mark.spark
def test_trees_and_inventories_are_audited_together(spark: Any, tmp_path: Path, two_disks: list[str]) -> None:
    tables = [observation.rows for observation in scan_all(two_disks)]
    other = pa.Table.from_pylist(
        [row | {"node_id": 2, "directory_id": None, "log_dir": "/other"} for row in tables[1].to_pylist()],
        schema=ROW_SCHEMA,
    )
    inventory = str(tmp_path / "inventory.parquet")
    pq.write_table(other, inventory)
    result = spark_engine.audit(spark, two_disks, [inventory], [orders()], str(tmp_path), now_ms=NOW_MS)
    (tmp_path / "duck").mkdir()
    duck = embedded.audit(tables, [inventory], [orders()], str(tmp_path / "duck"), now_ms=NOW_MS)
    assert_same(result, duck)
    # Broker 1 holds orders-0 twice and lacks orders-2; broker 2 holds two replicas that are not assigned to it.
    assert result.totals == {"OK": 1, "DUPLICATE": 2, "NOT_ASSIGNED": 2, "MISSING": 1}
    ranks = {row["log_dir"]: row["copy_rank"] for row in result.most_urgent(2).to_pylist()}
    assert ranks == {two_disks[0]: 2, two_disks[1]: 1}


@pytest.mark.spark
def test_a_path_is_taken_literally_whatever_it_looks_like(spark: Any, tmp_path: Path) -> None:
    rows, _ = random_fleet(7)
    folder = tmp_path / "node_id=5" / "kind=live"
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "a[2]{b}.parquet")
    pq.write_table(rows.slice(0, 1), folder / "a2b.parquet")
    (tmp_path / "duck").mkdir()
    duck = embedded.audit([rows], [], [], str(tmp_path / "duck"), now_ms=NOW_MS)
    result = spark_engine.audit(spark, [], [str(folder / "a[2]{b}.parquet")], [], str(tmp_path), now_ms=NOW_MS)
    assert_same(result, duck)


@pytest.mark.spark
def test_each_task_leaves_an_inventory_and_together_they_hold_every_replica(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    trees = [str(Path(two_disks[0]).parent), "/nowhere"]
    paths = list_trees(spark, AuditRequest(trees, [], "", NOW_MS, sizes=True, all_rows=False), str(folder))
    for path in paths:
        inventory.check_inventory(path)
    rows = [row for path in paths for row in pq.read_table(path).to_pylist()]
    replicas = sorted((row["log_dir"], row["name"], row["leader_epoch"]) for row in rows if row["kind"] == "live")
    assert replicas == [(two_disks[0], "orders-0", 3), (two_disks[1], "orders-0", 4), (two_disks[1], "orders-1", None)]
    assert {row["log_dir"] for row in rows if row["kind"] == "log_dir"} == {*two_disks, "/nowhere"}
    assert {str(path) for path in folder.iterdir()} == set(paths)


def test_a_task_that_is_repeated_meets_nothing_of_its_first_attempt(tmp_path: Path, two_disks: list[str]) -> None:
    groups = [LogDirs(((two_disks[0],),)), LogDirs(((two_disks[1],),))]
    numbers = pa.RecordBatch.from_pydict({"id": [1]})
    first, second = (
        path
        for _ in range(2)
        for batch in write_inventories(groups, str(tmp_path), False, None, [numbers])
        for path in batch.column("path").to_pylist()
    )
    assert first != second
    assert pq.read_table(first).schema.equals(ROW_SCHEMA)
    assert pq.read_table(first).column("name").to_pylist() == pq.read_table(second).column("name").to_pylist()
    assert set(pq.read_table(first).column("log_dir").to_pylist()) == {two_disks[1]}
