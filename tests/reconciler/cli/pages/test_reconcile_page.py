"""The changes of a request, on a page and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from logstore import KafkaError
from reconciler.broker import ActionResult
from reconciler.cli.frame import Format
from reconciler.cli.pages import WORDS, RequestReport, error_name, write_report
from reconciler.cli.pages.reconcile_page import undo_of
from reconciler.next_steps import Call
from reconciler.plan import Action, ActionKind
from reconciler.protocol import LeaderAndIsrResponse, PartitionError, TopicErrors
from tests.reconciler.protocol.control_requests import FULL, A, B, leader_and_isr, topic

STAGED = ActionResult(
    Action(ActionKind.STAGE, "/a dir", "my orders-3", "my orders", 3, str(A), None, "STALE_ID", "why"),
    *("/a dir", "deleting/x_3", 0),
)
MADE = ActionResult(Action(ActionKind.CREATE, "", "", "orders", 1, None, str(B), "MISSING", "why"), "/d1", "orders-1")
REQUEST = leader_and_isr(FULL, topic("orders", A, 0, 1, 2))


def report(*changes: ActionResult, errors: tuple[int, ...] = (0, 0, 103)) -> RequestReport:
    answers = tuple(PartitionError(number, error) for number, error in enumerate(errors))
    response = LeaderAndIsrResponse(0, (TopicErrors("orders", A, answers),))
    return RequestReport(REQUEST, "r.json", 1, False, response, {("orders", 1): "MISSING"}, changes)


def test_the_page_has_a_line_for_each_change_and_error_and_none_for_what_is_in_order(tmp_path: Path) -> None:
    write_report(report(MADE, STAGED), Format.TABLE, str(tmp_path / "out"))
    title, *lines = (tmp_path / "out").read_text().splitlines()
    assert title.split()[:2] == ["ANSWER", "REPLICA"]
    assert [line.split("  ")[0].strip() for line in lines] == ["NONE", "INCONSISTENT_TOPIC_ID", "–"]
    assert "created" in lines[0]
    assert "orders-2" in lines[1]
    assert "1970-01-01 00:00:00 UTC" in lines[2]


def test_where_nothing_happens_it_says_so(tmp_path: Path) -> None:
    write_report(report(errors=(0, 0, 0)), Format.TABLE, str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "Everything is as the request wants it.\n"


def test_a_request_that_is_refused_whole_is_not_called_carried_out(tmp_path: Path) -> None:
    response = LeaderAndIsrResponse(KafkaError.STALE_CONTROLLER_EPOCH, ())
    write_report(RequestReport(REQUEST, "r.json", 1, True, response, {}, ()), Format.TABLE, str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == (
        "No partition is answered: the whole request is, with STALE_CONTROLLER_EPOCH (11).\n"
    )


def test_json_has_every_answer_and_every_change(tmp_path: Path) -> None:
    write_report(report(MADE, STAGED), Format.JSON, str(tmp_path / "out"))
    document = json.loads((tmp_path / "out").read_text())
    assert [(each["error"], each["error_name"]) for each in document["partitions"]] == [
        (0, "NONE"), (0, "NONE"), (103, "INCONSISTENT_TOPIC_ID")
    ]  # fmt: skip
    assert [each["verdict"] for each in document["partitions"]] == [None, "MISSING", None]
    assert [(each["kind"], each["undo"] is None) for each in document["changes"]] == [
        ("staged", False),
        ("created", True),
    ]
    assert [
        (each["topic_id"], each["location"], each["verdict"], each["evidence"]) for each in document["changes"]
    ] == [
        (str(A), "deleting/x_3", "STALE_ID", "why"),
        (str(B), "orders-1", "", ""),
    ]


def test_the_undo_is_a_command_for_a_shell() -> None:
    expected = f"logstore restore '/a dir' --topic 'my orders' --partition 3 --topic-id={A}"
    assert (undo_of(STAGED, Call()), undo_of(MADE, Call())) == (expected, None)


def test_an_error_that_kafka_does_not_name_stays_a_number() -> None:
    assert (error_name(103), error_name(4711)) == ("INCONSISTENT_TOPIC_ID", "4711")


def test_every_action_that_a_request_decides_has_its_word() -> None:
    assert WORDS == {
        ActionKind.STAGE: "staged",
        ActionKind.RESTORE: "restored",
        ActionKind.CREATE: "created",
        ActionKind.WRITE_TOPIC_ID: "topic_id_written",
    }
