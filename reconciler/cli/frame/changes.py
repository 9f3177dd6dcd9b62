"""How commands open log dirs to change them, and show the steps of a change of names or scheme.

A dry run makes the same plan as the change itself and stops there, so it shows exactly the steps of the change. It
takes the locks too, because a plan is worthless when the disks change meanwhile; where opening a log dir would begin
with the recovery after a crash, a dry run refuses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.scheme import INTENT_FILE, STAGING_DIR, UNCLEAN_FILE
from logstore import ChangeRefusedError, LogDirInUseError, LogStoreError, NotALogDirError, UnknownReplicaError
from logstore.log_dir import FallbackRecords, LogDir, StagingBeside, find_lock_holder
from logstore.namespaces import PlannedChange, carry_out
from logstore.store import LogStore, StoreOptions, recover_all
from reconciler.cli.frame.inputs import log_dirs_in
from reconciler.cli.frame.lifecycle import Exit, InterruptedRunError, may_be_unread, say, warn
from reconciler.cli.frame.options import fallback_records
from reconciler.cli.frame.output import Format, check_output, destination, open_page
from reconciler.errors import RefusedError, UsageError
from reconciler.text import Column, count, csv_text, listed

CHANGE_SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""


def change_store(
    paths: tuple[str, ...],
    plan: Callable[[LogStore], PlannedChange],
    *,
    dry_run: bool,
    form: str,
    output: str | None,
    fallback_folder: str | None,
) -> Exit:
    """Plan a change of a store and carry it out, or show its steps; the exit code is 4 if a log dir is offline.

    The paths are all the log dirs of one broker. Only a dry run, which stops after the plan, shows a table of its
    steps.

    Raises:
        UsageError: a path, a name or an option cannot be used.
        RefusedError: the change would do harm or makes no sense.
        LogStoreError: the system refused, or a disk failed.
    """
    log_dirs = log_dirs_in(paths)
    if dry_run or output is not None or Format(form) is not Format.TABLE:
        check_output(Format(form), output, log_dirs)
    with _say_begun(log_dirs), open_store(log_dirs, fallback_folder, dry_run=dry_run) as store:
        planned = plan(store)
        if not dry_run:
            carry_out(store, planned)
        code = Exit.PARTLY_FAILED if store.offline else Exit.CLEAN
    with nullcontext() if dry_run else may_be_unread():
        _write_steps(planned, Format(form), output, dry_run=dry_run)
    for note in planned.notes:
        say(note)
    if not planned.intent.steps:
        say(f"{planned.intent.sentence}: there is nothing to do")
    elif dry_run:
        say(f"{planned.intent.sentence}: this would take {_amount(planned)}; nothing was changed")
    else:
        say(f"{planned.intent.sentence}: done, {_amount(planned)}")
    return code


@contextmanager
def _say_begun(log_dirs: tuple[str, ...]) -> Iterator[None]:
    """Say of an interrupted change that is begun that it does not stay so, whatever command opens the log dirs next.

    Raises:
        InterruptedRunError: it is begun.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        begun = _begun(log_dirs)
        if not begun:
            raise
        raise InterruptedRunError(
            f"interrupted in the middle of a change: {listed(begun)} must not be used like this. The next command that "
            "opens the log dirs to change them brings it to its end first, wholly done or wholly undone; the same "
            "command does"
        ) from error


def _begun(log_dirs: Iterable[str]) -> list[str]:
    """List the log dirs in which a change of many steps is begun."""
    return [path for path in log_dirs if os.path.lexists(f"{path}/{INTENT_FILE}")]


def warn_unfinished(log_dirs: Iterable[str]) -> None:
    """Say of each log dir in which a change of many steps is begun that what is found there is half of it."""
    for path in _begun(log_dirs):
        warn(
            f"{path}: a change of many steps is under way there, or was cut short by a crash, so what is found is half "
            "of it; 'logstore doctor' says how it comes to its end"
        )


@contextmanager
def open_store(log_dirs: tuple[str, ...], fallback_folder: str | None, *, dry_run: bool) -> Iterator[LogStore]:
    """Open the log dirs of one broker; refusals of the engine become errors of the command line.

    Raises:
        UsageError, RefusedError: as :func:`change_store`.
    """
    if dry_run:
        for path in log_dirs:
            refuse_unrecovered(path)
    cut_short = _begun(log_dirs)
    try:
        with LogStore.open(log_dirs, StoreOptions(fallback_records=fallback_records(fallback_folder).folder)) as store:
            if cut_short and not _begun(log_dirs):
                # It may be the very change that is asked for now, which then finds nothing of the old name.
                say("a change that was cut short here has been brought to its end")
            for path, reason in store.offline.items():
                warn(f"{path} is offline: {reason}")
            yield store
    except (InvalidNameError, UnknownReplicaError) as error:
        raise UsageError(str(error)) from error
    except ChangeRefusedError as error:
        raise RefusedError(str(error)) from error


def refuse_unrecovered(path: str) -> None:
    """Refuse a log dir that must be recovered when it is opened.

    Raises:
        RefusedError: a crash left a change unfinished, or a process is changing the log dir right now.
    """
    for name in (INTENT_FILE, UNCLEAN_FILE):
        if os.path.lexists(f"{path}/{name}"):
            raise RefusedError(
                f"{path}/{name} says that a change is under way there or was cut short by a crash; running the command "
                "without --dry-run first brings that to its end"
            )


def _amount(planned: PlannedChange) -> str:
    return f"{count(len(planned.intent.steps), 'step')} in {count(len(planned.log_dirs), 'log dir')}"


def _write_steps(planned: PlannedChange, form: Format, output: str | None, *, dry_run: bool) -> None:
    """Write the steps; a table of steps that are done already helps nobody."""
    if form is Format.TABLE and not dry_run:
        return
    rows = [{"log_dir": log_dir, "step": step} for log_dir, step in planned.lines()]
    head = {
        "schema_version": CHANGE_SCHEMA_VERSION,
        "operation": planned.intent.operation,
        "sentence": planned.intent.sentence,
        "dry_run": dry_run,
    }
    write_change(rows, ("log_dir", "step"), form, output, {**head, "steps": rows, "notes": list(planned.notes)})


def write_change(
    rows: list[dict[str, Any]], columns: tuple[str, ...], form: Format, output: str | None, document: dict[str, Any]
) -> None:
    """Write rows as a table, NDJSON or CSV, or a whole document as JSON."""
    if form is Format.TABLE:
        _write_table(rows, columns, output)
        return
    with destination(output) as out:
        match form:
            case Format.JSON:
                out.write(f"{json.dumps(document, indent=2)}\n".encode())
            case Format.NDJSON:
                for row in rows:
                    out.write(f"{json.dumps({'schema_version': CHANGE_SCHEMA_VERSION, **row})}\n".encode())
            case _:
                out.write(csv_text(columns, rows).encode("utf-8", "backslashreplace"))


def _write_table(rows: list[dict[str, Any]], columns: tuple[str, ...], output: str | None) -> None:
    with open_page(output) as opened_page:
        if rows:
            titles = [
                Column(
                    name.upper().replace("_", " "),
                    right=type(rows[0][name]) is int,
                    path=name in ("log_dir", "namespace"),
                    prose=name == "step",
                )
                for name in columns
            ]
            opened_page.table(titles, ([str(row[name]) for name in columns] for row in rows), {})


def why_in_use(path: str) -> str | None:
    """Say why a log dir is locked, in the words of a failed lock; None: no process holds it. Takes no lock."""
    holder = find_lock_holder(os.path.abspath(path))
    if holder is None:
        return None
    return (
        f"{os.path.abspath(path)} is in use by {holder}: stop the broker, or whatever else works on this log dir, first"
    )


def say_in_use(path: str) -> bool:
    """Say that a process holds the lock of a log dir, which is only looked at; False, and not a word: it is free."""
    holder = find_lock_holder(os.path.abspath(path))
    if holder is not None:
        say(f"{os.path.abspath(path)} is in use by {holder}; this is only a look")
    return holder is not None


class OpenedLogDirs:
    """Log dirs that were opened to be changed, and the exit codes of the log dirs that could not be."""

    def __init__(self, stack: ExitStack) -> None:
        """Take the stack that closes the log dirs."""
        self.log_dirs: list[LogDir] = []
        self.beside: list[StagingBeside] = []
        self._stack = stack
        self._codes: list[Exit] = []

    def open(self, paths: Iterable[str], fallback: FallbackRecords, *, beside: bool = False) -> None:
        """Lock, open and recover log dirs; for each that cannot be opened, say why.

        ``beside``: of a log dir that is in use, open what is staged beside it alone.
        """
        for path in paths:
            try:
                try:
                    self.log_dirs.append(self._stack.enter_context(LogDir.open(path)))
                except LogDirInUseError:
                    if not beside:
                        raise
                    self.beside.append(self._stack.enter_context(StagingBeside.open(path)))
            except LogDirInUseError as error:
                self.refuse(str(error), Exit.REFUSED)
            except NotALogDirError as error:
                self.refuse(str(error), Exit.USAGE)
            except LogStoreError as error:
                self.refuse(str(error), Exit.PARTLY_FAILED)
        try:
            # A change between several log dirs can be finished only when all of them are open.
            recover_all(self.log_dirs, fallback)
        except LogStoreError as error:
            self.refuse(str(error), Exit.PARTLY_FAILED)
            self.log_dirs = []

    def keep_beside(self) -> None:
        """Keep what is staged beside the log dirs, and let go of the log dirs, so that a broker may be started.

        A log dir whose own lock alone guards what is staged beside it stays open.
        """
        left, self.log_dirs = self.log_dirs, []
        for log_dir in left:
            try:
                beside = None if log_dir.is_ours or log_dir.offline is not None else StagingBeside.take_over(log_dir)
            except LogStoreError as error:
                self.refuse(str(error), Exit.PARTLY_FAILED)
                continue
            if beside is not None:
                self.beside.append(self._stack.enter_context(beside))
            elif not log_dir.is_ours and os.path.lexists(f"{log_dir.path}.{STAGING_DIR}"):
                self.log_dirs.append(log_dir)
            else:
                log_dir.close()  # nothing lies beside it

    def refuse(self, sentence: str, code: Exit) -> None:
        """Say why a log dir is left out."""
        warn(sentence)
        self._codes.append(code)

    def code(self, worked: int) -> Exit:
        """Return the exit code: the gravest refusal if no log dir was worked on, else partly failed, else clean."""
        if not self._codes:
            return Exit.CLEAN
        return Exit.PARTLY_FAILED if worked else max(self._codes)


def describe_staged(partition: object | None, topic_id: TopicId | None) -> str:
    """Describe a staged directory in a line for people: its partition and topic ID, as far as they are known."""
    what = "nobody knows what" if partition is None else str(partition)
    if topic_id == TopicId.ZERO:
        return f"{what}, without a topic ID"
    return f"{what}, topic ID {topic_id or 'unknown'}"
