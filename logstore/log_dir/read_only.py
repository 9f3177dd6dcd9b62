"""A log dir opened for reading alone, without its lock.

A running broker holds the lock of its log dirs, and their staged replicas must be listed all the same. So code that
only reads takes a :class:`LogDirView`, which an open :class:`logstore.log_dir.LogDir` is as well.
"""

from __future__ import annotations

import os
from typing import Protocol, Self

from layout.scheme import Scheme
from logstore.errors import NotALogDirError
from logstore.fs import Directory, refusal
from logstore.log_dir.identity import read_identity
from logstore.rows import MetadataState


class LogDirView(Protocol):
    """A log dir for code that only reads."""

    @property
    def path(self) -> str:
        """Its absolute path."""

    @property
    def root(self) -> Directory:
        """The open directory."""

    @property
    def scheme(self) -> Scheme:
        """The layout of its partitions."""

    @property
    def is_ours(self) -> bool:
        """Whether it is laid out for this engine alone."""


class ReadOnlyLogDir:
    """A log dir opened without its lock; nothing is made or changed."""

    def __init__(self, root: Directory, scheme: str | None) -> None:
        """Use :meth:`open`."""
        self.path = root.path
        self.root = root
        self.scheme = Scheme.FLAT if scheme is None else Scheme(scheme)
        self.is_ours = scheme is not None

    @classmethod
    def open(cls, path: str) -> ReadOnlyLogDir:
        """Open a log dir, and read its identity.

        Raises:
            NotALogDirError: there is no such directory, or its identity is missing or damaged.
        """
        path = os.path.abspath(path)
        try:
            root = Directory.open(path)
        except (OSError, ValueError) as error:
            reason = refusal(error) if isinstance(error, OSError) else str(error)
            raise NotALogDirError(f"the log dir {path} {reason}") from error
        found = read_identity(path, None)
        if found.identity is None or found.state is not MetadataState.OK:
            root.close()
            raise NotALogDirError(f"{path}: {found.problem}; a log dir that is not known is not looked into")
        return cls(root, found.identity.scheme)

    def close(self) -> None:
        """Close the directory; a second time does nothing."""
        self.root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
