"""``logstore audit --spark`` of inventories in a store, and the history that it adds to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from reconciler.audit import FINDING_SCHEMA
from reconciler.cli import logstore
from reconciler.history import compare_results, list_runs, open_result
from reconciler.sources import save_state
from tests.object_store import BUCKET, ObjectStore
from tests.spark.answers import orders

pytestmark = pytest.mark.spark

PREFIX = f"s3://{BUCKET}/inventories/"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(logstore, [str(each) for each in arguments])


def findings(path: str) -> list[str]:
    return sorted(map(repr, pq.ParquetFile(path).read(FINDING_SCHEMA.names).to_pylist()))


def test_inventories_at_a_prefix_are_judged_and_added_to_a_history_as_without_spark(
    spark: Any, s3: ObjectStore, tmp_path: Path, two_disks: list[str]
) -> None:
    (tmp_path / "metadata").mkdir()
    save_state(orders(), str(tmp_path / "metadata"))
    history = tmp_path / "history"
    assert run("scan", *two_disks, "-o", PREFIX).exit_code == 0
    asked = ("--metadata", f"parquet:{tmp_path}/metadata", "--format", "ndjson", "--history", history)
    embedded = run("audit", PREFIX, *asked)
    sparked = run("audit", PREFIX, *asked, "--spark")
    assert (sparked.exit_code, sorted(sparked.stdout.splitlines())) == (1, sorted(embedded.stdout.splitlines()))
    assert "(spark)" in sparked.stderr
    runs = list_runs(str(history))
    assert len(runs) == 2
    assert findings(runs[0].path("findings")) == findings(runs[1].path("findings")) != []
    old, new = (open_result(text, str(history), 0) for text in (runs[0].run_id, runs[1].run_id))
    difference = compare_results(old, new)
    assert (difference.findings.num_rows, difference.topics, difference.fleet) == (0, [], [])
    # Each engine continues its own runs, and judges again what the other one judged.
    for engine, judged in ((("--spark",), 0), ((), 1), ((), 0)):
        again = run("audit", PREFIX, *asked, "--incremental", *engine)
        assert f"{judged} of 1 broker judged again" in again.stderr
        assert sorted(again.stdout.splitlines()) == sorted(embedded.stdout.splitlines())


def test_trees_beside_inventories_and_trees_alone_are_judged_in_every_run(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    (tmp_path / "metadata").mkdir()
    save_state(orders(), str(tmp_path / "metadata"))
    other = tmp_path / "other"
    other.mkdir()
    (other / "meta.properties").write_text("version=1\ncluster.id=C\nnode.id=2\n")
    assert run("scan", other, "-o", tmp_path / "2.parquet", "--format", "parquet").exit_code == 0
    asked = ("--metadata", f"parquet:{tmp_path}/metadata", "--format", "ndjson", "--spark")
    beside = [*two_disks, tmp_path / "2.parquet"]
    for given, judged in ((beside, "1 of 2 brokers"), (two_disks, "1 of 1 broker")):
        kept = ("--history", tmp_path / f"history of {judged}", "--incremental")
        first, second = (run("audit", *given, *asked, *kept) for _ in range(2))
        assert "every broker was judged" in first.stderr
        assert f"{judged} judged again" in second.stderr
        assert (second.exit_code, sorted(second.stdout.splitlines())) == (1, sorted(first.stdout.splitlines()))
