"""Repair plans and what became of them, as tables for people and as JSON. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from layout.ours import RepairPlan
from logstore.repair import RepairOutcome, RepairStatus, UndoOutcome
from reconciler.cli.frame import Column, Format, destination, open_page
from reconciler.text import count

SCHEMA_VERSION = 1
"""Of the JSON of an outcome; a plan has its own."""

_STYLES = {
    RepairStatus.SKIPPED.value: "yellow",
    RepairStatus.FAILED.value: "bold red",
    RepairStatus.DONE.value: "green",
}


def show_repair_plan(plan: RepairPlan) -> None:
    """Write a plan to standard output: action, where, why; and what is left alone."""
    with open_page(None) as opened:
        if not plan.actions:
            opened.line("There is nothing that can be repaired.")
        else:
            opened.line(count(len(plan.actions), "action"), "bold")
            rows = [(each.kind.value, f"{each.log_dir}/{each.path}", each.evidence) for each in plan.actions]
            opened.table((Column("ACTION"), Column("WHERE"), Column("WHY")), rows, {})
        if plan.left_alone:
            opened.line()
            opened.line("Left alone", "bold")
            left = [(f"{each.log_dir}/{each.path}".removesuffix("/."), each.reason) for each in plan.left_alone]
            opened.table((Column("WHERE"), Column("BECAUSE")), left, {})


def write_repair_outcome(outcome: RepairOutcome, form: Format, output: str | None) -> None:
    """Write what became of each action of a plan."""
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
    _write({"results": results, "backups": outcome.backups}, results, form, output)


def write_undone(outcomes: Sequence[UndoOutcome], form: Format, output: str | None) -> None:
    """Write what became of each file that a backup holds."""
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
    _write({"results": results}, results, form, output)


def _write(document: dict[str, Any], results: Sequence[dict[str, str]], form: Format, output: str | None) -> None:
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
        opened.table((Column("STATUS"), Column("ACTION"), Column("WHERE"), Column("DETAIL")), rows, _STYLES)


def _printable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        case dict():
            return {key: _printable(each) for key, each in value.items()}
        case list():
            return [_printable(each) for each in value]
    return value
