"""The Spark audit says what the embedded one says, of the same input, and leaves the session as it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.rows import ROW_SCHEMA
from logstore.scan import scan_all
from reconciler.audit import embedded, spark_engine
from reconciler.audit.result import AuditResult
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import RefusedError
from reconciler.saved_table import SavedTable
from reconciler.sources import parquet
from tests.fleets import NOW_MS, random_fleet

pytestmark = pytest.mark.spark

TOPIC_ID = "UXyU9i5ARn6W00ON2taeWA"
OTHER_ID = "AtgGav8yQjiaJ3rTXE7VCA"


def findings_of(result: AuditResult) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for batch in result.batches() for row in batch.to_pylist())


def assert_same(spark: AuditResult, duck: AuditResult) -> None:
    assert findings_of(spark) == findings_of(duck)
    for name in ("totals", "bytes", "brokers", "fleet", "metadata", "notes", "audited_ms"):
        assert getattr(spark, name) == getattr(duck, name)


def orders(topic_id: str = TOPIC_ID, cluster: str = "C") -> DesiredState:
    """orders-0, orders-1 and orders-2 are wanted on broker 1."""
    builder = DesiredBuilder()
    for partition in range(3):
        builder.partition("orders", topic_id, partition, [1], isr=[1])
    return builder.build(MetadataIdentity("kraft", "/metadata", cluster))


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


def test_a_bad_disk_is_a_finding_among_the_others_and_nothing_else_is_left_behind(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    result = spark_engine.audit(spark, [*two_disks, "/nowhere"], [], [orders()], str(tmp_path), now_ms=NOW_MS)
    assert result.totals["ABSENT"] == 1
    assert result.totals["OK"] == 1
    assert spark.catalog.listTables() == []
    assert {path.name for path in tmp_path.iterdir()} == {"disks", "findings.parquet", "topics.parquet"}


def test_without_sizes_no_bytes_are_counted(spark: Any, tmp_path: Path, two_disks: list[str]) -> None:
    result = spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path), now_ms=NOW_MS, sizes=False)
    assert result.totals["DUPLICATE"] == 2
    assert not any(result.bytes.values())


def test_a_saved_state_is_read_where_it_lies(spark: Any, tmp_path: Path, two_disks: list[str]) -> None:
    (tmp_path / "saved").mkdir()
    parquet.save(orders(), str(tmp_path / "saved"))
    state = parquet.load(str(tmp_path / "saved"))
    assert isinstance(state.replicas, SavedTable)
    saved = spark_engine.audit(spark, two_disks, [], [state], str(tmp_path), now_ms=NOW_MS)
    assert saved.totals == {"OK": 1, "DUPLICATE": 2, "MISSING": 1}


def test_an_empty_log_dir_and_no_metadata_give_an_empty_answer(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "meta.properties").write_text("version=1\ncluster.id=C\nnode.id=1\n")
    result = spark_engine.audit(spark, [str(tmp_path / "empty")], [], [], str(tmp_path), now_ms=NOW_MS)
    assert (result.totals, result.count, result.fleet) == ({}, 0, ())
    assert [broker.node_id for broker in result.brokers] == [1]


def test_a_topic_whose_id_changed_since_the_audit_before_is_found(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    spark_engine.audit(spark, two_disks, [], [orders(OTHER_ID)], str(tmp_path), now_ms=NOW_MS)
    before = str(tmp_path / "topics.parquet")
    result = spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path), now_ms=NOW_MS, previous=before)
    changed = [finding for finding in result.fleet if finding.kind == "TOPIC_ID_CHANGED"]
    assert [finding.subject for finding in changed] == ["orders"]


def test_metadata_of_another_cluster_is_refused(spark: Any, tmp_path: Path, two_disks: list[str]) -> None:
    state = replace(orders(), identity=MetadataIdentity("kraft", "/metadata", "D"))
    with pytest.raises(RefusedError, match=r"cluster D.*cluster C"):
        spark_engine.audit(spark, two_disks, [], [state], str(tmp_path), now_ms=NOW_MS)


def test_an_inventory_that_went_is_one_sentence(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"Spark did not finish the audit.*nowhere") as told:
        spark_engine.audit(spark, [], ["/nowhere.parquet"], [], str(tmp_path), now_ms=NOW_MS)
    assert "\n" not in str(told.value)


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
