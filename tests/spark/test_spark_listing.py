"""Listing log dirs into Parquet: the files hold what a scan says, however often a task is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.rows import ROW_SCHEMA, inventory
from reconciler.audit.spark.inventories import list_trees, write_inventories
from reconciler.audit.spark.log_dirs import LogDirs


@pytest.mark.spark
def test_each_task_leaves_an_inventory_and_together_they_hold_every_replica(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    paths = list_trees(spark, [str(Path(two_disks[0]).parent), "/nowhere"], True, str(folder))
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
        for batch in write_inventories(groups, False, str(tmp_path), [numbers])
        for path in batch.column("path").to_pylist()
    )
    assert first != second
    assert pq.read_table(first).schema.equals(ROW_SCHEMA)
    assert pq.read_table(first).column("name").to_pylist() == pq.read_table(second).column("name").to_pylist()
    assert set(pq.read_table(first).column("log_dir").to_pylist()) == {two_disks[1]}
