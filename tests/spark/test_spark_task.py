"""What a task leaves: together, tasks find what one join over the whole fleet finds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")

from reconciler.audit import embedded
from reconciler.audit.spark import trees as spark_task
from reconciler.audit.spark.log_dirs import LogDirs
from reconciler.audit.spark.trees import BatchFiles, TreeAuditTask, audit_groups, desired_tables_in_files, judge_batch
from reconciler.desired import DesiredState, by_cluster, speaking
from reconciler.verdicts import broker_of
from tests.fleets import NOW_MS, random_fleet


def a_task(
    folder: Path, states: list[DesiredState], rows: pa.Table, groups: list[LogDirs], all_rows: bool
) -> TreeAuditTask:
    brokers = {broker_of(row) for row in rows.to_pylist()}
    by_id = by_cluster(states, {broker.cluster for broker in brokers})
    wanted = {
        cluster: desired_tables_in_files(number, state, str(folder))
        for number, (cluster, state) in enumerate(by_id.items())
    }
    return TreeAuditTask(groups, wanted, speaking(by_id, brokers), str(folder), NOW_MS, True, all_rows)


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
    assert sum(disks.column("rows_observed").to_pylist()) == sum(row["kind"] != "log_dir" for row in rows.to_pylist())
    observed = pa.concat_tables([pq.read_table(files.observed) for files in left])
    assert observed.num_rows == sum(bool(row["topic_id"]) for row in rows.to_pylist())


def test_a_task_that_is_repeated_meets_nothing_of_its_first_attempt(tmp_path: Path, two_disks: list[str]) -> None:
    groups = [LogDirs((tuple(two_disks),)), LogDirs((("/nowhere",),))]
    task = TreeAuditTask(groups, {}, [], str(tmp_path), NOW_MS, False, True)
    (first,), (second,) = (list(audit_groups(task, [0])) for _ in range(2))
    assert not set(first) & set(second)
    assert rows_in([first.findings]) == rows_in([second.findings])
    found = sorted(row["log_dir"] for row in pq.read_table(first.findings).to_pylist())
    assert found == [two_disks[0], two_disks[1], two_disks[1]]


def test_many_rows_are_judged_in_batches_and_a_broker_is_never_cut(
    tmp_path: Path, two_disks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_task, "BATCH_ROWS", 1)
    task = TreeAuditTask([LogDirs((tuple(two_disks), ("/nowhere",)))], {}, [], str(tmp_path), NOW_MS, False, False)
    batches = [pq.read_table(left.log_dirs).column("log_dir").to_pylist() for left in audit_groups(task, [0])]
    assert batches == [two_disks, ["/nowhere"]]


def test_a_group_without_log_dirs_leaves_files_without_rows(tmp_path: Path) -> None:
    (left,) = audit_groups(TreeAuditTask([LogDirs(())], {}, [], str(tmp_path), NOW_MS, False, False), [0])
    assert [pq.read_table(path).num_rows for path in left] == [0, 0, 0, 0]
