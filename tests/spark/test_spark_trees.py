"""Trees judged by the tasks that list them: the answer is that of one join over everything."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.log_dir import discover
from logstore.scan import scan_all
from reconciler.audit import embedded
from reconciler.audit.spark import engine as spark_engine
from reconciler.audit.spark import trees as spark_trees
from reconciler.desired import BrokerKey, SavedTable
from reconciler.errors import RefusedError
from reconciler.sources import parquet
from tests.fleets import NOW_MS
from tests.spark.answers import OTHER_ID, TOPIC_ID, assert_same, orders

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("searched_here", [spark_trees.SEARCHED_HERE, 0])
def test_trees_are_judged_as_the_embedded_audit_judges_them_whoever_searches_the_fleet(
    spark: Any, tmp_path: Path, two_disks: list[str], monkeypatch: pytest.MonkeyPatch, searched_here: int
) -> None:
    monkeypatch.setattr(spark_trees, "SEARCHED_HERE", searched_here)
    for node, topic_id in ((2, OTHER_ID), (3, TOPIC_ID)):
        copied = shutil.copytree(two_disks[0], tmp_path / "disks" / f"of-{node}")
        (copied / "meta.properties").write_text(f"version=1\ncluster.id=C\nnode.id={node}\n")
        (copied / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    trees = str(tmp_path / "disks")
    (tmp_path / "duck").mkdir()
    tables = [observation.rows for observation in scan_all(discover(trees))]
    for all_rows in (False, True):
        result = spark_engine.audit(spark, [trees], [], [orders()], str(tmp_path), now_ms=NOW_MS, all_rows=all_rows)
        duck = embedded.audit(tables, [], [orders()], str(tmp_path / "duck"), now_ms=NOW_MS, all_rows=all_rows)
        assert_same(result, duck)
    assert {finding.kind for finding in result.fleet} >= {"TOPIC_UNDER_SEVERAL_IDS", "ONLY_KNOWN_COPY"}


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
    parquet.save_state(orders(), str(tmp_path / "saved"))
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


def test_a_log_dir_that_changed_its_broker_meanwhile_is_refused(
    spark: Any, tmp_path: Path, two_disks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(_: object) -> dict[BrokerKey | str, tuple[str, ...]]:
        return {BrokerKey("C", 2): tuple(two_disks)}

    monkeypatch.setattr(spark_trees, "by_broker", before)
    with pytest.raises(RefusedError, match=r"one came to belong to broker 1 of cluster C .*: audit again"):
        spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path), now_ms=NOW_MS)
    assert not (tmp_path / "findings.parquet").exists()


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_findings_of_an_earlier_audit_are_replaced_and_never_what_a_link_leads_to(
    spark: Any, tmp_path: Path, two_disks: list[str], kind: str
) -> None:
    findings, elsewhere = tmp_path / "out" / "findings.parquet", tmp_path / "elsewhere"
    (tmp_path / "out").mkdir()
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    if kind == "file":
        findings.write_text("x")
    elif kind == "link":
        findings.symlink_to(elsewhere)
    else:
        shutil.copytree(elsewhere, findings)
    result = spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path / "out"), now_ms=NOW_MS)
    assert result.count == 3
    assert all(path.suffix == ".parquet" for path in findings.iterdir())
    assert (elsewhere / "precious").read_text() == "x"
