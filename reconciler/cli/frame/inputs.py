"""What the given paths are: log dirs, folders of brokers' disks, or inventories that other machines wrote.

Nothing is scanned here. A path that is absent stays among the log dirs, so that the scan gives it its row; only when
nothing that was given can be looked at, there is no run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from logstore.log_dir import discover
from reconciler.errors import RefusedError, UsageError

_IDENTITY = ("host", "log_dir", "cluster_id", "node_id", "directory_id", "inode")


@dataclass(frozen=True, slots=True)
class Inputs:
    """What there is to look at."""

    log_dirs: tuple[str, ...]
    """Trees on this machine, each once, in the order given."""
    inventories: tuple[str, ...]
    """Inventory files, checked."""
    folders: tuple[str, ...]
    """The directories that were given: where metadata may lie beside the log dirs."""
    inventoried: tuple[dict[str, Any], ...]
    """The ``log_dir`` rows of all inventories."""

    @property
    def places(self) -> int:
        """How many log dirs that makes, trees and inventoried ones."""
        return len(self.log_dirs) + len(self.inventoried)


def sort_inputs(paths: Sequence[str]) -> Inputs:
    """Tell what each path is.

    Raises:
        UsageError: not one of them is a directory or an inventory.
        RefusedError: two of them tell of the same log dir, so that each replica would count twice.
        InventoryError: a file looks like an inventory, and cannot be used as one.
    """
    unusable = [path for path in paths if not os.path.isdir(path) and not _is_inventory(path)]
    if len(unusable) == len(paths):
        raise UsageError("; ".join(_why(path) for path in unusable[:5]))
    inventories = [path for path in _distinct(paths) if not os.path.isdir(path) and path not in unusable]
    folders = [path for path in _distinct(paths) if os.path.isdir(path)]
    log_dirs = list(_distinct(found for path in paths if path not in inventories for found in _log_dirs(path)))
    told = _told_by(inventories)
    _refuse_overlap(told)
    _refuse_scanned_already(told, log_dirs)
    rows = tuple(row for rows in told.values() for row in rows)
    return Inputs(tuple(log_dirs), tuple(inventories), tuple(folders), rows)


def _is_inventory(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    # Imported where there is a file, because it brings Arrow along, which a scan of trees imports later.
    from logstore.rows import inventory_form

    return inventory_form(path) is not None


def _told_by(inventories: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The ``log_dir`` rows of each inventory. Raises InventoryError."""
    if not inventories:
        return {}
    from logstore.rows import inventory_log_dirs  # as in _is_inventory

    return {path: inventory_log_dirs(path) for path in inventories}


def _why(path: str) -> str:
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
    """Paths without those that lead to the same place as one before, by a link or by a second mount."""
    seen: set[str | tuple[int, int]] = set()
    for path in paths:
        place = _place(path)
        if place not in seen:
            seen.add(place)
            yield path


def _place(path: str) -> str | tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _refuse_overlap(told: dict[str, list[dict[str, Any]]]) -> None:
    """Refuse inventories that tell of one log dir twice; two machines may well use the same path."""
    first: dict[tuple[Any, ...], str] = {}
    for path, rows in told.items():
        for row in rows:
            identity = tuple(row[name] for name in _IDENTITY)
            if identity in first:
                raise RefusedError(
                    f"{first[identity]} and {path} both tell of log dir {row['log_dir']} of {row['host']}, whose "
                    "replicas would count twice: give the newer inventory alone"
                )
            first[identity] = path


def _refuse_scanned_already(told: dict[str, list[dict[str, Any]]], log_dirs: Iterable[str]) -> None:
    """Refuse an inventory of this machine that tells of a log dir which is given as a tree too."""
    host = os.uname().nodename
    trees = set(map(os.path.abspath, log_dirs))
    for path, rows in told.items():
        for row in rows:
            if row["host"] == host and row["log_dir"] in trees:
                raise RefusedError(
                    f"{path} tells of log dir {row['log_dir']}, which is given itself too, so that its replicas would "
                    "count twice: give one of them"
                )
