"""``logstore staged``: lists staged replicas and the strays that a broker left. Takes no lock and changes nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from layout.ids import TopicId
from logstore import LogStoreError
from logstore.log_dir import FallbackRecords, LogDirView, ReadOnlyLogDir
from logstore.purge import measure_removal
from logstore.staging import (
    BROKERS_STRAY,
    Staged,
    damaged_lines,
    find_staged,
    open_staging_root,
    planned_restore,
)
from reconciler.cli.frame import (
    Exit,
    Format,
    check_output,
    destination,
    fallback_records,
    log_dirs_in,
    open_page,
    read_policy,
    say_step,
    warn,
    warn_unfinished,
)
from reconciler.next_steps import Call, Step, step_of_strays
from reconciler.policy import PolicyRules
from reconciler.text import NOTHING, Column, age, count, csv_text, moment, size

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""


@dataclass(frozen=True, slots=True)
class StagedRow:
    """A staged directory, with the fields of the formats for programs.

    Attributes:
        log_dir: path of the log dir.
        location: the value for ``--location``.
        state: ``due``, ``staged``, ``held`` (the policy keeps it, due or not), ``stray`` (a broker left it), or
            ``damaged`` (its record is unusable).
        topic: full name; None: unknown.
        partition: None: unknown.
        topic_id: None: it has none, or it is unknown.
        bytes: the bytes that a purge would free.
        files: number of files, without the record.
        staged_ms: when it was staged, in ms since 1970.
        due_ms: when a purge may take it.
        verdict: why it was staged.
        returns_to: the path below its log dir to which ``logstore restore`` would move it; None: unknown.
        problem: why it cannot be purged or restored, in one sentence.
        held: the rule of the policy that keeps it from every purge; None: there is none.
    """

    log_dir: str
    location: str
    state: str
    topic: str | None
    partition: int | None
    topic_id: str | None
    bytes: int | None
    files: int | None
    staged_ms: int | None
    due_ms: int | None
    verdict: str | None
    returns_to: str | None
    problem: str | None
    held: str | None


def run(
    *, paths: tuple[str, ...], form: str, output: str | None, fallback_folder: str | None, **broker: str | None
) -> Exit:
    """List what is staged in log dirs, and the '-stray' directories that a broker left."""
    log_dirs = log_dirs_in(paths)
    check_output(Format(form), output, log_dirs)
    now_ms = time.time_ns() // 1_000_000
    rules = read_policy(broker["policy"])
    rows, unreadable = _rows(log_dirs, fallback_records(fallback_folder), rules, now_ms)
    strays = sum(row.state == "stray" for row in rows)
    steps = [step_of_strays(strays, Call(paths, (), fallback_folder, **broker))] if strays else []
    match Format(form):
        case Format.TABLE:
            _show(rows, output, now_ms, readable=len(log_dirs) - len(unreadable), unreadable=len(unreadable))
        case other:
            with destination(output) as out:
                out.write(_text(other, rows, steps).encode("utf-8", "surrogateescape"))
    for problem in unreadable:
        warn(problem)
    warn_unfinished(log_dirs)
    for step in steps:
        say_step(step)
    return Exit.PARTLY_FAILED if unreadable else Exit.CLEAN


def _rows(
    log_dirs: Sequence[str], fallback: FallbackRecords, rules: PolicyRules, now_ms: int
) -> tuple[list[StagedRow], list[str]]:
    rows, unreadable = [], []
    for path in log_dirs:
        try:
            with ReadOnlyLogDir.open(path) as log_dir:
                rows += [_row(log_dir, staged, rules, now_ms) for staged in find_staged(log_dir, fallback)]
                for sentence in damaged_lines(log_dir, fallback):
                    warn(f"{sentence}; what it said is lost, and the lines round it are not")
        except LogStoreError as error:
            unreadable.append(str(error))
        except OSError as error:
            unreadable.append(f"{path}: what is staged cannot be listed: {error.strerror}")
    return rows, unreadable


def _row(log_dir: LogDirView, staged: Staged, rules: PolicyRules, now_ms: int) -> StagedRow:
    record, problem, home = staged.record, staged.problem, None
    try:
        home = planned_restore(log_dir, staged).path
    except LogStoreError as error:
        problem = problem or str(error)
    files, number_of_bytes = _weigh(log_dir, staged)
    held = None if record is None else rules.forbids_removal(staged.topic, now_ms)
    return StagedRow(
        log_dir=log_dir.path,
        location=staged.location,
        state=_state(staged, now_ms) if held is None else "held",
        topic=staged.topic,
        partition=None if staged.partition is None else staged.partition.partition,
        topic_id=str(staged.topic_id) if staged.topic_id not in (None, TopicId.ZERO) else None,
        bytes=number_of_bytes,
        files=files,
        staged_ms=None if record is None else record.staged_ms,
        due_ms=staged.due_ms,
        verdict=None if record is None else record.verdict,
        returns_to=home,
        problem=problem,
        held=held,
    )


def _state(staged: Staged, now_ms: int) -> str:
    if staged.record is not None:
        return "due" if staged.is_due(now_ms) else "staged"

    return "stray" if staged.problem == BROKERS_STRAY else "damaged"


def _weigh(log_dir: LogDirView, staged: Staged) -> tuple[int | None, int | None]:
    """Count files and bytes; None: the directory cannot be read, or is gone by now."""
    try:
        root = open_staging_root(log_dir, staged.placement)
        if root is None:
            return None, None
        with root, root.child(staged.name) as directory:
            found = measure_removal(directory, {})
    except (LogStoreError, OSError):
        return None, None
    return found.files, found.bytes


def _text(form: Format, rows: Sequence[StagedRow], steps: Sequence[Step]) -> str:
    if form is Format.JSON:
        listed = {"rows": [asdict(row) for row in rows], "next": [step.as_row() for step in steps]}
        return json.dumps({"schema_version": SCHEMA_VERSION, **listed}) + "\n"
    if form is Format.NDJSON:
        return "".join(json.dumps({"schema_version": SCHEMA_VERSION, **asdict(row)}) + "\n" for row in rows)
    return csv_text([field.name for field in fields(StagedRow)], map(asdict, rows))


def _show(rows: Sequence[StagedRow], output: str | None, now_ms: int, *, readable: int, unreadable: int) -> None:
    columns = (
        Column("STATE"), Column("WAS", path=True), Column("TOPIC ID"), Column("SIZE", right=True), Column("STAGED"),
        Column("DUE"), Column("VERDICT"), Column("LOCATION", path=True),
        Column("RETURNS TO, OR WHAT STANDS IN THE WAY", prose=True),
    )  # fmt: skip
    with open_page(output) as opened:
        for log_dir in dict.fromkeys(row.log_dir for row in rows):
            below = [row for row in rows if row.log_dir == log_dir]
            due = sum(row.bytes or 0 for row in below if row.state == "due")
            opened.line(f"{log_dir}: {count(len(below), 'directory', 'directories')}, {size(due)} of them due", "bold")
            opened.table(
                columns,
                (_cells(row, now_ms) for row in below),
                {"due": "yellow", "held": "cyan", "stray": "yellow", "damaged": "red"},
            )
            opened.line()
        if not rows and readable:
            where = f" in {count(readable, 'log dir')} of {count(readable + unreadable)}" if unreadable else ""
            opened.line(f"nothing is staged{where}")


def _cells(row: StagedRow, now_ms: int) -> tuple[str, ...]:
    due = NOTHING if row.due_ms is None else f"{moment(row.due_ms)} ({_distance(now_ms - row.due_ms)})"
    return (
        row.state,
        NOTHING if row.topic is None else f"{row.topic}-{row.partition}",
        row.topic_id or NOTHING,
        size(row.bytes),
        moment(row.staged_ms),
        due,
        row.verdict or NOTHING,
        row.location,
        " · ".join(filter(None, (row.held, row.problem or row.returns_to))) or NOTHING,
    )


def _distance(milliseconds: int) -> str:
    return age(milliseconds) if milliseconds < 0 else f"overdue by {age(milliseconds)}"
