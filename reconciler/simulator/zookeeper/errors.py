"""What a call to the ZooKeeper in memory can fail with; the names are those of ZooKeeper's own errors."""

from __future__ import annotations

from reconciler.errors import ReconcilerError


class SimulatedZooKeeperError(ReconcilerError):
    """Root of what the ZooKeeper in memory raises; nothing was changed."""


class NoNodeError(SimulatedZooKeeperError):
    """The node, or the one it would lie below, does not exist."""


class NodeExistsError(SimulatedZooKeeperError):
    """There is such a node already."""


class BadVersionError(SimulatedZooKeeperError):
    """Somebody else changed the node: its version is another."""


class NotEmptyError(SimulatedZooKeeperError):
    """A node that has children cannot be deleted."""


class EphemeralParentError(SimulatedZooKeeperError):
    """An ephemeral node cannot have children."""


class InvalidPathError(SimulatedZooKeeperError):
    """A path is ``/``, or begins with it and has no empty, ``.`` or ``..`` part."""


class SessionExpiredError(SimulatedZooKeeperError):
    """The session is over; only a new one can ask for anything."""
