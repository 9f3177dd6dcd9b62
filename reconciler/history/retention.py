"""Removes the oldest days of a history: only files that a run wrote, and only whole days.

The days are counted back from today, as this machine has it. Where its clock is years off, that would be all that there
is, so a pause that may be the jump of a clock is not counted: what was there before it goes as the runs after it come.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from logstore import InventoryStoreError, LogStoreError
from logstore.fs import TEMPORARY, Directory, Disk, remove_file
from logstore.rows import is_uri, join_uri, list_uri, remove_uri
from reconciler.errors import HistoryError
from reconciler.history.delta import LOG, remove_from_delta_tables
from reconciler.history.tables import SUFFIX, TABLES, day_of, is_run_id, list_runs


class Removal(NamedTuple):
    """What went from a history, and what stays in it for longer than was asked for."""

    days: list[str]
    """The days whose runs were removed, the oldest first."""
    kept: str | None = None
    """Why runs of older days stay; None: there are none."""
    is_news: bool = False
    """Whether what keeps them was found today for the first time."""


def remove_old_days(folder: str, days: int, now_ms: int, disk: Disk | None = None) -> Removal:
    """Remove the runs of all days but the newest ``days``, today counted.

    What no run wrote stays, and the folder of its day with it. The days leave Delta tables first; then the totals go,
    by which a run counts, so that a run that is half removed is none.

    Raises:
        HistoryError: something cannot be removed.
        UsageError: the history cannot be listed.
    """
    today = datetime.fromtimestamp(now_ms // 1000, UTC).date()
    found = sorted({day for run in list_runs(folder) if (day := _date(run.day)) is not None and day <= today} | {today})
    cut, pause = _first_to_keep(found, days)
    removed = (_remove_at_uri if is_uri(folder) else partial(_remove_in_folder, disk or Disk()))(folder, str(cut))
    if pause is None:
        return Removal(removed)
    old = sum(cut <= day <= pause.last for day in found)
    return Removal(removed, pause.sentence(folder, days, old, today), is_news=pause.next_day == today)


class _Pause(NamedTuple):
    """Two days with runs, and so long a time between them that a clock may have been wrong."""

    last: date
    next_day: date

    def sentence(self, folder: str, days: int, number: int, today: date) -> str:
        kept = "the runs of 1 day" if number == 1 else f"the runs of {number:,} days"
        return (
            f"--history-days {days}: {kept} until {self.last} stay in {folder} for now: between them and the next run, "
            f"of {self.next_day}, lie {(self.next_day - self.last).days:,} days, as if a clock was wrong. By that of "
            f"this machine today is {today}; where that is wrong, put it right. Where audits paused, there is nothing "
            f"to do: the pause is not counted, and the last of these runs go on {self.next_day + timedelta(days)}"
        )


_FEW_DAYS = 31
"""The longest time between two runs of which nobody wonders, whatever is usual in a history."""


def _first_to_keep(found: Sequence[date], days: int) -> tuple[date, _Pause | None]:
    """Find the first day of which runs are kept, and the newest pause for which that is earlier than it would be.

    What lies between two runs counts as time that went by, unless it is longer than what is to be kept, and than twice
    the time that was usual between two runs before. A clock that jumped goes on at its pace. So what is older than
    ``days`` without such pauses is at least as old by a right clock, and a clock that is years fast removes nothing
    that a right one would keep.

    ``found``: the days that have runs, in order, the last of which is today.
    """
    cut, age, pause = found[-1], 0, None
    for number in range(len(found) - 1, 0, -1):
        last, next_day = found[number - 1], found[number]
        usual = median([(after - before).days for before, after in pairwise(found[:number])] or [0])
        if (next_day - last).days <= max(days, 2 * usual, _FEW_DAYS):
            age += (next_day - last).days
        elif pause is None:
            pause = _Pause(last, next_day)
        if age >= days:
            break
        cut = last
    return min(cut, found[-1] - timedelta(days - 1)), pause


def _date(day: str) -> date | None:
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None  # digits that are no date, which no run wrote


def _not_removed(folder: str, reason: object) -> HistoryError:
    return HistoryError(
        f"--history-days: older days of {folder} were not all removed: {reason}; the next audit tries again"
    )


def _remove_in_folder(disk: Disk, folder: str, first: str) -> list[str]:
    """Remove the runs of days before ``first`` from a folder of this machine."""
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
