"""What is looked at before the rules are asked: of each log dir the scan's rows, and what a broker reads besides.

The rules are functions of these values and touch no disk. A log dir is looked at once for each path that a broker is
configured with, also when two paths lead to the same place: that is one of the rules.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from layout.log_dir_set import FailedLogDir
from layout.meta_properties import MetaProperties
from logstore.fs import kind_of_file, refusal
from logstore.rows import MetadataState, utf8
from logstore.scan import METADATA_LOG, DirectorySeen, FileDamage, damaged_checkpoints, look_into_directories, scan_all
from reconciler.text import json_objects
from reconciler.verdicts import Row

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
