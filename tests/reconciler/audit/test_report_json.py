"""The JSON of an audit: totals first, findings after them, nothing lost."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reconciler.audit import FINDING_SCHEMA, AuditResult, by_urgency, report_json
from reconciler.audit.fleet import FleetFinding
from reconciler.verdicts import Verdict

Make = Callable[..., AuditResult]
STRAY, STALE = {"verdict": "STRAY", "bytes": 5}, {"verdict": "STALE_ID", "bytes": 7}


def document(result: AuditResult, *verdicts: Verdict) -> dict[str, Any]:
    out = io.BytesIO()
    report_json.write_findings(result, out, *([verdicts] if verdicts else []))
    read: dict[str, Any] = json.loads(out.getvalue())
    return read


def test_the_document_has_the_promised_parts_in_the_promised_order(make_result: Make) -> None:
    assert list(document(make_result(STRAY, STALE, ok=3))) == [
        "schema_version", "engine", "audited_ms", "metadata", "metadata_sources", "brokers", "totals", "bytes",
        "disk_bytes", "doubts", "accepted", "allowed", "fleet", "notes", "next", "findings",
    ]  # fmt: skip


def test_totals_bytes_and_findings_say_the_same(make_result: Make) -> None:
    read = document(make_result(STRAY, STALE, STRAY, ok=3))
    assert read["totals"] == {"STRAY": 2, "STALE_ID": 1, "OK": 3}
    assert read["bytes"] == {"STRAY": 10, "STALE_ID": 7, "OK": 3000}
    assert read["disk_bytes"]["OK"] == 2700 and set(read["disk_bytes"]) == set(read["bytes"])
    assert [finding["verdict"] for finding in read["findings"]] == ["STALE_ID", "STRAY", "STRAY"]
    assert list(read["findings"][0]) == [*FINDING_SCHEMA.names, "next"]


def test_the_metadata_is_reported_with_its_age(make_result: Make) -> None:
    read = document(make_result())
    assert read["metadata"]["age_ms"] == 60_000
    assert (read["metadata"]["cluster_id"], read["metadata"]["offset"]) == ("c1", 42)
    assert read["metadata_sources"] == [read["metadata"]]


def test_the_metadata_is_null_without_a_source_and_with_several(make_result: Make) -> None:
    result = make_result()
    assert document(replace(result, metadata=()))["metadata"] is None
    several = document(replace(result, metadata=result.metadata * 2))
    assert several["metadata"] is None
    assert len(several["metadata_sources"]) == 2


def test_the_scope_of_a_source_is_a_sorted_list(make_result: Make) -> None:
    result = make_result()
    one = replace(result.metadata[0], scope=frozenset({3, 1}), timestamp_ms=None)
    read = document(replace(result, metadata=(one,)))
    assert (read["metadata"]["scope"], read["metadata"]["age_ms"]) == ([1, 3], None)


def test_only_the_verdicts_that_were_asked_for_are_listed_and_totals_stay(make_result: Make) -> None:
    read = document(make_result(STRAY, STALE), Verdict.STRAY)
    assert [finding["verdict"] for finding in read["findings"]] == ["STRAY"]
    assert read["totals"] == {"STRAY": 1, "STALE_ID": 1}


def test_an_audit_without_findings_has_an_empty_list(make_result: Make) -> None:
    assert document(make_result(ok=1))["findings"] == []


def test_findings_of_a_huge_verdict_come_unsorted_but_complete(
    make_result: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_json, "SORTED_MOST", 2)
    read = document(make_result(STRAY, STALE, STRAY, STRAY))
    assert [finding["verdict"] for finding in read["findings"]] == ["STALE_ID", "STRAY", "STRAY", "STRAY"]


def test_bytes_that_were_not_counted_are_null_and_not_zero(make_result: Make) -> None:
    read = document(make_result({"verdict": "STRAY"}, bytes={}, disk_bytes={}))
    assert (read["bytes"], read["brokers"][0]["bytes"]) == ({}, None)


def test_the_summary_is_the_document_without_findings(make_result: Make, fleet_finding: FleetFinding) -> None:
    out = io.BytesIO()
    result = make_result(STRAY, fleet=(fleet_finding,), notes=("a note",))
    report_json.write_summary(result, out)
    read = json.loads(out.getvalue())
    complete = document(result)
    del complete["findings"]
    assert read == complete
    assert (read["fleet"][0]["subject"], read["notes"]) == ("orders", ["a note"])


def test_findings_come_verdict_by_verdict_and_sorted_within_each(make_result: Make) -> None:
    result = make_result(STRAY | {"broker": 2}, STALE, STRAY)
    tables = list(by_urgency(result, (Verdict.STRAY, Verdict.STALE_ID)))
    assert [table.column("verdict").to_pylist() for table in tables] == [["STRAY", "STRAY"], ["STALE_ID"]]
    assert tables[0].column("broker").to_pylist() == [1, 2]
