"""Removes the oldest days of a history: only files that a run wrote, and only whole days."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from logstore import LogStoreError
from logstore.fs import TEMPORARY, Directory, Disk, remove_file
from reconciler.errors import HistoryError
from reconciler.history.delta import remove_from_delta_tables
from reconciler.history.tables import SUFFIX, TABLES, day_of, is_run_id


def remove_old_days(folder: str, days: int, now_ms: int, disk: Disk | None = None) -> list[str]:
    """Remove the runs of all days but the newest ``days``, today counted; return the removed days, oldest first.

    What no run wrote stays, and the folder of its day with it. The days leave Delta tables first; then the totals go,
    by which a run counts, so that a run that is half removed is none.

    Raises:
        HistoryError: something cannot be removed.
    """
    disk = disk or Disk()
    first = datetime.fromtimestamp(now_ms // 1000, UTC).date() - timedelta(days=days - 1)
    removed = set()
    remove_from_delta_tables(folder, first.isoformat())
    try:
        for table in reversed(TABLES):
            with suppress(FileNotFoundError), Directory.open(os.path.join(folder, table)) as opened:
                for name in opened.directories():
                    day = day_of(name)
                    if day is not None and day < first.isoformat() and _remove_day(disk, opened, name):
                        removed.add(day)
    except (OSError, LogStoreError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise HistoryError(
            f"--history-days: older days of {folder} were not all removed: {reason}; the next audit tries again"
        ) from error
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
