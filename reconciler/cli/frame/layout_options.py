"""What the commands share that change names and layout: a store that is opened for it, and how the steps are shown.

A dry run makes the same plan as the change itself and stops there, so it says exactly what would be done. It takes the
locks too, for a plan of disks that change meanwhile is worth nothing; where opening a log dir would begin with sorting
out what a crash left, a dry run refuses.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from logstore.namespaces import carry_out
from reconciler.cli.frame.exits import Exit, say
from reconciler.cli.frame.options import output_options
from reconciler.cli.frame.output import Format, check_output, destination
from reconciler.errors import RefusedError, UsageError
from reconciler.text import count

if TYPE_CHECKING:
    from logstore.namespaces import PlannedChange
    from logstore.store import LogStore

Function = TypeVar("Function", bound=Callable[..., Any])

SCHEMA_VERSION = 1
"""Of the JSON; raised whenever a field changes its meaning or goes."""

TEXT_FORMATS = (Format.TABLE, Format.JSON, Format.NDJSON, Format.CSV)


def change_options(function: Function) -> Function:
    """The options ``--dry-run``, ``--format``, ``-o`` and ``--spare-records``, alike in every command of this kind."""
    from reconciler.cli.frame.staging_options import spare_option

    function = output_options(*TEXT_FORMATS)(spare_option(function))
    return click.option("--dry-run", is_flag=True, help="Show every step that would be taken, and take none.")(function)


def change_store(
    paths: tuple[str, ...],
    plan: Callable[[LogStore], PlannedChange],
    *,
    dry_run: bool,
    form: str,
    output: str | None,
    spare_records: str | None,
) -> Exit:
    """Plan a change of a store and carry it out, or show what it would do; 4: not in every log dir, one is offline.

    Args:
        paths: log dirs of one broker, all of them.
        plan: makes the plan.
        dry_run: stop after the plan.
        form: how the steps are written; a table of them is shown by a dry run alone.
        output: file for them.
        spare_records: folder of records that found no room.

    Raises:
        UsageError: a path, a name or an option that cannot be used.
        RefusedError: the change would do harm or makes no sense.
        LogStoreError: the system refused, or a disk failed.
    """
    from reconciler.cli.frame.staging_options import log_dirs_in

    log_dirs = log_dirs_in(paths)
    check_output(Format(form), output, log_dirs)
    with opened(log_dirs, spare_records, dry_run=dry_run) as store:
        planned = plan(store)
        if not dry_run:
            carry_out(store, planned)
        code = Exit.PARTLY_FAILED if store.offline else Exit.CLEAN
    _write(planned, Format(form), output, dry_run=dry_run)
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
def opened(log_dirs: tuple[str, ...], spare_records: str | None, *, dry_run: bool) -> Iterator[LogStore]:
    """Open the log dirs of one broker; what is refused inside comes out as the command line's own error.

    Raises:
        UsageError, RefusedError: as :func:`change_store`.
    """
    from layout.errors import InvalidNameError
    from logstore import ChangeRefusedError, UnknownReplicaError
    from logstore.store import LogStore, StoreOptions
    from reconciler.cli.frame.staging_options import spare_records as spare_folder

    if dry_run:
        for path in log_dirs:
            refuse_unsorted(path)
    try:
        with LogStore.open(log_dirs, StoreOptions(spare_records=spare_folder(spare_records).folder)) as store:
            for path, reason in store.offline.items():
                say(f"{path} is offline: {reason}")
            yield store
    except (InvalidNameError, UnknownReplicaError) as error:
        raise UsageError(str(error)) from error
    except ChangeRefusedError as error:
        raise RefusedError(str(error)) from error


def refuse_unsorted(path: str) -> None:
    """Refuse a log dir in which the next one to open it has work to do.

    Raises:
        RefusedError: a crash left something half done, or somebody is at work there right now.
    """
    from layout.scheme import INTENT_FILE, UNCLEAN_FILE

    for name in (INTENT_FILE, UNCLEAN_FILE):
        if os.path.lexists(f"{path}/{name}"):
            raise RefusedError(
                f"{path}/{name} says that a change is under way there or was cut short by a crash; running the command "
                "without --dry-run first brings that to its end"
            )


def _amount(planned: PlannedChange) -> str:
    return f"{count(len(planned.intent.steps), 'step')} in {count(len(planned.log_dirs), 'log dir')}"


def _write(planned: PlannedChange, form: Format, output: str | None, *, dry_run: bool) -> None:
    """Write the steps; a table of what was done already helps nobody."""
    if form is Format.TABLE and not dry_run:
        return
    rows = [{"log_dir": log_dir, "step": step} for log_dir, step in planned.lines()]
    head = {
        "schema_version": SCHEMA_VERSION,
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
        _show(rows, columns, output)
        return
    with destination(output) as out:
        match form:
            case Format.JSON:
                out.write(f"{json.dumps(document, indent=2)}\n".encode())
            case Format.NDJSON:
                for row in rows:
                    out.write(f"{json.dumps({'schema_version': SCHEMA_VERSION, **row})}\n".encode())
            case _:
                text = io.StringIO()
                writer = csv.DictWriter(text, columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
                out.write(text.getvalue().encode("utf-8", "backslashreplace"))


def _show(rows: list[dict[str, Any]], columns: tuple[str, ...], output: str | None) -> None:
    from reconciler.cli.frame.tables import Column, open_page

    with open_page(output) as opened_page:
        if rows:
            titles = [Column(name.upper().replace("_", " "), right=type(rows[0][name]) is int) for name in columns]
            opened_page.table(titles, ([str(row[name]) for name in columns] for row in rows), {})
