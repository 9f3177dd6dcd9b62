"""What an audit hands on, read from a Parquet dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.audit import FINDING_SCHEMA, AuditResult
from reconciler.audit.fleet import FleetFinding


def finding(verdict: str, broker: int | None = 1, partition: int = 0) -> dict[str, Any]:
    return dict.fromkeys(FINDING_SCHEMA.names) | {
        "verdict": verdict,
        "broker": broker,
        "topic": "t",
        "partition": partition,
    }


def result(path: Path, *findings: dict[str, Any], fleet: tuple[FleetFinding, ...] = ()) -> AuditResult:
    pq.write_table(pa.Table.from_pylist(list(findings), schema=FINDING_SCHEMA), path)
    totals: dict[str, int] = {}
    for row in findings:
        totals[row["verdict"]] = totals.get(row["verdict"], 0) + 1
    return AuditResult("embedded", 0, (), (), totals, {}, fleet, str(path))


def test_findings_are_counted_and_read_from_one_file(tmp_path: Path) -> None:
    audit = result(tmp_path / "f.parquet", finding("MISSING"), finding("STRAY"))
    assert audit.count == 2
    assert sum(batch.num_rows for batch in audit.batches()) == 2


def test_findings_may_be_a_folder_of_files(tmp_path: Path) -> None:
    one = result(tmp_path / "1.parquet", finding("MISSING"))
    result(tmp_path / "2.parquet", finding("STRAY"))
    both = AuditResult("spark", 0, (), (), {"MISSING": 1, "STRAY": 1}, {}, (), str(tmp_path))
    assert (one.count, both.count) == (1, 2)
    assert both.most_urgent(9)["verdict"].to_pylist() == ["MISSING", "STRAY"]


def test_the_most_urgent_come_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    rows = [finding("STRAY"), finding("DAMAGED", 2), finding("DAMAGED", 1, 9), finding("DAMAGED", 1, 3), finding("OK")]
    audit = result(tmp_path / "f.parquet", *rows)
    told = [(row["verdict"], row["broker"], row["partition"]) for row in audit.most_urgent(4).to_pylist()]
    assert told == [("DAMAGED", 1, 3), ("DAMAGED", 1, 9), ("DAMAGED", 2, 0), ("STRAY", 1, 0)]
    assert audit.most_urgent(1).num_rows == 1


def test_no_findings_give_an_empty_table_with_the_columns(tmp_path: Path) -> None:
    assert result(tmp_path / "f.parquet").most_urgent(5).schema.names == FINDING_SCHEMA.names


def test_an_audit_with_only_benign_verdicts_is_clean(tmp_path: Path) -> None:
    assert result(tmp_path / "f.parquet", finding("STAGED"), finding("OK"), finding("IN_FLIGHT")).is_clean


def test_one_stale_replica_makes_it_unclean(tmp_path: Path) -> None:
    assert not result(tmp_path / "f.parquet", finding("OK"), finding("STALE_ID")).is_clean


def test_a_fleet_finding_makes_it_unclean(tmp_path: Path) -> None:
    assert not result(tmp_path / "f.parquet", fleet=(FleetFinding("DUPLICATE_NODE_ID", None, "1", "twice"),)).is_clean
