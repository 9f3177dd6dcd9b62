"""A ZooKeeper in memory: sessions, ephemeral nodes, transactions, and watches that fire later, as events.

Calls are answered at once and are atomic. Watches are persistent and recursive. Their notifications go through the
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
    NodeData,
    Nodes,
    Operation,
    SessionExpiredError,
    Set,
    check_path,
)


class ZooKeeper:
    """One server, which never fails; only sessions and the machines that hold them fail."""

    def __init__(self, timers: Timers) -> None:
        """Start with the root alone; the timers fire the watches, after 0 ms."""
        self.nodes = Nodes()
        self.watches: dict[str, list[tuple[Session, Callable[[str], None]]]] = {}
        self.timers = timers
        self._sessions = 0

    def session(self, name: str) -> Session:
        """Open a session; the name appears in the history: ``broker-3``."""
        self._sessions += 1
        return Session(self, self._sessions, name)

    def dump(self) -> dict[str, bytes]:
        """Return the data of every node but the root, by path, sorted."""
        return {path: self.nodes.get(path).data for path in self.nodes.paths()}


class Session:
    """One client's session. Every call raises SessionExpiredError once the session is over."""

    def __init__(self, server: ZooKeeper, number: int, name: str) -> None:
        """Belong to a server; made by :meth:`ZooKeeper.session`."""
        self.number = number
        self.name = name
        self.expired = False
        self._server = server
        self._pending: deque[tuple[Callable[[str], None], str]] = deque()
        self._is_due = False

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False, parents: bool = False
    ) -> str:
        """Create a node, and return its path.

        With ``sequence`` ten digits are added: how many children its parent ever had. An ``ephemeral`` node is deleted
        when this session ends. ``parents`` creates the missing nodes above it, empty and lasting, each in a transaction
        of its own.

        Raises:
            NodeExistsError: the node exists already.
            NoNodeError: its parent does not exist.
            EphemeralParentError: its parent is ephemeral.
        """
        above = path.rpartition("/")[0]
        if parents and above and above not in self._nodes():
            self.create(above, parents=True)
        return self.multi([Create(path, data, ephemeral, sequence)])[0]

    def get(self, path: str) -> NodeData:
        """Read a node.

        Raises:
            NoNodeError: the node does not exist.
        """
        return self._nodes().get(path)

    def find(self, path: str) -> NodeData | None:
        """Read a node; None: the node does not exist."""
        nodes = self._nodes()
        return nodes.get(path) if path in nodes else None

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted.

        Raises:
            NoNodeError: the node does not exist.
        """
        return self._nodes().children(path)

    def set(self, path: str, data: bytes, version: int = -1) -> int:
        """Replace a node's data, and return its new version.

        Raises:
            NoNodeError: the node does not exist.
            BadVersionError: a version other than -1 was expected, and the node has another.
        """
        self.multi([Set(path, data, version)])
        return self.get(path).version

    def delete(self, path: str, version: int = -1, *, recursive: bool = False) -> None:
        """Delete a node; ``recursive`` deletes all nodes below it too, in one transaction.

        Raises:
            NoNodeError: the node does not exist.
            BadVersionError: a version other than -1 was expected, and the node has another.
            NotEmptyError: the node has children, and the deletion is not recursive.
        """
        every = self._nodes().below(path) if recursive else [path]
        self.multi([Delete(each, version if each == path else -1) for each in every])

    def multi(self, operations: Sequence[Operation]) -> list[str]:
        """Do all operations as one transaction, or none of them, and return the path of each one's node.

        Raises:
            SimulatedZooKeeperError: an operation cannot be done; nothing was changed.
        """
        paths = self._nodes().commit(operations, self.number)
        for path, operation in zip(paths, operations, strict=True):
            if not isinstance(operation, Check):
                self._notify(path)
        return paths

    def watch(self, path: str, changed: Callable[[str], None]) -> None:
        """Watch for every change at or below a path, whose node may not exist yet, until the session is over.

        ``changed`` is called later, in order, with the path of each node that was created, deleted, or given other
        data.
        """
        self._nodes()
        check_path(path)
        self._server.watches.setdefault(path, []).append((self, changed))

    def expire(self) -> None:
        """End the session at the server: its ephemeral nodes go, its watches end, its later calls fail.

        Does nothing the second time.
        """
        if self.expired:
            return
        owned = self._server.nodes.owned_by(self.number)
        if owned:
            self.multi([Delete(path) for path in owned])
        self.expired = True
        self.abandon()

    def abandon(self) -> None:
        """Stop all notifications, because the machine is gone; the session's nodes stay until it expires."""
        self._pending.clear()
        for path, watches in list(self._server.watches.items()):
            left = [watch for watch in watches if watch[0] is not self]
            if left:
                self._server.watches[path] = left
            else:
                del self._server.watches[path]

    def close(self) -> None:
        """End the session at the client, with the same effect as :meth:`expire`."""
        self.expire()

    def _nodes(self) -> Nodes:
        if self.expired:
            raise SessionExpiredError(f"session {self.number} of {self.name} is over; open another")
        return self._server.nodes

    def _notify(self, path: str) -> None:
        """Queue a notification for every watch at or above a changed path."""
        watched = path
        while True:
            for session, changed in self._server.watches.get(watched, ()):
                session._pending.append((changed, path))
                if not session._is_due:
                    session._is_due = True
                    self._server.timers.after(0, f"watch of {session.name}: {path}", session._notify_all)
            if watched == "/":
                return
            watched = watched.rpartition("/")[0] or "/"

    def _notify_all(self) -> None:
        """Give the notifications that wait, all in one event; what follows from them is another event."""
        self._is_due = False
        for _ in range(len(self._pending)):
            if not self._pending:
                return  # the session ended with one of them
            changed, path = self._pending.popleft()
            changed(path)
