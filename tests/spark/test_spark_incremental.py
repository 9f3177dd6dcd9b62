"""An incremental audit by Spark says what whole ones say, by Spark and by DuckDB: random fleets, random changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore.rows import (
    ROW_SCHEMA,
    InventoryForm,
    InventorySet,
    inventory_content,
    read_inventory_set,
    write_inventory,
)
from reconciler.audit import TOPICS_FILE, AuditResult, embedded
from reconciler.audit.spark import engine as spark_engine
from reconciler.errors import RefusedError
from reconciler.history import append_run, last_audit
from tests.changing_fleet import ChangingFleet, sorted_findings
from tests.fleets import NOW_MS
from tests.spark.answers import OTHER_ID, assert_same, jobs_begun, orders

pytestmark = pytest.mark.spark


def spark_audit(
    spark: Any, fleet: ChangingFleet, inventories: InventorySet, folder: Path, **how: Any
) -> tuple[AuditResult, list[str]]:
    folder.mkdir(exist_ok=True)
    paths = [*inventories.paths, *scanned_here(fleet, folder)]
    result = spark_engine.audit(
        spark, [], paths, fleet.states, str(folder), now_ms=fleet.now_ms, superseded=inventories.superseded, **how
    )
    return result, sorted_findings(result)


def scanned_here(fleet: ChangingFleet, folder: Path) -> list[str]:
    """Write what the audit scans itself to a file, as a task that lists trees does."""
    if not fleet.scanned:
        return []
    path = folder / "listed.parquet"
    with path.open("wb") as out:
        write_inventory([pa.Table.from_pylist(fleet.scanned, schema=ROW_SCHEMA)], out, InventoryForm.PARQUET)
    return [str(path)]


def run(spark: Any, fleet: ChangingFleet, history: str, folder: Path) -> tuple[int, int]:
    """Audit the fleet as it is now in three ways, and add the incremental run; return the brokers kept, and all."""
    last = last_audit(history, fleet.now_ms)
    earlier = last and last[1]
    inventories = read_inventory_set(fleet.paths)
    contents = {path: inventory_content(path) for path in inventories.paths}
    place = folder / "incremental"
    try:
        whole, findings = spark_audit(spark, fleet, inventories, folder / "whole")
    except RefusedError:
        with pytest.raises(RefusedError):
            spark_audit(spark, fleet, inventories, place, contents=contents, earlier=earlier)
        return 0, 0
    result, found = spark_audit(spark, fleet, inventories, place, contents=contents, earlier=earlier)
    assert found == findings
    assert replace(result, findings_path="") == replace(whole, findings_path="")
    assert_same(result, on_one_machine(fleet, inventories, folder / "duck"))
    of_history = replace(result, audited_ms=len(list(Path(history).rglob("*.parquet"))))
    append_run(history, of_history, str(place / TOPICS_FILE))
    return result.kept, len(result.basis)


def on_one_machine(fleet: ChangingFleet, inventories: InventorySet, folder: Path) -> AuditResult:
    folder.mkdir(exist_ok=True)
    scanned = [pa.Table.from_pylist(fleet.scanned, schema=ROW_SCHEMA)] if fleet.scanned else []
    return embedded.audit(
        scanned, inventories.paths, fleet.states, str(folder), now_ms=fleet.now_ms, superseded=inventories.superseded
    )


@pytest.mark.parametrize("seed", [0, 4])
def test_an_incremental_audit_says_of_a_random_fleet_what_whole_ones_say(spark: Any, tmp_path: Path, seed: int) -> None:
    (tmp_path / "inventories").mkdir()
    fleet, kept, judged = ChangingFleet(seed, tmp_path / "inventories"), 0, 0
    for step in range(4):
        if step:
            fleet.change()
        of_run = run(spark, fleet, str(tmp_path / "history"), tmp_path)
        kept, judged = kept + of_run[0], judged + of_run[1] - of_run[0]
    assert kept > 0 and judged > 0


def written(path: Path, **log_dirs: tuple[int, Sequence[str]]) -> str:
    """Write an inventory of log dirs, each with its broker and with topics whose partition 0 nobody wants there."""
    rows = []
    for name, (node, topics) in log_dirs.items():
        of_log_dir = dict.fromkeys(ROW_SCHEMA.names) | {
            "host": "h", "cluster_id": "C", "node_id": node, "log_dir": f"/disks/{name}", "scanned_ms": NOW_MS - 1,
            "metadata_state": "ok",
        }  # fmt: skip
        rows.append(of_log_dir | {"name": ".", "kind": "log_dir"})
        live = of_log_dir | {"kind": "live", "partition": 0, "topic_id": OTHER_ID, "bytes": 10}
        rows.extend(live | {"name": f"{topic}-0", "topic": topic} for topic in topics)
    with path.open("wb") as out:
        write_inventory([pa.Table.from_pylist(rows, schema=ROW_SCHEMA)], out, InventoryForm.PARQUET)
    return str(path)


def test_a_copy_that_went_from_one_broker_makes_that_of_a_broker_not_judged_again_the_only_one(
    spark: Any, tmp_path: Path
) -> None:
    one = written(tmp_path / "one.parquet", a=(1, ["gone"]), b=(2, []))
    two = written(tmp_path / "two.parquet", c=(2, ["gone"]))
    kept: list[int] = []
    begun: list[int] = []
    history = str(tmp_path / "history")
    for step in range(3):
        if step == 1:
            # Broker 2 is judged again by rows of both files, and those of broker 1 beside them are not.
            written(tmp_path / "two.parquet", c=(2, []))
        folder = tmp_path / str(step)
        folder.mkdir()
        contents = {path: inventory_content(path) for path in (one, two)}
        last, before = last_audit(history, NOW_MS), jobs_begun(spark)
        result = spark_engine.audit(
            spark, [], [one, two], [orders()], str(folder), now_ms=NOW_MS, contents=contents, earlier=last and last[1]
        )
        begun.append(jobs_begun(spark) - before)
        kept.append(result.kept)
        (folder / "duck").mkdir()
        assert_same(result, embedded.audit([], [one, two], [orders()], str(folder / "duck"), now_ms=NOW_MS))
        assert ("ONLY_KNOWN_COPY" in {finding.kind for finding in result.fleet}) is (step > 0)
        append_run(history, replace(result, audited_ms=NOW_MS + step), str(folder / TOPICS_FILE))
    assert kept == [0, 1, 2]
    assert begun[2] < begun[1]  # the join was not asked for
