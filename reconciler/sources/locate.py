"""Find out what a metadata spec means, and load it.

A spec is ``scheme:path``, a plain path whose kind is recognised by a look at it, or ``scheme:address`` of a live
cluster. The path is a source, a glob, or a folder of sources; of several, the newest state of each cluster counts, and
its problems name the others. The table in ``kinds`` lists the kinds of sources.
"""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from layout.topic import METADATA_DIR
from logstore import check_argument
from reconciler.desired import DesiredState
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.kinds import SOURCES, SourceKind

FIND_DEPTH = 6
"""How many levels of folders :func:`find` descends."""

_SCHEME = re.compile(r"([a-z][a-z-]*):(.+)", re.DOTALL)
_LOG_DIR_FILE = "meta.properties"


def load(spec: str) -> list[DesiredState]:
    """Load every state that a spec names, one for each cluster.

    Raises:
        UsageError: no such scheme, no such path, no known source there, or two sources that contradict each other.
        MetadataError: a source was recognised but cannot be read.
    """
    check_argument("spec", spec, str, UsageError)
    sources, path = split_spec(spec)
    if not path:
        raise UsageError("a metadata source without a path: name a file or a folder")
    found = candidates(sources, path)
    if len(found) == 1:
        ((source, only),) = found
        loaded = source.load([only], path)
        # An address means nothing without its scheme, and the same file another thing under another scheme; what is
        # shown must be what the user can type.
        if source.is_path and not source.together:
            return loaded
        return [replace(state, identity=replace(state.identity, location=spec)) for state in loaded]
    states: list[DesiredState] = []
    unreadable: list[str] = []
    for source in SOURCES:
        states += _load_readable(source, [each for kind, each in found if kind is source], path, unreadable)
    if not states:
        raise MetadataError(f"{path}: none of {len(found)} metadata sources can be read: {'; '.join(unreadable)}")
    return [_with_problems(state, unreadable) for state in newest_per_cluster(states)]


def newest_per_cluster(states: Sequence[DesiredState]) -> list[DesiredState]:
    """Keep the state with the greatest (epoch, offset) of each cluster; its problems name the older states.

    Raises:
        UsageError: sources of different kinds describe one cluster, so their ages cannot be compared.
    """
    clusters: dict[str | None, list[DesiredState]] = {}
    for state in states:
        clusters.setdefault(state.identity.cluster_id, []).append(state)
    return [_newest(group) for group in clusters.values()]


def find(folder: str) -> list[str]:
    """Find metadata sources at or below a folder of disks: KRaft directories and ZooKeeper's ``version-2`` folders.

    Links are not followed. Of a log dir, only its ``__cluster_metadata-0`` is considered. A folder below that cannot be
    listed is skipped here; a scan reports it.

    Raises:
        UsageError: the folder itself cannot be listed.
    """
    try:
        os.listdir(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be looked at: {error.strerror or error}") from error
    return sorted(_walk(folder, FIND_DEPTH))


def split_spec(spec: str) -> tuple[Sequence[SourceKind], str]:
    """Split a spec into the kinds that may read it, and the path."""
    match = _SCHEME.fullmatch(spec)
    if match is None or os.path.lexists(spec):
        return SOURCES, spec
    chosen = [source for source in SOURCES if source.scheme == match[1]]
    if not chosen:
        schemes = ", ".join(f"{source.scheme}:" for source in SOURCES)
        raise UsageError(f"{spec!r:.200}: there is no such path and no scheme {match[1]!r}; the schemes are {schemes}")
    return chosen, match[2]


def candidates(sources: Sequence[SourceKind], path: str) -> list[tuple[SourceKind, str]]:
    """Find the sources at a path: itself, else the matches of a glob, else the children of a folder, else deeper."""
    if not sources[0].is_path:
        return [(sources[0], path)]
    if len(sources) == 1 and not os.path.isdir(path) and not glob.has_magic(path):
        return [(sources[0], path)]
    if not os.path.lexists(path):
        paths = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
        if not paths:
            raise UsageError(f"{path}: no such file or directory")
        return _recognised(sources, paths, named=True) or _nothing(sources, path)
    own = _recognised(sources, [path], named=True)
    if own or not os.path.isdir(path):
        return own or _nothing(sources, path)
    try:
        children = sorted(os.path.join(path, name) for name in os.listdir(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be looked at: {error.strerror or error}") from error
    named = len(sources) == 1
    return (
        _recognised(sources, children, named=named)
        or _recognised(sources, find(path), named=named)
        or _nothing(sources, path)
    )


def _recognised(sources: Sequence[SourceKind], paths: Sequence[str], *, named: bool) -> list[tuple[SourceKind, str]]:
    """Pair each path with the first kind that it looks like, or whose suffix it has if ``named``; drop other paths."""
    found = []
    for path in paths:
        for source in sources:
            by_name = named and source.suffix is not None and path.endswith(source.suffix) and os.path.isfile(path)
            if by_name or source.recognises(path):
                found.append((source, path))
                break
    return found


def _nothing(sources: Sequence[SourceKind], path: str) -> list[tuple[SourceKind, str]]:
    if os.path.isfile(path) and not os.access(path, os.R_OK):
        raise MetadataError(f"{path} cannot be read: {os.strerror(errno.EACCES)}")
    looked_for = "; ".join(f"{source.scheme}: {source.looks_like}" for source in sources if source.is_path)
    raise UsageError(f"{path} holds no metadata source that is known. Looked for {looked_for}")


def _load_readable(
    source: SourceKind, paths: Sequence[str], location: str, unreadable: list[str]
) -> list[DesiredState]:
    """Load the readable sources among several; each unreadable one adds a sentence to ``unreadable``."""
    if source.together and paths:
        return source.load(paths, location)
    states = []
    for path in paths:
        try:
            states += source.load([path], location)
        except (MetadataError, UsageError) as error:
            unreadable.append(f"{path} is passed over: {error}")
    return states


def _newest(group: Sequence[DesiredState]) -> DesiredState:
    kinds = {state.identity.source: state.identity.location for state in group}
    if len(kinds) > 1:
        named = " and ".join(f"{location} ({kind})" for kind, location in sorted(kinds.items()))
        cluster = group[0].identity.cluster_id
        whose = "sources that do not name their cluster" if cluster is None else f"cluster {cluster}"
        raise UsageError(f"{named} both speak for {whose}, and their ages cannot be compared: name the one that holds")
    ordered = sorted(group, key=_age, reverse=True)
    older = [
        f"{each.location} (epoch {each.epoch}, offset {each.offset}) is passed over: not newer"
        for each in (state.identity for state in ordered[1:])
    ]
    return _with_problems(ordered[0], older)


def _age(state: DesiredState) -> tuple[int, int]:
    epoch, offset = state.identity.epoch, state.identity.offset
    return (-1 if epoch is None else epoch, -1 if offset is None else offset)


def _with_problems(state: DesiredState, problems: Sequence[str]) -> DesiredState:
    if not problems:
        return state
    identity = replace(state.identity, problems=(*state.identity.problems, *problems))
    return replace(state, identity=identity)


def _walk(folder: str, depth: int) -> Iterator[str]:
    if _is_source_dir(folder):
        yield folder
        return
    metadata_dir = os.path.join(folder, METADATA_DIR)
    if os.path.lexists(os.path.join(folder, _LOG_DIR_FILE)):
        if os.path.isdir(metadata_dir):
            yield metadata_dir
        return
    if depth == 0:
        return
    try:
        with os.scandir(folder) as entries:
            below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for path in below:
        yield from _walk(path, depth - 1)


def _is_source_dir(folder: str) -> bool:
    from reconciler.sources.zookeeper import is_data_dir

    return os.path.basename(os.path.normpath(folder)) == METADATA_DIR or is_data_dir(folder)
