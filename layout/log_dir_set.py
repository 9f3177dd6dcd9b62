"""Check what the ``meta.properties`` of all log dirs of one broker must agree on before the broker starts.

Each log dir is *normal* (its file was read), *empty* (it has no file) or in *error* (the disk or the file failed);
these are Kafka's three states of an observed log dir. Source: FACTS §1.5, §2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto

from layout.ids import DirectoryId
from layout.meta_properties import FILE_NAME, MetaProperties


class Requirement(Flag):
    """What a kind of broker requires beyond agreement."""

    NONE = 0
    VERSION_0 = auto()
    """No file of another version: a ZooKeeper broker that does not migrate."""
    ONE_NORMAL = auto()
    """At least one log dir is normal."""
    METADATA_LOG_DIR = auto()
    """The metadata log dir is known."""
    NONE_EMPTY = auto()
    """Every log dir that can be read was formatted."""
    KRAFT = ONE_NORMAL | METADATA_LOG_DIR | NONE_EMPTY
    """Everything that a KRaft broker requires."""


@dataclass(frozen=True, slots=True)
class FailedLogDir:
    """A log dir in error; ``problem`` is one clause that says what failed."""

    problem: str


@dataclass(frozen=True, slots=True)
class LogDirSet:
    """The identities of all log dirs of one broker.

    Attributes:
        log_dirs: by path; None is an empty log dir. A path has one state, so the overlaps that Kafka must refuse
            cannot be expressed.
        metadata_log_dir: path of the log dir that holds the metadata log; None outside KRaft.
    """

    log_dirs: Mapping[str, MetaProperties | FailedLogDir | None]
    metadata_log_dir: str | None = None

    @property
    def normal(self) -> dict[str, MetaProperties]:
        """The log dirs whose file was read."""
        return {path: found for path, found in self.log_dirs.items() if isinstance(found, MetaProperties)}

    @property
    def empty(self) -> frozenset[str]:
        """The log dirs without the file."""
        return frozenset(path for path, found in self.log_dirs.items() if found is None)

    @property
    def failed(self) -> dict[str, str]:
        """The log dirs in error, each with its problem."""
        return {path: found.problem for path, found in self.log_dirs.items() if isinstance(found, FailedLogDir)}

    @property
    def cluster_id(self) -> str | None:
        """The first one found, in the order of the log dirs."""
        return next((found.cluster_id for found in self.normal.values() if found.cluster_id is not None), None)

    @property
    def node_id(self) -> int | None:
        """The first one found, in the order of the log dirs."""
        return next((found.node_id for found in self.normal.values() if found.node_id is not None), None)

    @property
    def directory_ids(self) -> dict[str, DirectoryId]:
        """The directory IDs of the log dirs that have one."""
        return {path: found.directory_id for path, found in self.normal.items() if found.directory_id is not None}


def startup_problems(
    found: LogDirSet,
    requirement: Requirement = Requirement.NONE,
    cluster_id: str | None = None,
    node_id: int | None = None,
) -> list[str]:
    """List every reason why a broker would refuse to start on these log dirs; an empty list means that it starts.

    Args:
        found: the log dirs. A log dir in error is no reason by itself, unless it is the metadata log dir.
        requirement: of this kind of broker.
        cluster_id: the expected one; None: the first one found.
        node_id: the expected one; None: the first one found.
    """
    return [
        *_disagreements(found, cluster_id, node_id),
        *_directory_id_problems(found),
        *_unmet_requirements(found, requirement),
    ]


def _disagreements(found: LogDirSet, cluster_id: str | None, node_id: int | None) -> list[str]:
    wanted_cluster = found.cluster_id if cluster_id is None else cluster_id
    wanted_node = found.node_id if node_id is None else node_id
    problems = []
    for path, identity in found.normal.items():
        if identity.cluster_id not in (None, wanted_cluster):
            problems.append(f"{path}/{FILE_NAME}: cluster.id is {identity.cluster_id!r}, expected {wanted_cluster!r}")
        if identity.node_id not in (None, wanted_node):
            problems.append(f"{path}/{FILE_NAME}: the node id is {identity.node_id}, expected {wanted_node}")
    return problems


def _directory_id_problems(found: LogDirSet) -> list[str]:
    problems = []
    first_with: dict[DirectoryId, str] = {}
    for path, directory_id in found.directory_ids.items():
        if directory_id.is_reserved:
            problems.append(f"{path}/{FILE_NAME}: directory.id {directory_id} is reserved")
        other = first_with.setdefault(directory_id, path)
        if other != path:
            problems.append(f"{path}/{FILE_NAME}: directory.id {directory_id} is also that of {other}")
    return problems


def _unmet_requirements(found: LogDirSet, requirement: Requirement) -> list[str]:
    problems = []
    if Requirement.VERSION_0 in requirement:
        problems += [
            f"{path}/{FILE_NAME}: version {identity.version} is not expected, only 0 is"
            for path, identity in found.normal.items()
            if identity.version != 0
        ]
    if Requirement.ONE_NORMAL in requirement and not found.normal:
        problems.append(f"no readable {FILE_NAME} in any log dir")
    if Requirement.METADATA_LOG_DIR in requirement and found.metadata_log_dir is None:
        problems.append("no metadata log dir is given")
    if found.metadata_log_dir in found.failed:
        problems.append(f"metadata log dir {found.metadata_log_dir}: {found.failed[found.metadata_log_dir]}")
    if Requirement.NONE_EMPTY in requirement:
        problems += [f"{path}: no {FILE_NAME}, the log dir is not formatted" for path in sorted(found.empty)]
    return problems
