"""What is looked at before the rules are asked: of each log dir the scan's rows, and what a broker reads besides.

The rules are functions of these values and touch no disk. A log dir is looked at once for each path that a broker is
configured with, also when two paths lead to the same place: that is one of the rules.

Which replicas the metadata want here: the comparison's columns, joined by topic ID as a broker does, and by name.

A KRaft broker asks for each replica whether its topic ID and partition are in the metadata with this broker among the
replicas, and never looks at the name (FACTS §6.3). ``reconciler.verdicts.join`` joins live directories by name and
all others by topic ID; so it is asked twice, the second time with every live directory called a future one. Nothing is
compared here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layout.log_dir_set import FailedLogDir
from layout.meta_properties import MetaProperties
from logstore.fs import kind_of_file, refusal
from logstore.rows import Kind, MetadataState, utf8
from logstore.scan import METADATA_LOG, DirectorySeen, FileDamage, damaged_checkpoints, look_into_directories, scan_all
from reconciler.desired import DesiredState
from reconciler.text import json_objects
from reconciler.verdicts import Judged, Row, Verdict, compare

_COLUMNS = [
    *("cluster_id", "node_id", "directory_id", "log_dir", "name", "kind", "topic", "partition", "topic_id"),
    *("metadata_state", "problem", "due_ms", "clean_shutdown"),
]


@dataclass(frozen=True, slots=True)
class SeenLogDir:
    """One configured path, and what was found there."""

    path: str
    """As it was given, made absolute."""
    canonical: str
    """With all links followed, as a broker compares paths."""
    is_there: bool
    obstacle: str | None = None
    """Why a broker cannot use it as a log dir, one clause."""
    identity: MetaProperties | FailedLogDir | None = None
    """None: there is no ``meta.properties``."""
    scheme: str | None = None
    lock_held_by: str | None = None
    stopped_cleanly: bool = False
    rows: Sequence[Row] = ()
    directories: Sequence[DirectorySeen] = ()
    checkpoints: Sequence[FileDamage] = ()
    for_replicas: bool = True
    """It is one of ``log.dirs``; False: a metadata log dir apart from them."""

    @property
    def is_loaded(self) -> bool:
        """Whether a broker comes so far as to load what lies in it."""
        return self.for_replicas and self.is_there and self.obstacle is None and not self.failed

    @property
    def failed(self) -> bool:
        """It is there, and cannot be used, or its ``meta.properties`` cannot."""
        return self.obstacle is not None or isinstance(self.identity, FailedLogDir)

    @property
    def metadata_log(self) -> DirectorySeen | None:
        """The directory of KRaft's own log."""
        return next((each for each in self.directories if each.name == METADATA_LOG), None)


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """All log dirs that a broker is configured with, in their order."""

    log_dirs: Sequence[SeenLogDir]
    metadata_log_dir: str | None
    """Canonical path of ``metadata.log.dir``."""

    @classmethod
    def of(cls, log_dirs: Sequence[SeenLogDir], metadata_log_dir: str | None = None) -> SeenBroker:
        """Put log dirs together; without a metadata log dir it is the first of them, as for a broker (FACTS §7.1)."""
        first = log_dirs[0].canonical if log_dirs else None
        return cls(log_dirs, metadata_log_dir or first)

    @property
    def distinct(self) -> dict[str, SeenLogDir]:
        """Each place once, by its canonical path."""
        places: dict[str, SeenLogDir] = {}
        for each in self.log_dirs:
            places.setdefault(each.canonical, each)
        return places

    @property
    def loaded(self) -> list[SeenLogDir]:
        """The log dirs whose replicas a broker loads, each place once."""
        return [each for each in self.distinct.values() if each.is_loaded]

    def rows(self) -> Iterator[Row]:
        """The rows of all places."""
        for each in self.distinct.values():
            yield from each.rows


def look_at_broker(paths: Sequence[str], metadata_log_dir: str | None = None) -> SeenBroker:
    """Look at the log dirs of one broker. Never raises for anything that lies, or does not lie, on a disk.

    Args:
        paths: as in ``log.dirs``, in that order.
        metadata_log_dir: as in ``metadata.log.dir``; None: the first of them.
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
                damaged_checkpoints(path) if there and obstacle is None else (),
                path != apart,
            )
        )
    return SeenBroker.of(seen, None if metadata_log_dir is None else utf8(metadata_log_dir))


def is_anything_there(paths: Iterable[str]) -> bool:
    """Whether any of the paths exists."""
    return any(os.path.lexists(path) for path in paths)


def _canonical(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _enter(path: str) -> tuple[bool, str | None, list[DirectorySeen]]:
    """Whether there is anything at a path; what keeps a broker from using it; and the directories in it."""
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
    """What a broker makes of ``meta.properties``; it takes an empty file for version 0 with nothing in it."""
    if identity is not None:
        return identity
    if state is MetadataState.EMPTY:
        return MetaProperties(0)
    if state in (MetadataState.MISSING, MetadataState.ABSENT):
        return None
    return FailedLogDir(problem or "it cannot be read")


_ASKED = frozenset({Kind.LIVE.value, Kind.FUTURE.value, Kind.DELETE.value, Kind.STRAY.value, Kind.LOG_DIR.value})
_NOWHERE = frozenset({Verdict.MISSING, Verdict.ABSENT})


@dataclass(frozen=True, slots=True)
class Want:
    """What the metadata say of one directory of a replica."""

    is_judged: bool = False
    """They speak for this broker."""
    is_complete: bool = False
    """What they do not mention is not wanted."""
    by_name: bool = False
    """This broker is among the replicas; asked by name for live directories, by topic ID for all others."""
    by_topic_id: bool = False
    is_same_topic: bool = False
    """The topic ID on the disk belongs to the topic of this name."""
    is_stale: bool = False
    """The name is known under another topic ID."""
    only_in_sync: bool = False
    """The partition's only in-sync replica, for the metadata, is the one wanted here."""
    assigned_here: bool = False
    """The metadata assign the replica to this very log dir."""
    topic_id: str | None = None
    """Under which it is wanted here."""

    @property
    def is_unwanted(self) -> bool:
        """The metadata say that this topic ID's partition should not be here."""
        return self.is_judged and self.is_complete and not self.by_topic_id


UNKNOWN = Want()


@dataclass(frozen=True, slots=True)
class Wants:
    """What the metadata say of everything that lies on a broker's log dirs, and of what does not."""

    of: Mapping[tuple[str, str], Want] = field(default_factory=dict)
    """By log dir and name, as in the rows."""
    nowhere: Sequence[Judged] = ()
    """Wanted on this broker, and on none of the log dirs."""

    def about(self, log_dir: str, name: str) -> Want:
        """What they say of one directory."""
        return self.of.get((log_dir, name), UNKNOWN)


def ask(states: Mapping[str, DesiredState], rows: Sequence[Row], now_ms: int) -> Wants:
    """Ask the comparison about every replica.

    Args:
        states: desired state by cluster ID, as :func:`reconciler.desired.by_cluster` gives it.
        rows: of all log dirs of one broker.
        now_ms: ms since 1970; no answer that is used hangs on it.
    """
    if not states:
        return Wants()
    asked = [row for row in rows if row["kind"] in _ASKED]
    by_name = list(compare(states, asked, now_ms))
    as_future = [{**row, "kind": Kind.FUTURE.value} if row["kind"] == Kind.LIVE else row for row in asked]
    by_topic_id = list(compare(states, as_future, now_ms))
    answers = zip(asked, by_name, by_topic_id, strict=False)
    return Wants(
        {(row["log_dir"], row["name"]): _want(row, name, topic_id) for row, name, topic_id in answers},
        [each for each in by_name[len(asked) :] if each.verdict in _NOWHERE],
    )


def _want(row: Row, by_name: Judged, by_topic_id: Judged) -> Want:
    wanted = by_topic_id.wanted or by_name.wanted
    joined = by_name.row
    return Want(
        is_judged=joined.judged,
        is_complete=joined.complete,
        by_name=joined.wanted,
        by_topic_id=by_topic_id.row.wanted,
        is_same_topic=joined.id_topic == joined.topic,
        is_stale=by_name.verdict is Verdict.STALE_ID,
        only_in_sync=is_only_in_sync(wanted),
        assigned_here=by_topic_id.wanted is not None
        and row["directory_id"] is not None
        and by_topic_id.wanted["directory_id"] == row["directory_id"],
        topic_id=None if wanted is None else wanted["topic_id"],
    )


def is_only_in_sync(wanted: Row | None) -> bool:
    """Whether a wanted replica is its partition's only one in sync."""
    return wanted is not None and bool(wanted["in_sync"]) and wanted["isr_size"] == 1
