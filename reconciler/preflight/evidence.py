"""The evidence that the rules judge: the contents of the log dirs, and which replicas the metadata want here.

The rules are functions of these values and read no disk. A log dir is read once for each configured path, even when two
paths lead to the same directory, because one of the rules reports that.

A KRaft broker checks for each replica whether the metadata have its topic ID and partition with this broker among the
replicas. It never looks at the name (FACTS §6.3). ``reconciler.verdicts.join`` joins live directories by name and all
others by topic ID. So :func:`find_wants` calls it twice, the second time with every live directory passed as a future
one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layout import meta_properties, partition_metadata
from layout.log_dir_set import FailedLogDir
from layout.meta_properties import MetaProperties
from logstore.fs import kind_of_file, refusal
from logstore.rows import Kind, MetadataState, utf8
from logstore.scan import (
    METADATA_LOG,
    Denied,
    DirectorySeen,
    FileDamage,
    damaged_checkpoints,
    denied_files,
    is_closed,
    look_into_directories,
    scan_all,
)
from reconciler.desired import DesiredState, is_only_in_sync
from reconciler.text import json_objects
from reconciler.verdicts import Judged, Row, Verdict, compare

FULL_BELOW = 1 << 20
"""Bytes: a disk with less free room counts as full, because what a change writes down may find none."""

_COLUMNS = [
    *("cluster_id", "node_id", "directory_id", "log_dir", "name", "kind", "topic", "partition", "topic_id"),
    *("metadata_state", "problem", "due_ms", "clean_shutdown"),
]


@dataclass(frozen=True, slots=True)
class SeenLogDir:
    """One configured path and its contents."""

    path: str
    """The given path, made absolute."""
    canonical: str
    """The path with all links followed, as a broker compares paths."""
    is_there: bool
    obstacle: str | None = None
    """Why a broker cannot use the path as a log dir, as a clause."""
    identity: MetaProperties | FailedLogDir | None = None
    """None: there is no ``meta.properties``."""
    scheme: str | None = None
    lock_held_by: str | None = None
    stopped_cleanly: bool = False
    rows: Sequence[Row] = ()
    directories: Sequence[DirectorySeen] = ()
    checkpoints: Sequence[FileDamage] = ()
    for_replicas: bool = True
    """Whether the path is in ``log.dirs``; False: a separate metadata log dir."""
    closed: frozenset[str] = frozenset()
    """What this user may not read, and the broker's own user perhaps may: paths below the log dir, "." for itself."""
    free_bytes: int | None = None
    """What is free on its disk for others than root, as :func:`free_room` counts it; None: not known."""
    read_only: bool = False
    """Whether its file system is mounted so that nothing can be written."""
    denied_files: Mapping[Denied, str] = field(default_factory=dict)
    """The first file at its top that its owner may not read, and the first that it may read and not write."""

    @property
    def is_loaded(self) -> bool:
        """Whether a broker gets as far as loading the log dir's replicas."""
        return self.for_replicas and self.is_there and self.obstacle is None and not self.failed

    @property
    def failed(self) -> bool:
        """Whether the log dir or its ``meta.properties`` exists and cannot be used."""
        return self.obstacle is not None or isinstance(self.identity, FailedLogDir)

    @property
    def metadata_log(self) -> DirectorySeen | None:
        """The directory of KRaft's own log."""
        return next((each for each in self.directories if each.name == METADATA_LOG), None)


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """All configured log dirs of a broker, in their order."""

    log_dirs: Sequence[SeenLogDir]
    metadata_log_dir: str | None
    """Canonical path of ``metadata.log.dir``."""

    @classmethod
    def of(cls, log_dirs: Sequence[SeenLogDir], metadata_log_dir: str | None = None) -> SeenBroker:
        """Combine log dirs; the metadata log dir is the first one by default, as for a broker (FACTS §7.1)."""
        first = log_dirs[0].canonical if log_dirs else None
        return cls(log_dirs, metadata_log_dir or first)

    @property
    def distinct(self) -> dict[str, SeenLogDir]:
        """Each log dir once, by its canonical path."""
        places: dict[str, SeenLogDir] = {}
        for each in self.log_dirs:
            places.setdefault(each.canonical, each)
        return places

    @property
    def loaded(self) -> list[SeenLogDir]:
        """The log dirs whose replicas a broker loads, each once."""
        return [each for each in self.distinct.values() if each.is_loaded]

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all log dirs."""
        for each in self.distinct.values():
            yield from each.rows


def look_at_broker(paths: Sequence[str], metadata_log_dir: str | None = None) -> SeenBroker:
    """Read the log dirs of one broker. Never raises, whatever a disk holds or lacks.

    Args:
        paths: as in ``log.dirs``, in that order.
        metadata_log_dir: as in ``metadata.log.dir``; None: the first of the paths.
    """
    wanted = [os.path.abspath(path) for path in paths]
    apart = None
    if metadata_log_dir is not None:
        metadata_log_dir = _canonical(metadata_log_dir)
        if metadata_log_dir not in map(_canonical, wanted):
            apart = metadata_log_dir
    everything = [*wanted, apart] if apart is not None else wanted
    observed = {each.log_dir: each for each in scan_all(everything, sizes=False)}
    seen = []
    for path in everything:
        there, obstacle, directories = _enter(path)
        observation = observed[path]
        identity = _identity(observation.state, observation.identity, observation.problem)
        checkpoints = damaged_checkpoints(path) if there and obstacle is None else []
        suspects = _suspects(obstacle, identity, directories, checkpoints)
        rows = list(json_objects(observation.rows.select(_COLUMNS)))
        for row in rows:
            row["log_dir"] = utf8(path)
        seen.append(
            SeenLogDir(
                utf8(path),
                utf8(_canonical(path)),
                there,
                obstacle,
                identity if there and obstacle is None else None,
                None if observation.identity is None else observation.identity.scheme,
                None if observation.lock is None else str(observation.lock),
                bool(rows[0]["clean_shutdown"]),
                rows,
                directories,
                checkpoints,
                path != apart,
                frozenset(utf8(name) for name in suspects if is_closed(path, name)),
                free_room(path),
                _is_read_only(path),
                denied_files(path) if there and obstacle is None else {},
            )
        )
    return SeenBroker.of(seen, None if metadata_log_dir is None else utf8(metadata_log_dir))


def _suspects(
    obstacle: str | None,
    identity: MetaProperties | FailedLogDir | None,
    directories: Iterable[DirectorySeen],
    checkpoints: Iterable[FileDamage],
) -> Iterator[str]:
    """Yield what could not be used, as paths below the log dir: some of it may be closed to this user alone."""
    if obstacle is not None:
        yield "."
        return
    if isinstance(identity, FailedLogDir):
        yield meta_properties.FILE_NAME
    for each in directories:
        if each.obstacle is not None:
            yield each.name
        damaged = [damage.file for damage in each.damage]
        if each.metadata.state is MetadataState.UNREADABLE:
            damaged.append(partition_metadata.FILE_NAME)
        yield from (f"{each.name}/{file}" for file in dict.fromkeys((*each.unreadable, *damaged)))
    yield from (damage.file for damage in checkpoints)


def free_room(path: str) -> int | None:
    """Return the bytes that are free for others than root on the disk of a path; 0: it takes no file more.

    A file system that counts no files says that it has none in all. None: the disk does not say.
    """
    try:
        found = os.statvfs(path)
    except (OSError, ValueError):
        return None
    return 0 if found.f_files > 0 and found.f_favail == 0 else found.f_bavail * found.f_frsize


def _is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except (OSError, ValueError):
        return False


def is_anything_there(paths: Iterable[str]) -> bool:
    """Whether any of the paths exists."""
    return any(os.path.lexists(path) for path in paths)


def _canonical(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _enter(path: str) -> tuple[bool, str | None, list[DirectorySeen]]:
    """Return whether a path exists, what keeps a broker from using it, and the directories in it."""
    try:
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            return True, f"is {kind_of_file(status.st_mode)}, not a directory", []
        return True, None, look_into_directories(path)
    except FileNotFoundError:
        if os.path.islink(path):
            return True, "is a symbolic link that leads nowhere", []
        return False, None, []
    except OSError as error:
        return True, refusal(error), []
    except ValueError as error:
        return True, f"is no path: {error}", []


def _identity(
    state: MetadataState, identity: MetaProperties | None, problem: str | None
) -> MetaProperties | FailedLogDir | None:
    """Read ``meta.properties`` as a broker does: an empty file is version 0 without any entry."""
    if identity is not None:
        return identity
    if state is MetadataState.EMPTY:
        return MetaProperties(0)
    if state in (MetadataState.MISSING, MetadataState.ABSENT):
        return None
    return FailedLogDir(problem or "it cannot be read")


_JUDGED_KINDS = frozenset({Kind.LIVE.value, Kind.FUTURE.value, Kind.DELETE.value, Kind.STRAY.value, Kind.LOG_DIR.value})
_MISSING = frozenset({Verdict.MISSING, Verdict.ABSENT})


@dataclass(frozen=True, slots=True)
class ReplicaWant:
    """What the metadata say about one directory of a replica."""

    is_judged: bool = False
    """The metadata are about this broker."""
    is_complete: bool = False
    """The metadata are complete: a replica that they do not mention is not wanted."""
    by_name: bool = False
    """This broker is among the replicas; joined by name for live directories, by topic ID for all others."""
    by_topic_id: bool = False
    """This broker is among the replicas; joined by topic ID."""
    is_same_topic: bool = False
    """The topic ID on the disk belongs to the topic of this name."""
    is_stale: bool = False
    """The name is known under another topic ID."""
    only_in_sync: bool = False
    """The replica that is wanted here is the partition's only in-sync replica, by the metadata."""
    assigned_here: bool = False
    """The metadata assign the replica to this very log dir."""
    topic_id: str | None = None
    """The topic ID under which the replica is wanted here."""

    @property
    def is_unwanted(self) -> bool:
        """Whether the metadata say that this topic ID's partition should not be here."""
        return self.is_judged and self.is_complete and not self.by_topic_id


UNKNOWN_WANT = ReplicaWant()
"""The value where no metadata are given."""


@dataclass(frozen=True, slots=True)
class BrokerWants:
    """What the metadata say about the replicas on a broker's log dirs, and about missing replicas."""

    of: Mapping[tuple[str, str], ReplicaWant] = field(default_factory=dict)
    """Log dir and name, as in the rows → what the metadata say."""
    nowhere: Sequence[Judged] = ()
    """Replicas that are wanted on this broker and are on none of the log dirs."""

    def about(self, log_dir: str, name: str) -> ReplicaWant:
        """Return what the metadata say about one directory."""
        return self.of.get((log_dir, name), UNKNOWN_WANT)


def find_wants(states: Mapping[str, DesiredState], rows: Sequence[Row], now_ms: int) -> BrokerWants:
    """Compare every replica with the metadata.

    Args:
        states: desired state by cluster ID, as :func:`reconciler.desired.by_cluster` returns it.
        rows: of all log dirs of one broker.
        now_ms: in ms since 1970; no result that is used depends on it.
    """
    if not states:
        return BrokerWants()
    asked = [row for row in rows if row["kind"] in _JUDGED_KINDS]
    by_name = list(compare(states, asked, now_ms))
    as_future = [{**row, "kind": Kind.FUTURE.value} if row["kind"] == Kind.LIVE else row for row in asked]
    by_topic_id = list(compare(states, as_future, now_ms))
    answers = zip(asked, by_name, by_topic_id, strict=False)
    return BrokerWants(
        {(row["log_dir"], row["name"]): _want(row, name, topic_id) for row, name, topic_id in answers},
        [each for each in by_name[len(asked) :] if each.verdict in _MISSING],
    )


def _want(row: Row, by_name: Judged, by_topic_id: Judged) -> ReplicaWant:
    wanted = by_topic_id.wanted or by_name.wanted
    joined = by_name.row
    return ReplicaWant(
        is_judged=joined.judged,
        is_complete=joined.complete,
        by_name=joined.wanted,
        by_topic_id=by_topic_id.row.wanted,
        is_same_topic=joined.id_topic == joined.topic,
        is_stale=by_name.verdict is Verdict.STALE_ID,
        only_in_sync=wanted is not None and is_only_in_sync(wanted),
        assigned_here=by_topic_id.wanted is not None
        and row["directory_id"] is not None
        and by_topic_id.wanted["directory_id"] == row["directory_id"],
        topic_id=None if wanted is None else wanted["topic_id"],
    )
