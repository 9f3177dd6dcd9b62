"""A ZooKeeper in memory: sessions, ephemeral nodes, transactions, and watches that fire later, as events.

Calls are answered at once and are atomic. A watch is a persistent recursive one; what it has to tell goes through the
timers, one event for each change, in the order of the changes, so that a session never learns of a later change first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from reconciler.simulator.kernel import Timers
from reconciler.simulator.zookeeper.nodes import (
    Check,
    Create,
    Delete,
    Nodes,
    Operation,
    SessionExpiredError,
    Set,
    Znode,
    check_path,
)


class ZooKeeper:
    """One server, which never fails; what fails are the sessions and the machines that hold them."""

    def __init__(self, timers: Timers) -> None:
        """Begin with the root alone.

        Args:
            timers: through them the watches fire, after 0 ms.
        """
        self.nodes = Nodes()
        self.watches: dict[str, list[tuple[Session, Callable[[str], None]]]] = {}
        self.timers = timers
        self._sessions = 0

    def session(self, name: str) -> Session:
        """Open a session; the name is for the history: ``broker-3``."""
        self._sessions += 1
        return Session(self, self._sessions, name)

    def dump(self) -> dict[str, bytes]:
        """The data of every node but the root, by path, sorted."""
        return {path: self.nodes.get(path).data for path in self.nodes.paths()}


class Session:
    """What one client sees and may change. Every call raises SessionExpiredError once the session is over."""

    def __init__(self, server: ZooKeeper, number: int, name: str) -> None:
        """Made by :meth:`ZooKeeper.session`."""
        self.number = number
        self.name = name
        self.expired = False
        self._server = server
        self._untold: deque[tuple[Callable[[str], None], str]] = deque()

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False, parents: bool = False
    ) -> str:
        """Create a node.

        Args:
            path: where; with ``sequence``, ten digits are added to it.
            data: what stands in it.
            ephemeral: it goes when this session does.
            sequence: number it, by how many children its parent ever had.
            parents: create the missing nodes above it too, empty and lasting, each in a transaction of its own.

        Returns:
            Its path.

        Raises:
            NodeExistsError: there is one already.
            NoNodeError: there is none above it.
            EphemeralParentError: the node above it is ephemeral.
        """
        above = path.rpartition("/")[0]
        if parents and above and above not in self._nodes():
            self.create(above, parents=True)
        return self._commit([Create(path, data, ephemeral, sequence)])[0]

    def get(self, path: str) -> Znode:
        """Read a node.

        Raises:
            NoNodeError: there is none.
        """
        return self._nodes().get(path)

    def find(self, path: str) -> Znode | None:
        """Read a node; None where there is none."""
        nodes = self._nodes()
        return nodes.get(path) if path in nodes else None

    def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted.

        Raises:
            NoNodeError: there is no such node.
        """
        return self._nodes().children(path)

    def set(self, path: str, data: bytes, version: int = -1) -> int:
        """Give a node other data, and return its new version.

        Raises:
            NoNodeError: there is none.
            BadVersionError: its version is neither -1 nor the one expected.
        """
        self._commit([Set(path, data, version)])
        return self.get(path).version

    def delete(self, path: str, version: int = -1, *, recursive: bool = False) -> None:
        """Delete a node; ``recursive`` takes all below it too, in one transaction.

        Raises:
            NoNodeError: there is none.
            BadVersionError: its version is neither -1 nor the one expected.
            NotEmptyError: it has children, and the deletion is not recursive.
        """
        every = self._nodes().below(path) if recursive else [path]
        self._commit([Delete(each, version if each == path else -1) for each in every])

    def multi(self, operations: Sequence[Operation]) -> None:
        """Do all of the operations as one transaction, or none of them.

        Raises:
            SimulatedZooKeeperError: an operation cannot be done; nothing was changed.
        """
        self._commit(operations)

    def watch(self, path: str, told: Callable[[str], None]) -> None:
        """Be told of every change at or below a path, until the session is over.

        Args:
            path: of a node that may not exist yet; ``/`` for all.
            told: is handed the path of each node that was created, deleted, or given other data, later, in order.
        """
        self._nodes()
        check_path(path)
        self._server.watches.setdefault(path, []).append((self, told))

    def expire(self) -> None:
        """The server gives the session up: its ephemeral nodes go, its watches end, its later calls fail.

        A second time does nothing.
        """
        if self.expired:
            return
        owned = self._server.nodes.owned_by(self.number)
        if owned:
            self._commit([Delete(path) for path in owned])
        self.expired = True
        self.abandon()

    def abandon(self) -> None:
        """The machine that held the session is gone: nobody is told anything, but its nodes stay until it expires."""
        self._untold.clear()
        for path, watches in list(self._server.watches.items()):
            left = [watch for watch in watches if watch[0] is not self]
            if left:
                self._server.watches[path] = left
            else:
                del self._server.watches[path]

    def close(self) -> None:
        """The client ends the session, with the same effect."""
        self.expire()

    def _nodes(self) -> Nodes:
        if self.expired:
            raise SessionExpiredError(f"session {self.number} of {self.name} is over; open another")
        return self._server.nodes

    def _commit(self, operations: Sequence[Operation]) -> list[str]:
        paths = self._nodes().commit(operations, self.number)
        for path, operation in zip(paths, operations, strict=True):
            if not isinstance(operation, Check):
                self._tell(path)
        return paths

    def _tell(self, path: str) -> None:
        """Have every watch at or above a path told of a change there."""
        place = path
        while True:
            for session, told in self._server.watches.get(place, ()):
                session._untold.append((told, path))
                self._server.timers.after(0, f"watch of {session.name}: {path}", session._tell_next)
            if place == "/":
                return
            place = place.rpartition("/")[0] or "/"

    def _tell_next(self) -> None:
        if self._untold:
            told, path = self._untold.popleft()
            told(path)
