"""Who a log dir belongs to: reads ``meta.properties``, and holds it against the identity that was expected.

A disk that is not mounted looks like an empty log dir. What tells them apart is the identity, so a log dir that cannot
show the one expected of it is never taken for what its path promises. The file's format is left to ``layout``.

Finds log dirs at or below a folder: of one broker, or of a whole fleet whose disks lie side by side.

A directory is a log dir when it holds ``meta.properties``, ``__cluster_metadata-0`` or one of the four offset
checkpoints. Nothing is said here about what is in it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from layout import checkpoint, meta_properties
from layout.errors import DamagedFileError
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from logstore.errors import UnreadableFileError
from logstore.fs import read_small_file
from logstore.rows import MetadataState

META_PROPERTIES_LIMIT = 1 << 16
"""Bytes. Kafka's own file has about 120."""


@dataclass(frozen=True, slots=True)
class ExpectedIdentity:
    """What a caller knows of a log dir beforehand; None: not known, so anything will do."""

    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    """Text of the directory ID, base64url."""


@dataclass(frozen=True, slots=True)
class IdentityFound:
    """What ``meta.properties`` says, or why it says nothing."""

    identity: MetaProperties | None
    state: MetadataState
    problem: str | None
    """One sentence; None where all is well."""

    @property
    def scheme(self) -> Scheme | None:
        """How the log dir is laid out when it is ours; None for a real broker's, and where it cannot be told."""
        text = None if self.identity is None else self.identity.scheme
        return next((scheme for scheme in Scheme if scheme == text), None)


def read_identity(log_dir: str, expected: ExpectedIdentity | None = None) -> IdentityFound:
    """Read the identity of a log dir that exists. Never raises: what is wrong is in the answer."""
    name = meta_properties.FILE_NAME
    try:
        data = read_small_file(f"{log_dir}/{name}", META_PROPERTIES_LIMIT)
    except UnreadableFileError as error:
        return IdentityFound(None, MetadataState.UNREADABLE, f"{name} {error}; a broker takes the log dir offline")
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

_SIGNS = frozenset({meta_properties.FILE_NAME, "__cluster_metadata-0", *checkpoint.OFFSET_CHECKPOINTS})


def discover(path: str) -> list[str]:
    """The log dirs at or below a folder, sorted; the path itself when there is none, so that a scan says what is wrong.

    Level by level, no deeper than :data:`DEEPEST`, not into a log dir that was found, and along no link except the path
    itself. What cannot be listed is passed over.
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
    """The directories in a directory; None when it is a log dir."""
    # The signs are asked for by name: a log dir may have to be listed nearly to its end until one of them comes up.
    if any(os.path.lexists(f"{directory}/{sign}") for sign in _SIGNS):
        return None
    children: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    children.append(entry.path)
    except (OSError, ValueError):
        return []
    return children
