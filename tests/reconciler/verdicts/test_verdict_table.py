"""The case table, one joined row for each of its cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from reconciler.verdicts import CASES, Doubt, JoinedRow, Verdict, case_number, plainly_in_order

A, B = "UXyU9i5ARn6W00ON2taeWA", "cxBT72dK4si8Ied1iP4wBA"

ON_DISK = JoinedRow(on_disk=True, kind="live", state="ok", topic="orders", disk_topic_id=A, copies=1)
JUDGED = replace(ON_DISK, judged=True, complete=True)
WANTED = replace(JUDGED, wanted=True, wanted_topic_id=A, name_known=True, name_topic_id=A, id_topic="orders")
RECREATED = replace(WANTED, wanted_topic_id=B, name_topic_id=B, id_topic="")
NO_ID = replace(WANTED, state="missing", disk_topic_id="", id_topic="")
GONE = replace(JUDGED, id_topic="", name_known=False)
ABSENT = JoinedRow(
    topic="orders", judged=True, complete=True, wanted=True, wanted_topic_id=A, name_known=True, name_topic_id=A
)

ROWS: tuple[tuple[str, JoinedRow, Verdict], ...] = (
    ("a log dir that is absent", JoinedRow(on_disk=True, kind="log_dir", state="absent"), Verdict.ABSENT),
    ("a log dir without meta.properties", JoinedRow(on_disk=True, kind="log_dir", state="missing"), Verdict.ABSENT),
    ("a log dir that is fine", JoinedRow(on_disk=True, kind="log_dir", state="ok"), Verdict.OK),
    ("a transient file", JoinedRow(on_disk=True, kind="leftover", problem="a crash left it"), Verdict.LEFTOVER),
    ("empty metadata, however wanted", replace(WANTED, state="empty"), Verdict.DAMAGED),
    ("malformed metadata", replace(WANTED, state="malformed"), Verdict.DAMAGED),
    ("a zero topic ID", replace(WANTED, state="zero_id"), Verdict.DAMAGED),
    ("metadata that contradicts its directory", replace(WANTED, state="contradicts"), Verdict.DAMAGED),
    ("unreadable metadata", replace(WANTED, state="unreadable"), Verdict.DAMAGED),
    ("damage in a stray", replace(WANTED, kind="stray", state="empty"), Verdict.DAMAGED),
    ("a checkpoint that does not parse", JoinedRow(True, "checkpoint_entry", "malformed"), Verdict.DAMAGED),
    ("a checkpoint entry alone", JoinedRow(on_disk=True, kind="checkpoint_entry"), Verdict.CHECKPOINT_ENTRY),
    ("a foreign directory", JoinedRow(on_disk=True, kind="foreign", problem="lost+found"), Verdict.FOREIGN),
    ("the cluster metadata log", replace(ON_DISK, kind="internal"), Verdict.OK),
    ("staged and due", replace(JUDGED, kind="staged", due=True), Verdict.STAGED_DUE),
    ("staged and wanted again", replace(WANTED, kind="staged", copies=0), Verdict.STAGED),
    ("staged and wanted, and a live one in its place", replace(WANTED, kind="staged", copies=1), Verdict.STAGED),
    ("staged without a record", replace(JUDGED, kind="staged", problem="no record"), Verdict.STAGED),
    ("staged and not due", replace(JUDGED, kind="staged"), Verdict.STAGED),
    ("marked for deletion, left by a move", replace(WANTED, kind="delete", copies=1), Verdict.MARKED_DELETE),
    ("marked for deletion but wanted", replace(WANTED, kind="delete", copies=0), Verdict.MARKED_DELETE),
    ("marked for deletion", replace(JUDGED, kind="delete"), Verdict.MARKED_DELETE),
    ("a stray that is wanted", replace(WANTED, kind="stray", copies=0), Verdict.STRAY),
    ("a stray that is wanted, and a live one in its place", replace(WANTED, kind="stray", copies=1), Verdict.STRAY),
    ("a stray whose ID lives elsewhere", replace(WANTED, kind="stray", wanted=False), Verdict.STRAY),
    ("a stray of an unknown topic ID", replace(GONE, kind="stray"), Verdict.STRAY),
    ("a stray without metadata to ask", replace(ON_DISK, kind="stray"), Verdict.STRAY),
    ("a move in progress", replace(WANTED, kind="future"), Verdict.FUTURE),
    ("a move, nobody to ask", replace(ON_DISK, kind="future"), Verdict.FUTURE),
    ("a move that has no topic ID yet", replace(NO_ID, kind="future", wanted=False), Verdict.FUTURE),
    (
        "a move without topic ID or live copy",
        replace(NO_ID, kind="future", wanted=False, copies=0),
        Verdict.FUTURE_ABANDONED,
    ),
    (
        "a move without topic ID of a topic that is gone",
        replace(GONE, kind="future", disk_topic_id=""),
        Verdict.FUTURE_ABANDONED,
    ),
    ("a move without its live copy, nobody to ask", replace(ON_DISK, kind="future", copies=0), Verdict.NOT_COMPARED),
    ("a move without its live copy", replace(WANTED, kind="future", copies=0), Verdict.FUTURE_ABANDONED),
    ("a move of a replica not wanted", replace(GONE, kind="future"), Verdict.FUTURE_ABANDONED),
    ("the same partition twice", replace(WANTED, copies=2), Verdict.DUPLICATE),
    ("twice, nobody to ask", replace(ON_DISK, copies=2), Verdict.DUPLICATE),
    ("live, nobody to ask", ON_DISK, Verdict.NOT_COMPARED),
    ("live without an ID, nobody to ask", replace(ON_DISK, disk_topic_id=""), Verdict.NOT_COMPARED),
    ("an ID of another topic", replace(WANTED, id_topic="payments"), Verdict.RENAMED),
    ("an ID of another topic under a re-created name", replace(RECREATED, id_topic="payments"), Verdict.RENAMED),
    ("being moved by a reassignment", replace(WANTED, moving=True), Verdict.IN_FLIGHT),
    ("being moved, without a topic ID", replace(NO_ID, moving=True), Verdict.IN_FLIGHT),
    ("to be moved here, not here yet", replace(ABSENT, moving=True), Verdict.IN_FLIGHT),
    ("no topic ID, wanted under one", NO_ID, Verdict.NO_ID),
    ("as wanted", WANTED, Verdict.OK),
    ("as wanted where the metadata has no IDs", replace(NO_ID, wanted_topic_id="", name_topic_id=""), Verdict.OK),
    ("re-created and wanted here", RECREATED, Verdict.STALE_ID),
    ("re-created and being moved", replace(RECREATED, moving=True), Verdict.STALE_ID),
    ("re-created on other brokers", replace(RECREATED, wanted=False, wanted_topic_id=""), Verdict.STALE_ID),
    ("re-created, by an incremental source", replace(RECREATED, complete=False), Verdict.STALE_ID),
    ("not among the replicas", replace(WANTED, wanted=False), Verdict.NOT_ASSIGNED),
    ("not among the replicas, no ID on the disk", replace(NO_ID, wanted=False), Verdict.NOT_ASSIGNED),
    ("a topic that is gone", GONE, Verdict.UNKNOWN_TOPIC),
    ("a topic that is gone, no ID on the disk", replace(GONE, disk_topic_id=""), Verdict.UNKNOWN_TOPIC),
    ("not mentioned by an incremental source", replace(GONE, complete=False), Verdict.NOT_COMPARED),
    (
        "no ID on the disk, and not placed here by an incremental source",
        replace(NO_ID, wanted=False, complete=False),
        Verdict.NOT_COMPARED,
    ),
    ("absent with its log dir", replace(ABSENT, home_seen=False), Verdict.ABSENT),
    ("wanted and nowhere", ABSENT, Verdict.MISSING),
)


@pytest.mark.parametrize(("row", "verdict"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_row_of_the_table_gives_its_verdict(row: JoinedRow, verdict: Verdict) -> None:
    assert CASES[case_number(row)].verdict is verdict


def test_an_incremental_source_condemns_no_stray_by_its_silence() -> None:
    case = CASES[case_number(replace(GONE, kind="stray", complete=False))]
    assert (case.doubt, case.evidence) == (None, "a broker moved it aside and never deletes it")


CONDEMNED = Doubt.CHANGED_SINCE_METADATA
OPEN_TO = (
    (RECREATED, CONDEMNED),
    (replace(RECREATED, wanted=False, wanted_topic_id=""), CONDEMNED),
    (replace(WANTED, wanted=False), CONDEMNED),
    (replace(NO_ID, wanted=False), CONDEMNED),
    (GONE, CONDEMNED),
    (replace(GONE, disk_topic_id=""), CONDEMNED),
    (replace(WANTED, kind="stray", wanted=False), CONDEMNED),
    (replace(GONE, kind="stray"), CONDEMNED),
    (replace(GONE, kind="future"), CONDEMNED),
    (ABSENT, Doubt.SCANNED_BEFORE_METADATA),
    (replace(ABSENT, home_seen=False), Doubt.SCANNED_BEFORE_METADATA),
)


def test_what_the_metadata_condemns_or_misses_is_open_to_doubt_and_nothing_else() -> None:
    assert {case_number(row): doubt for row, doubt in OPEN_TO} == {
        number: case.doubt for number, case in enumerate(CASES) if case.doubt is not None
    }


def test_every_case_is_reached_by_a_row_above() -> None:
    assert {case_number(row) for _, row, _ in ROWS} == set(range(len(CASES)))


def test_every_verdict_has_a_case() -> None:
    assert {case.verdict for case in CASES} == set(Verdict)


def test_evidence_uses_only_columns_of_the_joined_row() -> None:
    for case in CASES:
        case.evidence.format_map(dict.fromkeys(JoinedRow.__dataclass_fields__, ""))


def test_every_finding_has_evidence() -> None:
    assert all(case.evidence for case in CASES if case.verdict is not Verdict.OK)


IN_ORDER = JoinedRow(
    on_disk=True, kind="live", state="ok", topic="t", disk_topic_id="A", copies=1, wanted=True, wanted_topic_id="A"
)


def test_the_short_way_leads_to_ok_whatever_else_is_said_of_the_row() -> None:
    assert plainly_in_order(IN_ORDER)
    tried = 0
    for due, complete, name_known, home_seen in product([False, True], repeat=4):
        for problem, name_topic_id in product(["", "odd"], ["", "A", "B"]):
            # What the joined row has of a wanted replica whose topic ID lies on the disk: its judge, and its topic.
            row = replace(
                IN_ORDER, judged=True, id_topic="t", due=due, complete=complete, name_known=name_known,
                home_seen=home_seen, problem=problem, name_topic_id=name_topic_id,
            )  # fmt: skip
            assert plainly_in_order(row)
            assert CASES[case_number(row)].verdict is Verdict.OK
            tried += 1
    assert tried == 96


@pytest.mark.parametrize(
    "difference",
    [
        {"kind": "future"},
        {"state": "malformed"},
        {"copies": 2},
        {"copies": 0},
        {"wanted": False},
        {"moving": True},
        {"disk_topic_id": "B"},
        {"disk_topic_id": ""},
        {"disk_topic_id": "", "wanted_topic_id": ""},
    ],
)
def test_nothing_else_goes_the_short_way(difference: dict[str, Any]) -> None:
    assert not plainly_in_order(replace(IN_ORDER, **difference))


def test_a_row_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="neither"):
        case_number(JoinedRow())
