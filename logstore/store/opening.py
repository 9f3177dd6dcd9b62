"""Opens the log dirs of one broker together, and recovers each of them before anybody uses it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from layout.log_dir_set import LogDirSet, startup_problems
from logstore.errors import ChangeRefusedError, OfflineLogDirError
from logstore.fs import Disk
from logstore.journal import finish_intents, make_missing_namespace_dirs
from logstore.log_dir import LogDir
from logstore.staging import FallbackRecords
from logstore.store.moving import recover_moves
from logstore.store.recovery import recover


def open_log_dirs(paths: Sequence[str], disk: Disk) -> tuple[list[LogDir], dict[str, str]]:
    """Lock and open log dirs, all or none, except those whose disk fails.

    Returns:
        Those that are open, in the order given; and path → reason of those that are offline.

    Raises:
        ChangeRefusedError: two paths are one directory, or the log dirs do not belong to one broker.
        NotALogDirError, LogDirInUseError: as :meth:`LogDir.open`.
        OfflineLogDirError: none of them can be used.
    """
    opened: list[LogDir] = []
    offline: dict[str, str] = {}
    try:
        _refuse_twins(paths)
        for path in paths:
            try:
                opened.append(LogDir.open(path, disk=disk))
            except OfflineLogDirError as error:
                offline[os.path.abspath(path)] = str(error)
        if not opened:
            raise OfflineLogDirError(f"no log dir can be used: {'; '.join(offline.values()) or 'none was given'}")
        _refuse_strangers(opened)
    except BaseException:
        for log_dir in opened:
            log_dir.close()
        raise
    return opened, offline


def recover_all(log_dirs: Sequence[LogDir], spare: FallbackRecords) -> None:
    """Recover every log dir whose last user came to no clean end; one whose disk fails meanwhile goes offline.

    Changes of many steps come first: what is recovered after them lies where the scheme has it, under its final name.

    Raises:
        ChangeFailedError: the system refuses, and nothing can be said of the log dirs.
    """
    finish_intents(log_dirs, spare)
    for log_dir in log_dirs:
        if log_dir.was_unclean:
            try:
                recover(log_dir, spare)
            except OfflineLogDirError:
                continue
    recover_moves(log_dirs)
    make_missing_namespace_dirs(log_dirs)


def _refuse_twins(paths: Sequence[str]) -> None:
    """Refuse one directory under two paths, as a broker does (FACTS §1.5); its second lock would fail less clearly."""
    seen: dict[str, str] = {}
    for path in paths:
        if "\0" in path:
            continue  # it is no path, as whoever opens it will say
        real = os.path.realpath(path)
        if real in seen:
            raise ChangeRefusedError(f"{path} and {seen[real]} are one log dir: give it once")
        seen[real] = path


def _refuse_strangers(log_dirs: Sequence[LogDir]) -> None:
    problems = startup_problems(LogDirSet({log_dir.path: log_dir.identity for log_dir in log_dirs}))
    if problems:
        raise ChangeRefusedError(f"these log dirs are not one broker's: {'; '.join(problems)}")
