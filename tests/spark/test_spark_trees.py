"""Trees that executors list and judge: batch by batch, with the findings of one join over the whole fleet."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.log_dir import discover
from logstore.scan import scan_all
from reconciler.audit import embedded
from reconciler.audit.spark import engine as spark_engine
from reconciler.audit.spark import output
from reconciler.audit.spark import trees as spark_trees
from reconciler.audit.spark.log_dirs import LogDirs
from reconciler.audit.spark.trees import BatchFiles, TreeAuditTask, audit_groups, desired_tables_in_files, judge_batch
from reconciler.desired import BrokerKey, DesiredState, SavedTable, by_cluster, speaking
from reconciler.errors import RefusedError
from reconciler.sources import parquet
from reconciler.verdicts import broker_of
from tests.fleets import NOW_MS, random_fleet
from tests.spark.answers import OTHER_ID, TOPIC_ID, assert_same, orders


@pytest.mark.spark
@pytest.mark.parametrize("few", [output.FEW_ROWS, 0])
def test_trees_are_judged_as_the_embedded_audit_judges_them_whoever_searches_the_fleet(
    spark: Any, tmp_path: Path, two_disks: list[str], monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(output, "FEW_ROWS", few)
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


@pytest.mark.spark
def test_a_bad_disk_is_a_finding_among_the_others_and_nothing_else_is_left_behind(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    result = spark_engine.audit(spark, [*two_disks, "/nowhere"], [], [orders()], str(tmp_path), now_ms=NOW_MS)
    assert result.totals["ABSENT"] == 1
    assert result.totals["OK"] == 1
    assert spark.catalog.listTables() == []
    assert {path.name for path in tmp_path.iterdir()} == {"disks", "findings.parquet", "topics.parquet"}


@pytest.mark.spark
def test_without_sizes_no_bytes_are_counted(spark: Any, tmp_path: Path, two_disks: list[str]) -> None:
    result = spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path), now_ms=NOW_MS, sizes=False)
    assert result.totals["DUPLICATE"] == 2
    assert not any(result.bytes.values())


@pytest.mark.spark
def test_a_saved_state_is_read_where_it_lies(spark: Any, tmp_path: Path, two_disks: list[str]) -> None:
    (tmp_path / "saved").mkdir()
    parquet.save_state(orders(), str(tmp_path / "saved"))
    state = parquet.load(str(tmp_path / "saved"))
    assert isinstance(state.replicas, SavedTable)
    saved = spark_engine.audit(spark, two_disks, [], [state], str(tmp_path), now_ms=NOW_MS)
    assert saved.totals == {"OK": 1, "DUPLICATE": 2, "MISSING": 1}


@pytest.mark.spark
def test_an_empty_log_dir_and_no_metadata_give_an_empty_answer(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "meta.properties").write_text("version=1\ncluster.id=C\nnode.id=1\n")
    result = spark_engine.audit(spark, [str(tmp_path / "empty")], [], [], str(tmp_path), now_ms=NOW_MS)
    assert (result.totals, result.count, result.fleet) == ({}, 0, ())
    assert [broker.node_id for broker in result.brokers] == [1]


@pytest.mark.spark
def test_a_log_dir_that_changed_its_broker_meanwhile_is_refused(
    spark: Any, tmp_path: Path, two_disks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(_: object) -> dict[BrokerKey | str, tuple[str, ...]]:
        return {BrokerKey("C", 2): tuple(two_disks)}

    monkeypatch.setattr(spark_trees, "by_broker", before)
    with pytest.raises(RefusedError, match=r"one came to belong to broker 1 of cluster C .*: audit again"):
        spark_engine.audit(spark, two_disks, [], [orders()], str(tmp_path), now_ms=NOW_MS)
    assert not (tmp_path / "findings.parquet").exists()


@pytest.mark.spark
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


def a_task(
    folder: Path, states: list[DesiredState], rows: pa.Table, groups: list[LogDirs], all_rows: bool
) -> TreeAuditTask:
    brokers = {broker_of(row) for row in rows.to_pylist()}
    by_id = by_cluster(states, {broker.cluster for broker in brokers})
    wanted = {
        cluster: desired_tables_in_files(number, state, str(folder))
        for number, (cluster, state) in enumerate(by_id.items())
    }
    return TreeAuditTask(groups, wanted, speaking(by_id, brokers), str(folder), NOW_MS, True, all_rows, None)


def rows_in(paths: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for path in paths for row in pq.read_table(path).to_pylist())


@settings(max_examples=15)
@given(seed=st.integers(min_value=0, max_value=10**9), all_rows=st.booleans())
def test_brokers_judged_one_by_one_give_the_findings_of_the_whole_fleet(
    tmp_path_factory: pytest.TempPathFactory, seed: int, all_rows: bool
) -> None:
    folder = tmp_path_factory.mktemp("tasks")
    rows, states = random_fleet(seed)
    task = a_task(folder, states, rows, [], all_rows)
    brokers: dict[Any, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        brokers.setdefault(broker_of(row) if row["cluster_id"] else row["log_dir"], []).append(row)
    left = [BatchFiles(*(f"{folder}/{number}-{name}" for name in BatchFiles._fields)) for number in range(len(brokers))]
    for part, files in zip(brokers.values(), left, strict=True):
        judge_batch(task, [pa.Table.from_pylist(part, schema=rows.schema)], files)
    (folder / "whole").mkdir()
    whole = embedded.audit([rows], [], states, str(folder / "whole"), now_ms=NOW_MS, all_rows=all_rows)
    assert rows_in([files.findings for files in left]) == rows_in([whole.findings_path])
    disks = pa.concat_tables([pq.read_table(files.disks) for files in left])
    assert sum(disks.column("rows_observed").to_pylist()) == sum(
        row["kind"] not in ("log_dir", "internal") for row in rows.to_pylist()
    )
    searched = pa.concat_tables([pq.read_table(files.rows) for files in left])
    assert searched.num_rows == sum(bool(row["topic_id"]) for row in rows.to_pylist())


def test_a_task_that_is_repeated_meets_nothing_of_its_first_attempt(tmp_path: Path, two_disks: list[str]) -> None:
    groups = [LogDirs((tuple(two_disks),)), LogDirs((("/nowhere",),))]
    task = TreeAuditTask(groups, {}, [], str(tmp_path), NOW_MS, False, True, None)
    (first,), (second,) = (list(audit_groups(task, [0])) for _ in range(2))
    assert not set(first) & set(second)
    assert rows_in([first.findings]) == rows_in([second.findings])
    found = sorted(row["log_dir"] for row in pq.read_table(first.findings).to_pylist())
    assert found == [two_disks[0], two_disks[1], two_disks[1]]


def test_many_rows_are_judged_in_batches_and_a_broker_is_never_cut(
    tmp_path: Path, two_disks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_trees, "BATCH_ROWS", 1)
    task = TreeAuditTask(
        [LogDirs((tuple(two_disks), ("/nowhere",)))], {}, [], str(tmp_path), NOW_MS, False, False, None
    )
    batches = [pq.read_table(left.log_dirs).column("log_dir").to_pylist() for left in audit_groups(task, [0])]
    assert batches == [two_disks, ["/nowhere"]]


def test_a_group_without_log_dirs_leaves_files_without_rows(tmp_path: Path) -> None:
    (left,) = audit_groups(TreeAuditTask([LogDirs(())], {}, [], str(tmp_path), NOW_MS, False, False, None), [0])
    assert [pq.read_table(path).num_rows for path in left] == [0, 0, 0, 0]
