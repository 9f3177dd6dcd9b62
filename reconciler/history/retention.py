"""Removes the oldest days of a history: only files that a run wrote, and only whole days.

The days are counted back from today, as this machine has it. Where its clock is years off, that would be all that there
is, so nothing is removed where the runs on both sides of the cut are too far apart.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from statistics import median

from logstore import InventoryStoreError, LogStoreError
from logstore.fs import TEMPORARY, Directory, Disk, remove_file
from logstore.rows import is_uri, join_uri, list_uri, remove_uri
from reconciler.errors import HistoryError
from reconciler.history.delta import LOG, remove_from_delta_tables
from reconciler.history.tables import SUFFIX, TABLES, day_of, is_run_id, list_runs


def remove_old_days(folder: str, days: int, now_ms: int, disk: Disk | None = None) -> list[str]:
    """Remove the runs of all days but the newest ``days``, today counted; return the removed days, oldest first.

    What no run wrote stays, and the folder of its day with it. The days leave Delta tables first; then the totals go,
    by which a run counts, so that a run that is half removed is none.

    Raises:
        HistoryError: something cannot be removed, or nothing was, because a clock seems to be wrong.
        UsageError: the history cannot be listed.
    """
    first = _first_day(days, now_ms)
    _check_clock(folder, days, first, now_ms)
    if is_uri(folder):
        return _remove_at_uri(folder, first)
    disk = disk or Disk()
    removed = set()
    remove_from_delta_tables(folder, first)
    try:
        for table in reversed(TABLES):
            with suppress(FileNotFoundError), Directory.open(os.path.join(folder, table)) as opened:
                for name in opened.directories():
                    day = day_of(name)
                    if day is not None and day < first and _remove_day(disk, opened, name):
                        removed.add(day)
    except (OSError, LogStoreError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _not_removed(folder, reason) from error
    return sorted(removed)


def _first_day(days: int, now_ms: int) -> str:
    return (datetime.fromtimestamp(now_ms // 1000, UTC).date() - timedelta(days=days - 1)).isoformat()


_FEW_DAYS = 31
"""The longest time between two runs of which nobody wonders, whatever is usual in a history."""


def _check_clock(folder: str, days: int, first: str, now_ms: int) -> None:
    """Refuse to remove runs that end long before those which stay, as all do when a clock is years too late.

    Long is longer than what is to be kept, and than twice the time that is usual between two of the runs.

    Raises:
        HistoryError: the clock of this machine, or that of an earlier run, seems to be wrong.
    """
    found = sorted({day for run in list_runs(folder) if (day := _date(run.day)) is not None})
    old = [day for day in found if day.isoformat() < first]
    if not old:
        return
    today = datetime.fromtimestamp(now_ms // 1000, UTC).date()
    next_day = next((day for day in found if day.isoformat() >= first), today)
    usual = median((after - before).days for before, after in pairwise(old)) if len(old) > 1 else 0
    gap = (next_day - old[-1]).days
    if gap > max(days, 2 * usual, _FEW_DAYS):
        raise HistoryError(
            f"--history-days {days}: nothing was removed from {folder}, because between what is to go, until "
            f"{old[-1]}, and the next run, of {next_day}, lie {gap:,} days, as if a clock was wrong; by that of this "
            f"machine today is {today}. Remove the runs of days that never were; where all days are right, those until "
            f"{old[-1]}"
        )


def _date(day: str) -> date | None:
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None  # digits that are no date, which no run wrote


def _not_removed(folder: str, reason: object) -> HistoryError:
    return HistoryError(
        f"--history-days: older days of {folder} were not all removed: {reason}; the next audit tries again"
    )


def _remove_at_uri(folder: str, first: str) -> list[str]:
    """Remove the runs of days before ``first`` from a store, where a folder is there only while a file is in it."""
    removed = set()
    try:
        for table in reversed(TABLES):
            for each in list_uri(join_uri(folder, table)) or ():
                name, _, file = each.name.partition("/")
                if name == LOG:
                    raise _not_removed(folder, f"{table} is a Delta table, which takes its older days out itself")
                day = day_of(name)
                if day is not None and day < first and file.endswith(SUFFIX) and is_run_id(file.removesuffix(SUFFIX)):
                    remove_uri(each.uri)
                    removed.add(day)
    except InventoryStoreError as error:
        raise _not_removed(folder, error) from error
    return sorted(removed)


def _remove_day(disk: Disk, table: Directory, name: str) -> bool:
    """Remove the runs of one day, and its folder if that is empty then; return whether there was any."""
    with table.child(name) as day:
        files = {each: each.removesuffix(TEMPORARY) for each in day.plain_files()}
        runs = [each for each, name in files.items() if name.endswith(SUFFIX) and is_run_id(name.removesuffix(SUFFIX))]
        for each in runs:
            remove_file(disk, day, each, durable=False)
        disk.sync(day.descriptor)
        is_empty = not list(day.entries())
    if is_empty:
        disk.rmdir(table.descriptor, name)
        disk.sync(table.descriptor)
    return bool(runs)
