"""A plan, and what was done by one or taken back, as tables for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logstore.repair import RepairStatus, UndoOutcome
from reconciler.cli.frame import Format, Page, destination, open_page
from reconciler.next_steps import Step
from reconciler.plan import STAGING_ACTIONS, Action, ApplyOutcome, Plan, action_fields
from reconciler.text import NOTHING, Column, count, moment, size

SCHEMA_VERSION = 1
"""Version of the JSON of an outcome; a plan has its own."""

_STATUS_STYLES = {
    RepairStatus.SKIPPED.value: "yellow",
    RepairStatus.FAILED.value: "bold red",
    RepairStatus.DONE.value: "green",
}

_PLAN_COLUMNS = (
    Column("ACTION"), Column("REPLICA", path=True), Column("SIZE", right=True), Column("SINCE"), Column("MODIFIED"),
    Column("VERDICT"), Column("WHERE", path=True), Column("WHY", prose=True), Column("UNDO", command=True),
)  # fmt: skip

_LEFT_COLUMNS = (
    Column("VERDICT"), Column("WHERE", path=True), Column("BECAUSE", prose=True), Column("NEXT", command=True),
)  # fmt: skip

_NOT_DETAILS = ("source", "location", "timestamp_ms")


def show_plan(plan: Plan, *, nothing: str | None = None) -> None:
    """Write a plan to standard output: each action with its place, size, reason and undo.

    Args:
        plan: of any actions.
        nothing: what is said instead of a plan without actions; what it leaves alone is shown all the same.
    """
    with open_page(None) as opened:
        if nothing is not None and not plan.actions:
            opened.line(nothing)
            _show_left(opened, plan)
            return
        for source in plan.metadata:
            # FULL is the kind of a source that mentions everything, which one that is not whole does not.
            passed_over = (*_NOT_DETAILS, "completeness") if "ends_early" in source else _NOT_DETAILS
            details = [f"{key} {value}" for key, value in source.items() if key not in passed_over]
            as_of = source.get("timestamp_ms", "")
            details += [f"as of {moment(int(as_of))}" if as_of.isdecimal() else "as of a time that it does not say"]
            opened.line(", ".join([f"metadata: {source.get('source')} {source.get('location')}", *details]))
        for log_dir in plan.log_dirs:
            of_log_dir = [action for action in plan.actions if action.log_dir == log_dir.path]
            if of_log_dir:
                _show_log_dir(opened, log_dir.path, log_dir.staging, of_log_dir)
        _show_left(opened, plan)
        opened.line()
        if not plan.repairs_only:
            counts = ", ".join(f"{name} {number:,}" for name, number in plan.counts.items())
            opened.line(f"Verdicts: {counts or 'none'}")
        for kind, total in plan.totals().items():
            opened.line(f"{kind}: {_number(total['actions'], total['bytes'])}")
        due = [action.due_ms for action in plan.actions if action.due_ms is not None]
        if due:
            opened.line(f"A purge may take what is staged from {moment(min(due))} on, if the plan is applied now.")


def _show_log_dir(opened: Page, path: str, staging: str | None, actions: Sequence[Action]) -> None:
    opened.line()
    head = f"{path}: {_number(len(actions), sum(each.frees for each in actions))}"
    stages = any(action.kind in STAGING_ACTIONS for action in actions)
    opened.line(f"{head}; staged in {staging}" if stages else head, "bold")
    rows = [
        (
            each.kind.value,
            str(each.replica) if each.topic else NOTHING,
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
    _table(opened, _PLAN_COLUMNS, rows)


def _number(actions: int, freed: int) -> str:
    """Say how many actions there are, and how many bytes they free; a repair frees none."""
    return f"{count(actions, 'action')}, {size(freed)}" if freed else count(actions, "action")


def _show_left(opened: Page, plan: Plan) -> None:
    if not plan.left_alone:
        return
    opened.line()
    opened.line("Left alone", "bold")
    left = [
        (
            each.verdict or NOTHING,
            f"{each.log_dir}/{each.name}".removesuffix("/.") if each.log_dir else each.name,
            each.reason,
            each.next or NOTHING,
        )
        for each in plan.left_alone
    ]
    _table(opened, _LEFT_COLUMNS, left)


def _table(
    opened: Page, columns: Sequence[Column], rows: Sequence[Sequence[str]], styles: Mapping[str, str] | None = None
) -> None:
    """Write a table without the columns in which nothing stands."""
    filled = [number for number in range(len(columns)) if any(row[number] not in ("", NOTHING) for row in rows)]
    shown = [[row[number] for number in filled] for row in rows]
    opened.table([columns[number] for number in filled], shown, styles or {})


def write_outcome(
    outcome: ApplyOutcome, form: Format, output: str | None, undo: Iterable[Step] = (), steps: Iterable[Step] = ()
) -> None:
    """Write the result of each action of a plan; JSON has how it is taken back, and the next ``steps``, as well."""
    rows = [
        {
            "status": each.status.value,
            "detail": each.detail,
            **action_fields(each.action),
            "fingerprint": each.action.fingerprint,
        }
        for each in outcome.results
    ]
    more: dict[str, list[Any]] = {"journals": outcome.journals, "backups": outcome.backups, "notes": outcome.notes}
    more |= {"undo": [step.as_row() for step in undo], "next": [step.as_row() for step in steps]}
    _write_done(rows, more, form, output)


def write_undone(outcomes: Sequence[UndoOutcome], form: Format, output: str | None) -> None:
    """Write the result for each file that a backup holds."""
    rows = [
        {
            "status": each.status.value,
            "detail": each.detail,
            "kind": "undo",
            "log_dir": outcome.log_dir,
            "name": each.path,
        }
        for outcome in outcomes
        for each in outcome.results
    ]
    _write_done(rows, {}, form, output)


def _write_done(
    rows: Sequence[Mapping[str, Any]], more: Mapping[str, list[Any]], form: Format, output: str | None
) -> None:
    """Write what was done, a row for each change; ``more`` stands beside the rows in JSON."""
    if form is Format.TABLE:
        with open_page(output) as opened:
            _show_done(opened, rows)
        return
    with destination(output) as out:
        if form is Format.JSON:
            document = {"schema_version": SCHEMA_VERSION, "results": rows, **more}
            out.write(f"{json.dumps(document, indent=2)}\n".encode())
        else:
            for row in rows:
                out.write(f"{json.dumps({'schema_version': SCHEMA_VERSION, **row})}\n".encode())


def _show_done(opened: Page, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        opened.line("There was nothing to do.")
        return
    cells = [
        (
            row["status"],
            row["kind"],
            f"{row['topic']}-{row['partition']}" if "topic" in row else NOTHING,
            size(row.get("disk_bytes", row.get("bytes"))),
            f"{row['log_dir']}/{row['name']}",
            row["detail"],
        )
        for row in rows
    ]
    columns = (
        *(Column("STATUS"), Column("ACTION"), Column("REPLICA", path=True), Column("SIZE", right=True)),
        *(Column("WHERE", path=True), Column("DETAIL", prose=True)),
    )
    _table(opened, columns, cells, _STATUS_STYLES)
