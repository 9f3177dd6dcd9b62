"""The inputs of a command: log dirs, folders of brokers' disks, and inventories of other machines.

Nothing is scanned here. A path that is absent stays among the log dirs, so that the scan gives it a row; a command is
refused only when none of its paths can be used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from layout import checkpoint, meta_properties
from layout.directory_name import split_live
from layout.scheme import STAGING_DIR
from logstore.log_dir import discover
from reconciler.cli.frame.lifecycle import say_incomplete
from reconciler.errors import RefusedError, UsageError
from reconciler.next_steps import Call

STAGING_SUFFIX = f".{STAGING_DIR}"
_SIGNS = (meta_properties.FILE_NAME, *checkpoint.OFFSET_CHECKPOINTS)
_LOG_DIR_IDENTITY = ("host", "log_dir", "cluster_id", "node_id", "directory_id", "inode")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The log dirs and inventories that a command looks at."""

    log_dirs: tuple[str, ...]
    """Log dirs on this machine, each once, in the given order."""
    inventories: tuple[str, ...]
    """Inventory files, already checked."""
    folders: tuple[str, ...]
    """The given directories, in which metadata may lie beside the log dirs."""
    inventoried: tuple[dict[str, Any], ...]
    """The ``log_dir`` rows of all inventories."""


def sort_inputs(paths: Sequence[str]) -> Inputs:
    """Sort paths into log dirs, folders and inventories; a folder without log dirs may hold inventories.

    A log dir that cannot be listed is reported at once, and stays among the log dirs.

    Raises:
        UsageError: none of the paths is a directory or an inventory, or one lies in a log dir.
        RefusedError: two of the paths cover the same log dir, so that each replica would count twice.
        InventoryError: a file looks like an inventory, but cannot be used as one.
    """
    unusable = [path for path in paths if not os.path.isdir(path) and not _is_inventory(path)]
    if len(unusable) == len(paths):
        raise UsageError("; ".join(_why_unusable(path) for path in unusable[:5]))
    paths = [each for path in paths for each in _inventories_in(path) or [path]]
    inventories = [path for path in _distinct(paths) if not os.path.isdir(path) and path not in unusable]
    folders = [path for path in _distinct(paths) if os.path.isdir(path)]
    log_dirs = list(_distinct(found for path in paths if path not in inventories for found in _log_dirs(path)))
    report_unreadable(log_dirs)
    inventoried = _log_dir_rows(inventories)
    _refuse_overlap(inventoried)
    _refuse_scanned_already(inventoried, log_dirs)
    rows = tuple(row for rows in inventoried.values() for row in rows)
    return Inputs(tuple(log_dirs), tuple(inventories), tuple(folders), rows)


def log_dirs_in(paths: tuple[str, ...]) -> tuple[str, ...]:
    """List the log dirs that the paths name, each once; a path is a log dir or a folder of log dirs.

    Raises:
        UsageError: none of the paths exists, or one is an inventory, in which nothing can be changed.
    """
    inputs = sort_inputs(paths)
    if inputs.inventories:
        raise UsageError(f"{inputs.inventories[0]} is an inventory, and nothing is staged in a file: give log dirs")
    return inputs.log_dirs


def _inventories_in(path: str) -> list[str]:
    """List the inventories in a folder that holds no log dir.

    Raises:
        UsageError: the path lies in a log dir: its replicas alone cannot be judged.
    """
    if not os.path.isdir(path) or _log_dirs(path) != [path] or _is_log_dir(path):
        return []
    refuse_part_of_log_dir(path)
    try:
        files = sorted(os.path.join(path, name) for name in os.listdir(path))
    except OSError:
        return []  # reported where the log dirs are listed
    return [file for file in files if _is_inventory(file)]


def refuse_part_of_log_dir(path: str) -> None:
    """Refuse a directory in a log dir in the place of a log dir.

    Raises:
        UsageError: the path lies in a log dir: its replicas alone cannot be judged.
    """
    above = None if _is_log_dir(path) else log_dir_of_path(path)
    if above is not None:
        what = "is a replica of" if split_live(os.path.basename(above.name)) else "lies in"
        command = Call().explain(path).text
        raise UsageError(f"{path} {what} log dir {above.log_dir}: give the log dir. {command} says what it is")


def report_unreadable(log_dirs: Iterable[str]) -> None:
    """Report log dirs that are there and cannot be listed: the answer is not about all that was asked for."""
    for log_dir in log_dirs:
        try:
            os.scandir(log_dir).close()
        except PermissionError as error:
            say_incomplete(f"{log_dir} cannot be read: {error.strerror}; nothing is known of what lies there")
        except (OSError, ValueError):
            continue  # a log dir that is not there has a row of its own in every scan


def _is_inventory(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    # Imported only for a file, because it loads Arrow, which a scan of trees loads later, while its workers look.
    from logstore.rows import inventory_form

    return inventory_form(path) is not None


def _log_dir_rows(inventories: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Read the ``log_dir`` rows of each inventory. Raises InventoryError."""
    if not inventories:
        return {}
    from logstore.rows import inventory_log_dirs  # as in _is_inventory

    return {path: inventory_log_dirs(path) for path in inventories}


def _why_unusable(path: str) -> str:
    if not path:
        return "a path is empty, which is no log dir: is a variable not set?"
    try:
        os.stat(path)
        if os.path.isfile(path):
            open(path, "rb").close()
            return f"{path} is a file, and neither a log dir nor an inventory"
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{path} is neither a directory nor a plain file"


def _log_dirs(path: str) -> list[str]:
    return discover(path) if os.path.isdir(path) else [path]


def _distinct(paths: Iterable[str]) -> Iterator[str]:
    """Yield paths; skip a path that leads to the same file as an earlier one, by a link or by a second mount."""
    seen: set[str | tuple[int, int]] = set()
    for path in paths:
        place = _file_identity(path)
        if place not in seen:
            seen.add(place)
            yield path


def _file_identity(path: str) -> str | tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _refuse_overlap(inventoried: dict[str, list[dict[str, Any]]]) -> None:
    """Refuse inventories that have one log dir twice; two machines may well use the same path."""
    first: dict[tuple[Any, ...], str] = {}
    for path, rows in inventoried.items():
        for row in rows:
            identity = tuple(row[name] for name in _LOG_DIR_IDENTITY)
            if identity in first:
                raise RefusedError(
                    f"{first[identity]} and {path} both tell of log dir {row['log_dir']} of {row['host']}, whose "
                    "replicas would count twice: give the newer inventory alone"
                )
            first[identity] = path


def _refuse_scanned_already(inventoried: dict[str, list[dict[str, Any]]], log_dirs: Iterable[str]) -> None:
    """Refuse an inventory of this machine with a log dir that is also given as a tree."""
    host = os.uname().nodename
    trees = set(map(os.path.abspath, log_dirs))
    for path, rows in inventoried.items():
        for row in rows:
            if row["host"] == host and row["log_dir"] in trees:
                raise RefusedError(
                    f"{path} tells of log dir {row['log_dir']}, which is given itself too, so that its replicas would "
                    "count twice: give one of them"
                )


@dataclass(frozen=True, slots=True)
class PathInLogDir:
    """A log dir and a path below it, as the rows of a scan name it."""

    log_dir: str
    name: str
    """``.`` for the log dir itself."""


def log_dir_of_path(path: str) -> PathInLogDir | None:
    """Find the nearest log dir at or above a path, or the log dir whose staging directory holds it."""
    path = os.path.abspath(path)
    above = path
    while True:
        if _is_log_dir(above):
            return PathInLogDir(above, os.path.relpath(path, above))
        beside = above.removesuffix(STAGING_SUFFIX)
        if beside != above and _is_log_dir(beside):
            return PathInLogDir(beside, f"../{os.path.relpath(path, os.path.dirname(above))}")
        parent = os.path.dirname(above)
        if parent == above:
            return None
        above = parent


def _is_log_dir(path: str) -> bool:
    return any(os.path.lexists(os.path.join(path, sign)) for sign in _SIGNS)


def is_forbidden(path: str) -> bool:
    """Whether a log dir is there, and this user may not read it."""
    try:
        os.scandir(path).close()
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return False


def is_full(path: str) -> bool:
    """Whether the disk of a log dir has no room for what a change writes down."""
    from reconciler.preflight import FULL_BELOW, free_room  # which loads Arrow

    room = free_room(path)
    return room is not None and room < FULL_BELOW


def worth_having(path: str) -> int:
    """Return how many bytes more make a difference on the full disk of a log dir: a thousandth of it."""
    if takes_no_file(path):
        return 0  # each directory gives back its names
    try:
        found = os.statvfs(path)
    except OSError:
        return 0
    return found.f_blocks * found.f_frsize // 1000


def takes_no_file(path: str) -> bool:
    """Whether a file system has no inode left; one that does not count them says that it has none in all."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_files > 0 and found.f_favail == 0
