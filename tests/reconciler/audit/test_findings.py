"""The order and the sets of verdicts that reports rely on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.audit import FINDING_SCHEMA, findings
from reconciler.audit.findings import StoredFindings
from reconciler.verdicts import BENIGN, URGENCY, Verdict


def test_urgency_orders_every_verdict_once() -> None:
    assert sorted(URGENCY) == sorted(Verdict)


def test_benign_verdicts_stand_at_the_end_of_the_order() -> None:
    tail = URGENCY[-len(BENIGN) :]
    assert set(tail) == BENIGN


def test_nothing_that_could_lose_data_is_benign() -> None:
    harmful = {
        Verdict.ABSENT,
        Verdict.DAMAGED,
        Verdict.DUPLICATE,
        Verdict.STALE_ID,
        Verdict.MISSING,
        Verdict.STAGED_DUE,
    }
    assert not harmful & BENIGN


def test_a_finding_has_the_columns_that_the_json_promises() -> None:
    promised = {
        *("verdict", "broker", "log_dir", "name", "topic", "partition"),
        *("disk_topic_id", "metadata_topic_id", "bytes", "evidence"),
    }
    assert promised <= set(FINDING_SCHEMA.names)


def stored(path: Path) -> StoredFindings:
    """Three findings of two verdicts in a file."""
    rows = [{"verdict": verdict, "name": name} for verdict, name in (("STRAY", "a"), ("MISSING", "b"), ("STRAY", "c"))]
    pq.write_table(pa.Table.from_pylist(rows, schema=FINDING_SCHEMA), path)
    return StoredFindings(str(path))


@pytest.mark.parametrize("few", [0, 2, 3])
def test_findings_of_a_verdict_are_the_same_whether_or_not_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(findings, "FEW", few)
    found = stored(tmp_path / "f.parquet")
    for _ in range(2):
        assert found.of("STRAY").schema == FINDING_SCHEMA
        assert sorted(found.of("STRAY")["name"].to_pylist()) == ["a", "c"]
        assert found.of("MISSING", ["name"]).to_pylist() == [{"name": "b"}]
        assert found.of("OK", ["name"]).to_pylist() == []


def test_few_findings_are_read_once_and_many_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for few, left in ((3, ["a", "c"]), (2, [])):
        monkeypatch.setattr(findings, "FEW", few)
        found = stored(tmp_path / "f.parquet")
        assert found.of("STRAY").num_rows == 2
        pq.write_table(FINDING_SCHEMA.empty_table(), tmp_path / "f.parquet")
        assert found.of("STRAY")["name"].to_pylist() == left
