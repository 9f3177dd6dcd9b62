"""How something takes part in a controller without being part of it: fewer partitions (KIP694-3) does.

An extension is made at each election and forgotten at the resignation; what has to outlast that it keeps in ZooKeeper,
below the paths that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from layout.topic import TopicPartition


class Extension(Protocol):
    """Called by the active controller, one call at a time."""

    def paths(self) -> Sequence[str]:
        """The nodes to be watched, with all below them."""

    def loaded(self) -> None:
        """The context was read, and nothing was sent yet: set modes here, so that the first requests have them."""

    def started(self) -> None:
        """The controller has sent its first requests: go on with what was begun under another controller."""

    def changed(self, path: str) -> None:
        """A node at or below one of the paths was created, deleted, or given other data."""

    def deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Nothing is left of partitions that ``Deletions.begin_partitions`` was asked to delete."""
