"""The inputs of a command: log dirs, folders of brokers' disks, inventories of other machines, and metadata.

Nothing is scanned here. A path that is absent stays among the log dirs, so that the scan gives it a row; a command is
refused only when none of its paths can be used.

Metadata is the source that ``--metadata`` names, or one that lies beside the log dirs; :mod:`reconciler.sources` reads
it. A source that was found without being named is used only if it can be read and speaks for the cluster of a given log
dir; every source that is passed over is reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layout import checkpoint, meta_properties
from layout.directory_name import split_live
from layout.scheme import STAGING_DIR
from logstore.log_dir import discover, read_identity
from reconciler.cli.frame.lifecycle import say, say_incomplete
from reconciler.errors import MetadataError, RefusedError, UsageError
from reconciler.text import age, count, listed, moment

if TYPE_CHECKING:
    from reconciler.desired import DesiredState

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

    @property
    def log_dir_count(self) -> int:
        """Number of log dirs, on this machine and in inventories."""
        return len(self.log_dirs) + len(self.inventoried)


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
        from reconciler.next_steps import Call

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


NO_METADATA = "none"
"""The value of ``--metadata`` that turns the search for metadata off."""

_BEGINNING_MS = 60_000


def choose_metadata(specs: Sequence[str], inputs: Inputs, now_ms: int) -> list[DesiredState]:
    """Load the metadata for an audit, and name each source on standard error.

    Raises:
        UsageError: a named source does not exist, or ``none`` was named beside others.
        MetadataError: a named source cannot be trusted.
    """
    from reconciler.sources import load

    if NO_METADATA in specs:
        if len(set(specs)) > 1:
            raise UsageError("--metadata none does not go with another --metadata")
        return []
    states = [state for spec in specs for state in load(spec)] if specs else _find_metadata(inputs)
    for state in states:
        warning = _own_copy_sentence(state, inputs, now_ms)
        if warning is not None:
            say(warning)
        say(_described(state, now_ms))
    if not states:
        say("no metadata: only what a log dir alone can tell is judged; name a source with --metadata")
    return states


def say_problems(states: Iterable[DesiredState]) -> None:
    """Say on standard error what is wrong with each source, as a note for each problem."""
    for state in states:
        for problem in state.identity.problems:
            say(f"note: {state.identity.location}: {problem}")


def _own_copy_sentence(state: DesiredState, inputs: Inputs, now_ms: int) -> str | None:
    """Say that metadata is the own copy of a broker that does not run, and which command asks others; else None.

    Of the only voter no others can be asked.
    """
    from reconciler.desired import BrokerKey, is_own_copy

    identity = state.identity
    found = (read_identity(log_dir).identity for log_dir in inputs.log_dirs)
    brokers = {BrokerKey(each.cluster_id or "", each.node_id) for each in found if each and each.node_id is not None}
    for row in inputs.inventoried:
        if row["node_id"] is not None and (row["scanned_ms"] or 0) > (identity.as_of_ms or 0):
            brokers.add(BrokerKey(row["cluster_id"] or "", row["node_id"]))
    own = BrokerKey(identity.cluster_id or "", -1 if identity.keeper is None else identity.keeper)
    if identity.keeper_decides and not identity.keeper_runs and own in brokers:
        return (
            f"the metadata is node {identity.keeper}'s own: it is the only voter of its cluster, so nothing was "
            "decided since it stopped"
        )
    if not is_own_copy(state, brokers):
        return None
    as_of = "of a time that is not known"
    if identity.as_of_ms is not None:
        as_of = f"of {moment(identity.as_of_ms)}, {age(_since(identity.as_of_ms, now_ms))} ago"
    return (
        f"the metadata is broker {identity.keeper}'s own copy, and the broker does not run: it speaks as {as_of}, and "
        "nothing since is known, so OK may be wrong. Name a running broker as kafka:HOST:PORT, or the "
        f"__cluster_metadata-0 of a running controller: {_asking_others(inputs)}"
    )


def _asking_others(inputs: Inputs) -> str:
    """Write the command as it was called, with a blank for metadata that goes on."""
    import click

    from reconciler.next_steps import Command

    context = click.get_current_context(silent=True)
    verb, given = "audit", (*inputs.folders, *inputs.inventories)
    if context is not None and context.info_name is not None:
        path = context.params.get("path")
        verb, given = context.info_name, (path,) if path else context.params.get("paths", given)
    return Command(verb, (*given, "--metadata", "SOURCE")).text


def _find_metadata(inputs: Inputs) -> list[DesiredState]:
    """Find the newest metadata of each cluster whose log dirs were given, at or below the given folders."""
    from reconciler.sources import newest_per_cluster

    clusters = _clusters(inputs)
    found = [state for path in _candidates(inputs) for state in _readable(path)]
    fitting = [state for state in found if state.identity.cluster_id in clusters]
    strangers = [state.identity for state in found if state.identity.cluster_id not in clusters]
    if strangers:
        sources = listed([f"{each.location} (cluster {each.cluster_id or 'not named'})" for each in strangers])
        say(f"metadata of no cluster whose log dirs were given is passed over: {sources}")
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
    """Compute the age of metadata in ms; a live source that answered while this command began is not in the future."""
    since = now_ms - timestamp_ms
    return 0 if -_BEGINNING_MS < since < 0 else since


def _described(state: DesiredState, now_ms: int) -> str:
    """Describe one source in a line: its kind, its cluster, its size, its offset and its age."""
    from reconciler.desired import Completeness

    identity = state.identity
    parts = [
        f"metadata: {identity.source} {identity.location}",
        f"cluster {identity.cluster_id or 'not named'}",
        f"{count(state.topics.num_rows, 'topic')} and {count(state.replicas.num_rows, 'replica')}",
        "" if identity.offset is None else f"offset {identity.offset}",
        "" if identity.epoch is None else f"epoch {identity.epoch}",
        "of a time that it does not say"
        if identity.as_of_ms is None
        else f"of {moment(identity.as_of_ms)}, {age(_since(identity.as_of_ms, now_ms))} old",
        "" if identity.completeness is Completeness.FULL else "which does not mention everything",
        "" if identity.scope is None else f"for broker {listed([str(node) for node in sorted(identity.scope)])} alone",
        "whose last records may still be taken back" if identity.tail_uncommitted else "",
    ]
    return ", ".join(part for part in parts if part)


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
    from reconciler.preflight import FULL_BELOW, free_room

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
