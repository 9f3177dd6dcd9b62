"""The sums of the page come from all findings, however many there are."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.audit import AuditResult
from reconciler.audit.fleet import FleetFinding, HeldTopicId
from reconciler.audit.report.tallies import tally
from reconciler.verdicts import IGNORED_FILE, Severity, Verdict

Make = Callable[..., AuditResult]


def test_findings_are_added_up_by_broker_and_verdict(make_result: Make) -> None:
    stray = {"verdict": "STRAY", "disk_bytes": 5}
    result = make_result(stray, stray, stray | {"broker": 2}, {"verdict": "OK"}, {"verdict": "MISSING", "broker": None})
    cells = {(cell.broker[1], cell.verdict): (cell.rows, cell.disk_bytes) for cell in tally(result).cells}
    assert cells == {(1, Verdict.STRAY): (2, 10), (2, Verdict.STRAY): (1, 5), (None, Verdict.MISSING): (1, 0)}


def test_the_copy_of_a_duplicate_that_stays_is_not_reclaimable(make_result: Make) -> None:
    copies = [{"verdict": "DUPLICATE", "copy_rank": rank, "disk_bytes": rank * 10} for rank in (1, 2)]
    damaged = {"verdict": "DAMAGED", "disk_bytes": 7}
    cells = tally(make_result(*copies, damaged, {"verdict": "STAGED", "disk_bytes": 4})).cells
    assert {(cell.verdict, cell.disk_bytes) for cell in cells if cell.is_reclaimable} == {
        (Verdict.DUPLICATE, 20),
        (Verdict.STAGED, 4),
    }


def test_what_a_broker_ignores_is_calm(make_result: Make) -> None:
    rows = [{"verdict": "FOREIGN", "evidence": text} for text in (f"{IGNORED_FILE} of somebody", "the name has no '-'")]
    assert {cell.severity for cell in tally(make_result(*rows)).cells} == {Severity.CALM, Severity.CRITICAL}


def test_the_worst_topics_have_critical_findings_then_space(make_result: Make) -> None:
    rows = [
        {"verdict": "STRAY", "topic": "large", "disk_bytes": 900, "broker": 3},
        {"verdict": "STRAY", "topic": "large", "disk_bytes": 90, "broker": 1},
        {"verdict": "NOT_ASSIGNED", "topic": "large", "disk_bytes": 9, "broker": 1},
        {"verdict": "STALE_ID", "topic": "broken", "disk_bytes": 1},
        {"verdict": "STRAY", "topic": "small", "disk_bytes": 1},
        {"verdict": "STAGED", "topic": "staged", "disk_bytes": 10_000},
        {"verdict": "ABSENT", "topic": None},
    ]
    topics = tally(make_result(*rows)).topics
    assert [each.topic for each in topics] == ["broken", "large", "small"]
    assert topics[1].brokers == [1, 3]
    assert list(topics[1].verdicts.items()) == [(Verdict.NOT_ASSIGNED, 1), (Verdict.STRAY, 2)]
    assert topics[1].disk_bytes == 999


def test_holders_are_told_of_topics_under_several_ids_alone(make_result: Make) -> None:
    live = {"verdict": "STALE_ID", "kind": "live", "disk_topic_id": "old"}
    rows = [live | {"topic": topic, "broker": broker} for topic, broker in (("t", 3), ("t", 1), ("t", 3), ("u", 1))]
    fleet = FleetFinding("TOPIC_UNDER_SEVERAL_IDS", "c1", "t", "seen", held=(HeldTopicId("old", False, 3, 1, 3),))
    assert tally(make_result(*rows, fleet=(fleet,))).holders == {("c1", "t", "old"): (3, [1, 3])}
    assert tally(make_result(*rows)).holders == {}


def test_an_audit_without_findings_has_no_sums(make_result: Make) -> None:
    assert tally(make_result(ok=3)) == ([], [], {})
