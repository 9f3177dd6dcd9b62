"""An incremental audit says what a whole one says: random fleets, random changes, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from logstore.rows import ROW_SCHEMA, inventory_content, read_inventory_set
from reconciler.audit import TOPICS_FILE, AuditResult, EarlierAudit, audit, duckdb_join
from reconciler.errors import RefusedError
from reconciler.history import append_run, last_audit
from tests.changing_fleet import ChangingFleet, sorted_findings


def audit_fleet(fleet: ChangingFleet, folder: Path, earlier: EarlierAudit | None) -> AuditResult:
    folder.mkdir(exist_ok=True)
    inventories = read_inventory_set(fleet.paths)
    contents = {path: inventory_content(path) for path in inventories.paths}
    tables = [pa.Table.from_pylist(fleet.scanned, schema=ROW_SCHEMA)] if fleet.scanned else []
    return audit(
        tables, inventories.paths, fleet.states, str(folder), now_ms=fleet.now_ms, contents=contents,
        superseded=inventories.superseded, earlier=earlier,
    )  # fmt: skip


def run(fleet: ChangingFleet, history: str, folder: Path) -> tuple[int, int]:
    """Audit the fleet as it is now in both ways, and add the incremental run; return the brokers kept, and all."""
    last = last_audit(history, fleet.now_ms)
    try:
        whole = audit_fleet(fleet, folder / "whole", None)
    except RefusedError:
        with pytest.raises(RefusedError):
            audit_fleet(fleet, folder / "incremental", last and last[1])
        return 0, 0
    result = audit_fleet(fleet, folder / "incremental", last and last[1])
    assert sorted_findings(result) == sorted_findings(whole)
    assert replace(result, findings_path="", audited_ms=0) == replace(whole, findings_path="", audited_ms=0)
    append_run(history, replace(result, audited_ms=len(list(Path(history).rglob("*.parquet")))), topics_of(folder))
    return result.kept, len(result.basis)


def topics_of(folder: Path) -> str:
    return str(folder / "incremental" / TOPICS_FILE)


SEEDS = (0, 4)
STEPS = 4


def totals_of_seeds(seeds: Sequence[int], folder: Path) -> tuple[int, int]:
    kept = judged = 0
    for seed in seeds:
        place = folder / str(seed)
        (place / "inventories").mkdir(parents=True)
        fleet = ChangingFleet(seed, place / "inventories")
        for step in range(STEPS):
            if step:
                fleet.change()
            of_run = run(fleet, str(place / "history"), place)
            kept, judged = kept + of_run[0], judged + of_run[1] - of_run[0]
    return kept, judged


def test_an_incremental_audit_says_of_random_fleets_what_a_whole_one_says(tmp_path: Path) -> None:
    kept, judged = totals_of_seeds(SEEDS, tmp_path)
    assert kept > 5 and judged > 5


def test_it_says_the_same_where_clusters_are_joined_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_join, "ROWS_JOINED_AT_ONCE", 0)
    kept, _ = totals_of_seeds(SEEDS[:1], tmp_path)
    assert kept > 0
