"""Plans, repair plans and their outcomes, as tables for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from layout.ours import RepairPlan
from logstore.repair import RepairOutcome, RepairStatus, UndoOutcome
from reconciler.cli.frame import Column, Format, Page, destination, open_page
from reconciler.plan import STAGING_ACTIONS, Action, AppliedAction, ApplyOutcome, Plan
from reconciler.text import NOTHING, count, moment, size

SCHEMA_VERSION = 1
"""Version of the JSON of an outcome; a plan has its own."""

_STATUS_STYLES = {
    RepairStatus.SKIPPED.value: "yellow",
    RepairStatus.FAILED.value: "bold red",
    RepairStatus.DONE.value: "green",
}

_PLAN_COLUMNS = (
    Column("ACTION"), Column("REPLICA"), Column("SIZE", right=True), Column("SINCE"), Column("MODIFIED"),
    Column("VERDICT"), Column("WHERE", path=True), Column("WHY"), Column("UNDO"),
)  # fmt: skip


_NOT_DETAILS = ("source", "location", "timestamp_ms")


def show_plan(plan: Plan) -> None:
    """Write a plan to standard output: each action with its place, size, reason and undo."""
    with open_page(None) as opened:
        for source in plan.metadata:
            details = [f"{key} {value}" for key, value in source.items() if key not in _NOT_DETAILS]
            as_of = source.get("timestamp_ms", "")
            details += [f"as of {moment(int(as_of))}" if as_of.isdecimal() else "as of a time that it does not say"]
            opened.line(", ".join([f"metadata: {source.get('source')} {source.get('location')}", *details]))
        for log_dir in plan.log_dirs:
            of_log_dir = [action for action in plan.actions if action.log_dir == log_dir.path]
            if of_log_dir:
                _show_log_dir(opened, log_dir.path, log_dir.staging, of_log_dir)
        _show_left(opened, plan)
        opened.line()
        opened.line("Verdicts: " + (", ".join(f"{name} {number:,}" for name, number in plan.counts.items()) or "none"))
        for kind, total in plan.totals().items():
            opened.line(f"{kind}: {count(total['actions'], 'action')}, {size(total['bytes'])}")
        due = [action.due_ms for action in plan.actions if action.due_ms is not None]
        if due:
            opened.line(f"A purge may take what is staged from {moment(min(due))} on, if the plan is applied now.")


def write_outcome(outcome: ApplyOutcome, form: Format, output: str | None) -> None:
    """Write the result of each action of a plan."""
    rows = [_plan_row(each) for each in outcome.results]
    if form is Format.TABLE:
        with open_page(output) as opened:
            _show_outcome(opened, outcome.results)
        return
    with destination(output) as out:
        if form is Format.JSON:
            document = {"schema_version": SCHEMA_VERSION, "results": rows, "journals": outcome.journals}
            out.write(f"{json.dumps({**document, 'notes': outcome.notes}, indent=2)}\n".encode())
        else:
            for row in rows:
                out.write(f"{json.dumps({'schema_version': SCHEMA_VERSION, **row})}\n".encode())


def _show_log_dir(opened: Page, path: str, staging: str, actions: Sequence[Action]) -> None:
    opened.line()
    head = f"{path}: {count(len(actions), 'action')}, {size(sum(each.frees for each in actions))}"
    stages = any(action.kind in STAGING_ACTIONS for action in actions)
    opened.line(f"{head}; staged in {staging}" if stages else head, "bold")
    rows = [
        (
            each.kind.value,
            str(each.replica),
            size(each.bytes if each.disk_bytes is None else each.disk_bytes),
            moment(each.created_ms),
            moment(each.modified_ms),
            each.verdict,
            each.name,
            each.why,
            each.undo or NOTHING,
        )
        for each in actions
    ]
    opened.table(_PLAN_COLUMNS, rows, {})


def _show_left(opened: Page, plan: Plan) -> None:
    if not plan.left_alone:
        return
    opened.line()
    opened.line("Left alone", "bold")
    left = [
        (each.verdict, f"{each.log_dir}/{each.name}" if each.log_dir else each.name, each.reason, each.next)
        for each in plan.left_alone
    ]
    opened.table((Column("VERDICT"), Column("WHERE", path=True), Column("BECAUSE"), Column("NEXT")), left, {})


def _plan_row(each: AppliedAction) -> dict[str, object]:
    action = {key: value for key, value in asdict(each.action).items() if value is not None}
    return {"status": each.status.value, "detail": each.detail, **action}


def _show_outcome(opened: Page, results: Sequence[AppliedAction]) -> None:
    if not results:
        opened.line("There was nothing to do.")
        return
    rows = [
        (
            each.status.value,
            each.action.kind.value,
            str(each.action.replica),
            size(each.action.bytes if each.action.disk_bytes is None else each.action.disk_bytes),
            f"{each.action.log_dir}/{each.action.name}",
            each.detail,
        )
        for each in results
    ]
    columns = (
        *(Column("STATUS"), Column("ACTION"), Column("REPLICA"), Column("SIZE", right=True)),
        *(Column("WHERE", path=True), Column("DETAIL")),
    )
    opened.table(columns, rows, _STATUS_STYLES)


def show_repair_plan(plan: RepairPlan) -> None:
    """Write a repair plan to standard output: each action with its place and reason, and what is left alone."""
    with open_page(None) as opened:
        if not plan.actions:
            opened.line("There is nothing that can be repaired.")
        else:
            opened.line(count(len(plan.actions), "action"), "bold")
            rows = [(each.kind.value, f"{each.log_dir}/{each.path}", each.evidence) for each in plan.actions]
            opened.table((Column("ACTION"), Column("WHERE", path=True), Column("WHY")), rows, {})
        if plan.left_alone:
            opened.line()
            opened.line("Left alone", "bold")
            left = [(f"{each.log_dir}/{each.path}".removesuffix("/."), each.reason) for each in plan.left_alone]
            opened.table((Column("WHERE", path=True), Column("BECAUSE")), left, {})


def write_repair_outcome(outcome: RepairOutcome, form: Format, output: str | None) -> None:
    """Write the result of each action of a plan."""
    results = [
        {
            "status": each.status.value,
            "kind": each.action.kind.value,
            "log_dir": each.action.log_dir,
            "path": each.action.path,
            "detail": each.detail,
        }
        for each in outcome.results
    ]
    _write_repair({"results": results, "backups": outcome.backups}, results, form, output)


def write_undone(outcomes: Sequence[UndoOutcome], form: Format, output: str | None) -> None:
    """Write the result for each file that a backup holds."""
    results = [
        {
            "status": each.status.value,
            "kind": "undo",
            "log_dir": outcome.log_dir,
            "path": each.path,
            "detail": each.detail,
        }
        for outcome in outcomes
        for each in outcome.results
    ]
    _write_repair({"results": results}, results, form, output)


def _write_repair(
    document: dict[str, Any], results: Sequence[dict[str, str]], form: Format, output: str | None
) -> None:
    if form is Format.JSON:
        with destination(output) as out:
            # Paths may hold bytes that are not UTF-8, which orjson refuses as they stand.
            text = _printable({"schema_version": SCHEMA_VERSION, **document})
            out.write(orjson.dumps(text, option=orjson.OPT_INDENT_2) + b"\n")
        return
    with open_page(output) as opened:
        if not results:
            opened.line("There was nothing to do.")
            return
        rows = [(each["status"], each["kind"], f"{each['log_dir']}/{each['path']}", each["detail"]) for each in results]
        opened.table(
            (Column("STATUS"), Column("ACTION"), Column("WHERE", path=True), Column("DETAIL")), rows, _STATUS_STYLES
        )


def _printable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        case dict():
            return {key: _printable(each) for key, each in value.items()}
        case list():
            return [_printable(each) for each in value]
    return value
