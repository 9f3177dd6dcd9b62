"""What the given paths are: log dirs, folders of brokers' disks, or inventories that other machines wrote.

Nothing is scanned here. A path that is absent stays among the log dirs, so that the scan gives it its row; only when
nothing that was given can be looked at, there is no run.

Which metadata an audit goes by: what ``--metadata`` names, or what lies beside the log dirs.

Reading a source is left to ``reconciler.sources``. What is found without being named is taken only when it can be read
and speaks for a cluster that is there; whatever is passed over is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layout import checkpoint, meta_properties
from layout.scheme import STAGING_DIR
from logstore.log_dir import discover, read_identity
from reconciler.cli.frame.lifecycle import say
from reconciler.errors import MetadataError, RefusedError, UsageError
from reconciler.text import age, count, listed, moment

if TYPE_CHECKING:
    from reconciler.desired import DesiredState

STAGING_SUFFIX = f".{STAGING_DIR}"
_SIGNS = (meta_properties.FILE_NAME, *checkpoint.OFFSET_CHECKPOINTS)
_LOG_DIR_IDENTITY = ("host", "log_dir", "cluster_id", "node_id", "directory_id", "inode")


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
        raise UsageError("; ".join(_why_unusable(path) for path in unusable[:5]))
    inventories = [path for path in _distinct(paths) if not os.path.isdir(path) and path not in unusable]
    folders = [path for path in _distinct(paths) if os.path.isdir(path)]
    log_dirs = list(_distinct(found for path in paths if path not in inventories for found in _log_dirs(path)))
    told = _log_dir_rows(inventories)
    _refuse_overlap(told)
    _refuse_scanned_already(told, log_dirs)
    rows = tuple(row for rows in told.values() for row in rows)
    return Inputs(tuple(log_dirs), tuple(inventories), tuple(folders), rows)


def log_dirs_in(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The log dirs that are meant by paths, each once: log dirs themselves, or folders of them.

    Raises:
        UsageError: not one of them is there, or one is an inventory, in which nothing can be changed.
    """
    inputs = sort_inputs(paths)
    if inputs.inventories:
        raise UsageError(f"{inputs.inventories[0]} is an inventory, and nothing is staged in a file: give log dirs")
    return inputs.log_dirs


def _is_inventory(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    # Imported where there is a file, because it brings Arrow along, which a scan of trees imports later.
    from logstore.rows import inventory_form

    return inventory_form(path) is not None


def _log_dir_rows(inventories: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The ``log_dir`` rows of each inventory. Raises InventoryError."""
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
    """Paths without those that lead to the same place as one before, by a link or by a second mount."""
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


def _refuse_overlap(told: dict[str, list[dict[str, Any]]]) -> None:
    """Refuse inventories that tell of one log dir twice; two machines may well use the same path."""
    first: dict[tuple[Any, ...], str] = {}
    for path, rows in told.items():
        for row in rows:
            identity = tuple(row[name] for name in _LOG_DIR_IDENTITY)
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


@dataclass(frozen=True, slots=True)
class PathInLogDir:
    """The log dir that a path belongs to, and the path below it, as the rows of a scan name it."""

    log_dir: str
    name: str
    """``.`` for the log dir itself."""


def log_dir_of_path(path: str) -> PathInLogDir | None:
    """The nearest log dir at or above a path, or the one whose staging directory holds it; None: there is none."""
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


NO_METADATA = "none"
"""The value of ``--metadata`` that switches the search off."""

_BEGINNING_MS = 60_000


def choose_metadata(specs: Sequence[str], inputs: Inputs, now_ms: int) -> list[DesiredState]:
    """Load the metadata that an audit goes by, and say on standard error which it is.

    Raises:
        UsageError: a source that was named does not exist, or ``none`` was named beside others.
        MetadataError: a source that was named cannot be trusted.
    """
    from reconciler.sources import load

    if NO_METADATA in specs:
        if len(set(specs)) > 1:
            raise UsageError("--metadata none does not go with another --metadata")
        return []
    states = [state for spec in specs for state in load(spec)] if specs else _find_metadata(inputs)
    for state in states:
        say(_described(state, now_ms))
    if not states:
        say("no metadata: only what a log dir alone can tell is judged; name a source with --metadata")
    return states


def _find_metadata(inputs: Inputs) -> list[DesiredState]:
    """The newest metadata of each cluster whose log dirs were given, from what lies at or below the given folders."""
    from reconciler.sources import newest_per_cluster

    clusters = _clusters(inputs)
    found = [state for path in _candidates(inputs) for state in _readable(path)]
    fitting = [state for state in found if state.identity.cluster_id in clusters]
    strangers = [state.identity for state in found if state.identity.cluster_id not in clusters]
    if strangers:
        told = listed([f"{each.location} (cluster {each.cluster_id or 'not named'})" for each in strangers])
        say(f"metadata of no cluster whose log dirs were given is passed over: {told}")
    return newest_per_cluster(fitting)


def _candidates(inputs: Inputs) -> list[str]:
    from reconciler.sources import find

    found: dict[str, None] = {}
    for folder in inputs.folders:
        try:
            found.update(dict.fromkeys(find(folder)))
        except UsageError as error:
            say(f"{error}; no metadata was looked for there")
    return list(found)


def _readable(path: str) -> list[DesiredState]:
    from reconciler.sources import load

    try:
        return load(path)
    except (MetadataError, UsageError) as error:
        say(f"metadata was found and is passed over: {error}")
        return []


def _clusters(inputs: Inputs) -> frozenset[str]:
    named = (read_identity(log_dir).identity for log_dir in inputs.log_dirs)
    inventoried = (row["cluster_id"] for row in inputs.inventoried)
    return frozenset(
        cluster for cluster in (*(each.cluster_id for each in named if each is not None), *inventoried) if cluster
    )


def _since(timestamp_ms: int, now_ms: int) -> int:
    """How old metadata is, in ms; what a live source told while this command began is not of the future."""
    since = now_ms - timestamp_ms
    return 0 if -_BEGINNING_MS < since < 0 else since


def _described(state: DesiredState, now_ms: int) -> str:
    """One source in a line: what it is, for which cluster, how far it reaches, how old it is."""
    from reconciler.desired import Completeness

    identity = state.identity
    parts = [
        f"metadata: {identity.source} {identity.location}",
        f"cluster {identity.cluster_id or 'not named'}",
        f"{count(state.topics.num_rows, 'topic')} and {count(state.replicas.num_rows, 'replica')}",
        "" if identity.offset is None else f"offset {identity.offset}",
        "" if identity.epoch is None else f"epoch {identity.epoch}",
        ""
        if identity.timestamp_ms is None
        else f"of {moment(identity.timestamp_ms)}, {age(_since(identity.timestamp_ms, now_ms))} old",
        "" if identity.completeness is Completeness.FULL else "which does not mention everything",
        "" if identity.scope is None else f"for broker {listed([str(node) for node in sorted(identity.scope)])} alone",
        "whose last records may still be taken back" if identity.tail_uncommitted else "",
    ]
    return ", ".join(part for part in parts if part)
