"""The inputs of a command: log dirs, folders of brokers' disks, and inventories of other machines.

Nothing is scanned here. A path that is absent stays among the log dirs, so that the scan gives it a row; a command is
refused only when none of its paths can be used.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from layout import checkpoint, meta_properties, partition_metadata
from layout.directory_name import split_live
from layout.scheme import STAGING_DIR
from logstore import InventoryError
from logstore.log_dir import discover, read_identity
from logstore.rows import (
    SUFFIXES,
    InventorySet,
    LogDirFacts,
    expand,
    inventories_below,
    is_layout_folder,
    is_uri,
    path_of_uri,
    read_inventory_set,
)
from reconciler.cli.frame.lifecycle import detail, say_incomplete, warn
from reconciler.errors import UsageError
from reconciler.next_steps import Call
from reconciler.text import count

STAGING_SUFFIX = f".{STAGING_DIR}"
_LOOKED_AT = 16
"""Replicas of a log dir that are tried, to see whether this user may read any."""

_SIGNS = (meta_properties.FILE_NAME, *checkpoint.OFFSET_CHECKPOINTS)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The log dirs and inventories that a command looks at."""

    log_dirs: tuple[str, ...]
    """Log dirs on this machine, each once, in the given order."""
    folders: tuple[str, ...]
    """The given directories, in which metadata may lie beside the log dirs."""
    inventories: InventorySet = field(default_factory=InventorySet)
    """The inventory files, and which of their scans count."""


class GivenPaths(NamedTuple):
    """What was given, by what it is; no inventory was read."""

    log_dirs: tuple[str, ...]
    folders: tuple[str, ...]
    inventories: tuple[str, ...]
    """Files, and URIs of a store."""


def sort_inputs(paths: Sequence[str], copies_in: str | None = None) -> Inputs:
    """Sort what was given as :func:`sort_paths` does, and read the inventories as :func:`read_inputs` does.

    Raises:
        UsageError, InventoryStoreError, InventoryError: as these two.
    """
    return read_inputs(sort_paths(paths), copies_in)


def sort_log_dirs(paths: Sequence[str], why_no_inventory: str) -> Inputs:
    """Sort what was given to a command that takes no inventories; none is read, and no store is asked for one.

    ``why_no_inventory``: the end of a sentence that begins as "x.parquet is an inventory".

    Raises:
        UsageError: one is an inventory, or was to be one by its name; and as :func:`sort_paths`.
    """
    given = sort_paths(paths)
    if given.inventories:
        path = given.inventories[0]
        is_there = is_uri(path) or os.path.lexists(path)
        what = "an inventory" if is_there else "not there, and has the name of an inventory"
        raise UsageError(f"{path} is {what}{why_no_inventory}")
    return Inputs(given.log_dirs, given.folders)


def read_inputs(given: GivenPaths, copies_in: str | None = None) -> Inputs:
    """Read which scans of the inventories count.

    Inventories that cannot be read are reported, and those that do not count because there are newer scans.
    ``copies_in``: the folder for copies of what lies in a store; None: that for temporary files.

    Raises:
        InventoryStoreError: a store cannot be reached, or refuses.
        InventoryError: files look like inventories, none of them can be used as one, and nothing else was given.
    """
    return Inputs(given.log_dirs, given.folders, _read_inventories(given.inventories, given.log_dirs, copies_in))


def sort_paths(paths: Sequence[str]) -> GivenPaths:
    """Sort what was given into log dirs, folders and inventories (:func:`logstore.rows.expand` says what may be given).

    A folder with log dirs at or below it stands for these; any other stands for the inventories at or below it, where
    there are some, unless partition dirs lie in it as well. A link to a log dir stands for the log dir itself. A log
    dir that cannot be listed is reported at once, and stays among the log dirs.

    Raises:
        UsageError: none of the paths is a directory or an inventory, or one lies in a log dir.
        InventoryError: there is no inventory where some were said to be.
        InventoryStoreError: a store cannot be reached, or refuses.
    """
    given = [each for path in paths for each in expand(path)]
    unusable = [path for path in given if not is_uri(path) and not os.path.isdir(path) and not is_inventory(path)]
    if len(unusable) == len(given):
        raise UsageError("; ".join(_why_unusable(path) for path in unusable[:5]))
    # By its name an absent file was to be an inventory: one that cannot be read, and no log dir that is away.
    no_files = {path for path in unusable if os.path.exists(path) or not path.endswith(SUFFIXES)}
    given = [each for path in given for each in _inventories_in(path) or [path]]
    folders = [path for path in _distinct(given) if os.path.isdir(path)]
    files = [path for path in _distinct(given) if not os.path.isdir(path) and path not in no_files]
    places = (path for path in given if os.path.isdir(path) or path in no_files)
    log_dirs = list(_distinct(found for path in places for found in _log_dirs(path)))
    report_unreadable(log_dirs)
    detail(f"log dirs: {', '.join(log_dirs) or 'none'}; inventories: {len(files)}")
    return GivenPaths(tuple(log_dirs), tuple(folders), tuple(files))


def log_dirs_in(paths: tuple[str, ...]) -> tuple[str, ...]:
    """List the log dirs that the paths name, each once; a path is a log dir or a folder of log dirs.

    An inventory is known by its name or its first bytes: it is not read, and no store is asked for it.

    Raises:
        UsageError: none of the paths exists, or one is an inventory, in which nothing can be changed.
    """
    in_store = next((path for path in paths if is_uri(path) and path_of_uri(path) is None), None)
    if in_store is not None:
        raise UsageError(f"{in_store} lies in a store, and nothing is staged there: give log dirs of this machine")
    given = sort_paths(paths)
    if given.inventories:
        raise UsageError(f"{given.inventories[0]} is an inventory, and nothing is staged in a file: give log dirs")
    return given.log_dirs


def check_locations(locations: Iterable[str], log_dirs: Sequence[str]) -> None:
    """Refuse a location that several log dirs have: log dirs of one name, and all of ours, call what they stage alike.

    Raises:
        UsageError: one stands for more than one directory.
    """
    for location in locations:
        places = [_place_of(path, location) for path in log_dirs if _has(path, location)]
        if len(places) > 1:
            raise UsageError(
                f"--location {location} is in {count(len(places), 'log dir')}, and nothing was changed: give the whole "
                f"path of the one that is meant, {' or '.join(places)}"
            )


def is_location(log_dir: str, location: str, given: Collection[str]) -> bool:
    """Whether something staged is among the values of ``--location``, each a location or a path."""
    return location in given or _place_of(log_dir, location) in map(os.path.abspath, given)


def location_among(log_dir: str, location: str, log_dirs: Iterable[str]) -> str:
    """Name what is staged for ``--location``: by its whole path where another of the log dirs has such a location."""
    place = _place_of(log_dir, location)
    return place if any(_has(path, location) and _place_of(path, location) != place for path in log_dirs) else location


def _has(log_dir: str, location: str) -> bool:
    """Whether something lies at a location of a log dir, which is in it or in the directory of its name beside it."""
    home = os.path.abspath(log_dir)
    is_own = location.startswith(f"../{os.path.basename(home)}{STAGING_SUFFIX}/")
    return (is_own or not location.startswith(("../", "/"))) and os.path.lexists(f"{home}/{location}")


def _place_of(log_dir: str, location: str) -> str:
    return os.path.abspath(f"{log_dir}/{location}")


def _inventories_in(path: str) -> list[str]:
    """List the inventories in a folder that holds no log dir, at any depth, and what is closed to this user there.

    Raises:
        UsageError: the path lies in a log dir: its replicas alone cannot be judged.
    """
    if not os.path.isdir(path) or _is_log_dir(path):
        return []
    # What cannot be listed may be a log dir, and no reason to pass over the inventories beside it.
    log_dirs = discover(path)
    closed = [each for each in log_dirs if each != path and not _is_log_dir(each) and forbidden_in(each) == each]
    if log_dirs not in ([path], closed):
        return []
    refuse_part_of_log_dir(path)
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []  # reported where the log dirs are listed
    named = inventories_below(path)
    others = (os.path.join(path, name) for name in names)
    found = sorted({*named, *(file for file in others if file not in named and is_inventory(file))})
    # Folders of inventories are often named by their day, as in 2026-11-27, which is the name of a replica as well.
    holding = {os.path.relpath(file, path).partition(os.sep)[0] for file in found}
    named_so = (name for name in names if split_live(name) and name not in holding and not is_layout_folder(name))
    replica = next((name for name in named_so if os.path.isdir(os.path.join(path, name))), None)
    if found and replica is not None:
        warn(
            f"{path} is taken for a log dir, because {replica} in it has the name of a replica, though inventories lie "
            f"there as well; name these by themselves to have them read: {found[0]}"
        )
        return []
    return [*found, *closed] if found else []


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
    """Report log dirs that are there and may not be read: the answer is not about all that was asked for."""
    for log_dir in log_dirs:
        place = forbidden_in(log_dir)
        if place is not None:
            others = "" if place == log_dir else ", and perhaps in other directories of the log dir's owner"
            refused = os.strerror(errno.EACCES)
            say_incomplete(f"{place} cannot be read: {refused}; nothing is known of what lies there{others}")


def is_inventory(path: str) -> bool:
    """Whether a file is an inventory, or was meant to be one by its name."""
    if not os.path.isfile(path):
        return False
    if path.endswith(SUFFIXES):
        return True
    # Imported only for a file, because it loads Arrow, which a scan of trees loads later, while its workers look.
    from logstore.rows import inventory_form

    return inventory_form(path) is not None


def _read_inventories(files: Sequence[str], log_dirs: Sequence[str], copies_in: str | None) -> InventorySet:
    """Read which scans of the inventories count; a log dir that is given itself is scanned now, which is newer.

    Raises:
        InventoryError: none can be read, and no log dir was given.
    """
    if not files:
        return InventorySet()
    found = read_inventory_set(files, map(_facts_now, log_dirs), copies_in)
    if len(found.unreadable) == len(files) and not log_dirs:
        raise InventoryError("; ".join(list(found.unreadable.values())[:5]))
    for problem in found.unreadable.values():
        say_incomplete(f"{problem}. Nothing is known of what it holds")
    return found


def _facts_now(log_dir: str) -> LogDirFacts:
    """Tell what a log dir is that is scanned in this run."""
    place, identity = os.path.abspath(log_dir), read_identity(log_dir).identity
    scanned = (os.uname().nodename, place, time.time_ns() // 1_000_000)
    if identity is None:
        return LogDirFacts(*scanned, None, None, None)
    directory_id = None if identity.directory_id is None else str(identity.directory_id)
    return LogDirFacts(*scanned, identity.cluster_id, identity.node_id, directory_id)


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
    return list(map(_without_link, discover(path))) if os.path.isdir(path) else [path]


def _without_link(log_dir: str) -> str:
    """Return where a log dir lies that was given as a link to it, so that its replicas are staged beside itself.

    Whoever calls it by another name finds them there.
    """
    return os.path.realpath(log_dir) if os.path.islink(log_dir.rstrip("/")) else log_dir


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


def of_this_machine(place: str | None) -> str | None:
    """Give the path that a ``file`` URI names; every other URI, and every path, stays as it is."""
    return place if place is None else path_of_uri(place) or place


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


def forbidden_in(log_dir: str) -> str | None:
    """Find what this user may not read, and the broker's own user perhaps may (:func:`logstore.scan.is_closed`).

    It looks at the log dir, its identity, the first few replicas and the staging directory: a user who is not the
    broker's may read all replicas or none. None: there is nothing, or no log dir either.
    """
    from logstore.scan import is_closed

    try:
        with os.scandir(log_dir) as found:
            replicas = list(islice((each.name for each in found if split_live(each.name)), _LOOKED_AT))
    except PermissionError:
        return log_dir
    except (OSError, ValueError):
        return None
    files = (f"{name}/{partition_metadata.FILE_NAME}" for name in replicas)
    beside = f"../{os.path.basename(os.path.abspath(log_dir))}{STAGING_SUFFIX}"
    looked_at = (meta_properties.FILE_NAME, *replicas, *files, STAGING_DIR, beside)
    closed = next((name for name in looked_at if is_closed(log_dir, name)), None)
    return None if closed is None else os.path.normpath(os.path.join(log_dir, closed))


def report_closed(places: Iterable[tuple[str, str]]) -> None:
    """Report what this user may not read, by log dir and name, where :func:`report_unreadable` named nothing of it."""
    named: dict[str, bool] = {}
    found = []
    for log_dir, name in places:
        closed = closed_at(log_dir, name)
        if closed is not None and not named.setdefault(log_dir, forbidden_in(log_dir) is not None):
            found.append(closed)
    if found:
        others = f", and {count(len(found) - 1, 'other')} like it" if len(found) > 1 else ""
        refused = os.strerror(errno.EACCES)
        say_incomplete(f"{found[0]} cannot be read: {refused}{others}; nothing is known of what lies there")


def closed_at(log_dir: str, name: str) -> str | None:
    """Find what this user may not read of a directory or file in a log dir, and the broker's own user perhaps may.

    ``name``: as the rows of a scan have it. None: nothing is closed of it to this user alone.
    """
    from logstore.scan import is_closed

    names = (name, f"{name}/{partition_metadata.FILE_NAME}")
    closed = next((each for each in names if is_closed(log_dir, each)), None)
    return None if closed is None else os.path.normpath(os.path.join(log_dir, closed))
