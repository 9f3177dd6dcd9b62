"""The changes of a control request, done or planned, as a table for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.broker import ActionResult, PartitionKey
from reconciler.cli.frame import Format, destination, open_page
from reconciler.next_steps import Call, undo_of_staging
from reconciler.plan import ActionKind
from reconciler.protocol import ControlRequest, ControlResponse, LeaderAndIsrRequest
from reconciler.text import NOTHING, Column, moment

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""

WORDS = {
    ActionKind.STAGE: "staged",
    ActionKind.RESTORE: "restored",
    ActionKind.CREATE: "created",
    ActionKind.WRITE_TOPIC_ID: "topic_id_written",
}
"""Kind of action → its word in reports, in their order."""

_COLUMNS = (
    *(
        Column("ANSWER"),
        Column("REPLICA", path=True),
        Column("TOPIC ID"),
        Column("VERDICT"),
        Column("WHAT"),
        Column("WHERE", path=True),
    ),
    *(Column("DUE"), Column("UNDO", command=True)),
)
_STYLES = {"NONE": "green", NOTHING: "yellow"}


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A request and its outcome.

    Attributes:
        request: the request that was sent.
        location: the path of its file.
        node_id: the ID of the broker.
        dry_run: whether nothing was changed.
        response: the answer of the broker.
        verdicts: the verdict of each partition that a LeaderAndIsr names and the broker has or should have.
        changes: the actions that are done, or would be.
        refused: why the request would be refused, one sentence for each shut gate.
        call: how the command was called, for the undo of what was staged.
    """

    request: ControlRequest
    location: str
    node_id: int
    dry_run: bool
    response: ControlResponse
    verdicts: Mapping[PartitionKey, str]
    changes: Sequence[ActionResult]
    refused: Sequence[str] = ()
    call: Call = field(default_factory=Call)


def error_name(number: int) -> str:
    """Return Kafka's name of an error."""
    return KafkaError(number).name if number in tuple(KafkaError) else str(number)


def undo_of(change: ActionResult, call: Call) -> str | None:
    """Return the command that restores a staged replica; None for other changes."""
    action = change.action
    if action.kind is not ActionKind.STAGE:
        return None
    home = call if call.log_dirs else replace(call, log_dirs=(change.log_dir,))
    return undo_of_staging(home, action.topic, action.partition, action.topic_id or str(TopicId.ZERO)).text


def write_report(report: RequestReport, form: Format, output: str | None) -> None:
    """Write a report to standard output or to a file."""
    if form is Format.TABLE:
        with open_page(output) as opened:
            rows = list(_rows(report))
            if rows:
                opened.table(_COLUMNS, rows, _STYLES)
            elif error := report.response.error:
                opened.line(f"No partition is answered: the whole request is, with {error_name(error)} ({int(error)}).")
            else:
                opened.line("Everything is as the request wants it.")
        return
    with destination(output) as out:
        out.write(f"{json.dumps(_document(report), indent=2)}\n".encode())


def _answers(report: RequestReport) -> Iterator[tuple[PartitionKey, str | None, int]]:
    for topic in report.response.topics:
        topic_id = None if topic.topic_id is None else str(topic.topic_id)
        for each in topic.partitions:
            yield (topic.topic, each.partition), topic_id, each.error


def _in_order(changes: Sequence[ActionResult]) -> list[ActionResult]:
    order = list(WORDS)
    return sorted(changes, key=lambda each: (order.index(each.action.kind), each.action.topic, each.action.partition))


def _rows(report: RequestReport) -> Iterator[tuple[str, ...]]:
    """Yield the changes of the partitions of the request, then of partitions that it does not name."""
    left: dict[PartitionKey, list[ActionResult]] = {}
    for change in _in_order(report.changes):
        left.setdefault((change.action.topic, change.action.partition), []).append(change)
    for key, topic_id, error in _answers(report):
        verdict = report.verdicts.get(key, NOTHING)
        cells = (error_name(error), f"{key[0]}-{key[1]}", topic_id or NOTHING, verdict)
        found = left.pop(key, [])
        if not found and error:
            yield (*cells, "nothing", NOTHING, NOTHING, NOTHING)
        for change in found:
            yield (*cells, *_cells(change, report.call))
    for several in left.values():
        for change in several:
            name = str(change.action.replica)
            yield (NOTHING, name, change.topic_id or NOTHING, change.action.verdict, *_cells(change, report.call))


def _cells(change: ActionResult, call: Call) -> tuple[str, ...]:
    what = WORDS[change.action.kind].replace("_", " ")
    return what, f"{change.log_dir}/{change.location}", moment(change.due_ms), undo_of(change, call) or NOTHING


def _fields(change: ActionResult, call: Call) -> dict[str, object]:
    action = change.action
    verdict, why = (action.verdict, action.why) if action.kind is ActionKind.STAGE else ("", "")
    return {
        "kind": WORDS[action.kind],
        "topic": action.topic,
        "partition": action.partition,
        "topic_id": change.topic_id,
        "log_dir": change.log_dir,
        "location": change.location,
        "verdict": verdict,
        "evidence": why,
        "due_ms": change.due_ms,
        "undo": undo_of(change, call),
    }


def _document(report: RequestReport) -> dict[str, object]:
    request = report.request
    leads = isinstance(request, LeaderAndIsrRequest)
    return {
        "schema_version": SCHEMA_VERSION,
        "request": {
            "kind": "LeaderAndIsr" if leads else "StopReplica",
            "type": request.type.name if isinstance(request, LeaderAndIsrRequest) else None,
            "location": report.location,
            "controller_id": request.controller_id,
            "controller_epoch": request.controller_epoch,
            "broker_epoch": request.broker_epoch,
        },
        "node_id": report.node_id,
        "dry_run": report.dry_run,
        "refused": list(report.refused),
        "error": int(report.response.error),
        "error_name": error_name(report.response.error),
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "topic_id": topic_id,
                "error": int(error),
                "error_name": error_name(error),
                "verdict": report.verdicts.get((topic, partition)),
            }
            for (topic, partition), topic_id, error in _answers(report)
        ],
        "changes": [_fields(each, report.call) for each in _in_order(report.changes)],
    }
