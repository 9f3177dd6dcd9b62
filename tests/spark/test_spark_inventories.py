"""The join in Spark says what the embedded audit says, of inventories and of trees among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.rows import ROW_SCHEMA
from logstore.scan import scan_all
from reconciler.audit import embedded
from reconciler.audit.spark import engine as spark_engine
from tests.fleets import NOW_MS, random_fleet
from tests.spark.answers import assert_same, orders

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("seed", "all_rows"), [(7, False), (12, True)])
def test_spark_and_duckdb_agree_on_findings_totals_bytes_and_the_fleet(
    spark: Any, tmp_path: Path, seed: int, all_rows: bool
) -> None:
    rows, states = random_fleet(seed)
    (tmp_path / "duck").mkdir()
    duck = embedded.audit([rows], [], states, str(tmp_path / "duck"), now_ms=NOW_MS, all_rows=all_rows)
    pq.write_table(rows.slice(0, 5), tmp_path / "first.parquet")
    pq.write_table(rows.slice(5), tmp_path / "second.parquet")
    inventories = [str(tmp_path / "first.parquet"), str(tmp_path / "second.parquet")]
    result = spark_engine.audit(spark, [], inventories, states, str(tmp_path), now_ms=NOW_MS, all_rows=all_rows)
    assert_same(result, duck)


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


def test_a_path_is_taken_as_it_stands_whatever_it_looks_like(spark: Any, tmp_path: Path) -> None:
    rows, _ = random_fleet(7)
    folder = tmp_path / "node_id=5" / "kind=live"
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "a[2]{b}.parquet")
    pq.write_table(rows.slice(0, 1), folder / "a2b.parquet")
    (tmp_path / "duck").mkdir()
    duck = embedded.audit([rows], [], [], str(tmp_path / "duck"), now_ms=NOW_MS)
    result = spark_engine.audit(spark, [], [str(folder / "a[2]{b}.parquet")], [], str(tmp_path), now_ms=NOW_MS)
    assert_same(result, duck)
