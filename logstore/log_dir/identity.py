"""Which log dir a path leads to: reads ``meta.properties``, compares it with the expected identity, finds log dirs.

A disk that is not mounted looks like an empty log dir. Only the identity distinguishes them, so a log dir that does not
show the expected identity is never used in place of the expected one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from layout import checkpoint, meta_properties
from layout.errors import DamagedFileError
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from logstore.arguments import check_fields
from logstore.errors import InvalidArgumentError, UnreadableFileError
from logstore.fs import read_small_file, when_refused
from logstore.rows import MetadataState

META_PROPERTIES_LIMIT = 1 << 16
"""Bytes. Kafka's own file has about 120."""


@dataclass(frozen=True, slots=True)
class ExpectedIdentity:
    """The identity that a caller expects of a log dir; None accepts any value."""

    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    """Text of the directory ID, base64url."""

    def __post_init__(self) -> None:
        check_fields(self, InvalidArgumentError)


@dataclass(frozen=True, slots=True)
class IdentityFound:
    """The content of ``meta.properties``, or why there is none."""

    identity: MetaProperties | None
    state: MetadataState
    problem: str | None
    """One sentence; None where all is well."""

    @property
    def scheme(self) -> Scheme | None:
        """The layout of a log dir of ours; None for a real broker's, and where it is unknown."""
        text = None if self.identity is None else self.identity.scheme
        return next((scheme for scheme in Scheme if scheme == text), None)


def read_identity(log_dir: str, expected: ExpectedIdentity | None = None) -> IdentityFound:
    """Read the identity of an existing log dir. Never raises: the answer holds the problem."""
    name = meta_properties.FILE_NAME
    try:
        data = read_small_file(f"{log_dir}/{name}", META_PROPERTIES_LIMIT)
    except UnreadableFileError as error:
        return IdentityFound(None, MetadataState.UNREADABLE, when_refused(f"{name} {error}"))
    if data is None:
        return _unknown(
            MetadataState.MISSING,
            f"there is no {name}: nothing says whose log dir this is, or whether its disk is mounted",
        )
    if not data.strip():
        return _unknown(MetadataState.EMPTY, f"{name} is empty: nothing says whose log dir this is")
    try:
        identity = meta_properties.parse(data)
    except DamagedFileError as error:
        return _unknown(MetadataState.MALFORMED, f"{error}; {error.effect}")
    if identity.node_id is None:
        return IdentityFound(identity, MetadataState.EMPTY, f"{name} names no broker")
    if identity.scheme is not None and identity.scheme not in frozenset(Scheme):
        problem = f"{name}: {meta_properties.SCHEME_KEY} is {identity.scheme!r:.60}, which this release does not know"
        return IdentityFound(identity, MetadataState.MALFORMED, problem)
    difference = _difference(identity, expected or ExpectedIdentity())
    if difference:
        return IdentityFound(identity, MetadataState.ABSENT, difference)
    oddity = f"{name} has Windows line ends; a broker reads it all the same" if b"\r\n" in data else None
    return IdentityFound(identity, MetadataState.OK, oddity)


def _unknown(state: MetadataState, problem: str) -> IdentityFound:
    return IdentityFound(None, state, problem)


def _difference(found: MetaProperties, expected: ExpectedIdentity) -> str | None:
    """Say in one sentence how the identity found differs from the one expected, with both values."""
    directory_id = None if found.directory_id is None else str(found.directory_id)
    pairs = (
        ("cluster.id", found.cluster_id, expected.cluster_id),
        ("node.id", found.node_id, expected.node_id),
        ("directory.id", directory_id, expected.directory_id),
    )
    differences = [
        f"its {key} is {here}, and {wanted} was expected"
        for key, here, wanted in pairs
        if wanted is not None and here != wanted
    ]
    return f"another log dir lies here: {'; '.join(differences)}" if differences else None


DEEPEST = 6
"""Levels below the folder that are searched."""

_NO_LOG_DIR = "lost+found"
"""Of the file system's own; only root may list it."""
_SIGNS = frozenset({meta_properties.FILE_NAME, "__cluster_metadata-0", *checkpoint.OFFSET_CHECKPOINTS})


def discover(path: str) -> list[str]:
    """Find the log dirs of one broker or of a whole fleet, at or below a folder; return them sorted.

    A directory is a log dir when it holds ``meta.properties``, ``__cluster_metadata-0`` or one of the four offset
    checkpoints. The search goes level by level, no deeper than :data:`DEEPEST`, not into a found log dir, and along no
    link except the path itself. A directory that cannot be listed may be one, and stands among them, so that a scan of
    it says why; only ``lost+found`` is never one.

    Returns:
        The path itself when there is no log dir, so that a scan of it reports the problem.
    """
    found: list[str] = []
    level = [path]
    for _ in range(DEEPEST + 1):
        below: list[str] = []
        for directory in level:
            children = _children(directory)
            if children is None:
                found.append(directory)
            else:
                below += children
        level = below
    return sorted(found) or [path]


def _children(directory: str) -> list[str] | None:
    """List the directories in a directory; None when it is a log dir, or may be one and cannot be listed."""
    # Check the signs by name: a listing of a log dir may have to go nearly to its end until one of them appears.
    if any(os.path.lexists(f"{directory}/{sign}") for sign in _SIGNS):
        return None
    children: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    children.append(entry.path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return []
    except OSError:
        return [] if os.path.basename(directory) == _NO_LOG_DIR else None
    return children
