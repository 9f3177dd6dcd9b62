"""The ZooKeeper in memory and a real one: each read, written and compared with the other, through kazoo.

So Kafka's own tools can look at a simulated cluster, a simulation can start from a real one, and the real server proves
the one in memory: the same operations must give the same nodes. Only data goes across: ephemeral nodes become lasting
ones there, for the mirror's session is not a broker's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.simulator.zookeeper.nodes import check_path
from reconciler.simulator.zookeeper.server import Session

ITS_OWN = "/zookeeper"
"""The nodes of a real server's own; never read and never written."""


class RealZooKeeper(Protocol):
    """The part of a connected ``kazoo.client.KazooClient`` that the mirror uses."""

    def get(self, path: str) -> tuple[bytes, Any]:
        """Return data and status of a node."""

    def exists(self, path: str) -> Any:
        """Return the status of a node; None: the node does not exist."""

    def get_children(self, path: str) -> list[str]:
        """Return the names of a node's children."""

    def create(self, path: str, value: bytes = b"", *, makepath: bool = False) -> str:
        """Create a node, and with ``makepath`` the nodes above it."""

    def set(self, path: str, value: bytes) -> Any:
        """Replace a node's data."""

    def delete(self, path: str) -> Any:
        """Delete a node without children."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A node that differs between the two sides; None: the node does not exist there."""

    path: str
    ours: bytes | None
    theirs: bytes | None


def read(client: RealZooKeeper, root: str = "/") -> dict[str, bytes]:
    """Read the data of every node below a root, by its path below it, sorted; nodes deleted meanwhile are left out.

    The root, a chroot such as ``/kafka``, is not part of the paths.
    """
    from kazoo.exceptions import NoNodeError

    prefix = root.rstrip("/")
    found: dict[str, bytes] = {}
    todo = [""]
    while todo:
        path = todo.pop()
        try:
            if path:
                found[path] = client.get(prefix + path)[0] or b""
            names = client.get_children(prefix + path or "/")
        except NoNodeError:
            found.pop(path, None)
            continue
        todo.extend(f"{path}/{name}" for name in names if prefix or f"{path}/{name}" != ITS_OWN)
    return dict(sorted(found.items()))


def write(client: RealZooKeeper, nodes: Mapping[str, bytes], root: str = "/", *, others: bool = True) -> None:
    """Bring a real server to the same nodes: create missing nodes, and set differing ones.

    The root, a chroot such as ``/kafka``, is created where it is missing. Other nodes below it stay, or with
    ``others=False`` are deleted, the deepest first.

    Raises:
        InvalidPathError: a path is invalid; nothing was written.
    """
    for path in nodes:
        check_path(path)
    prefix = root.rstrip("/")
    before = read(client, root)
    for path in sorted(nodes):
        if path not in before:
            client.create(prefix + path, nodes[path], makepath=True)
        elif before[path] != nodes[path]:
            client.set(prefix + path, nodes[path])
    if not others:
        kept = {above for path in nodes for above in _and_above(path)}
        for path in sorted(set(before) - kept, reverse=True):
            client.delete(prefix + path)


def load(session: Session, nodes: Mapping[str, bytes]) -> None:
    """Bring the ZooKeeper in memory to the same nodes; other nodes stay."""
    for path, data in sorted(nodes.items()):
        found = session.find(path)
        if found is None:
            session.create(path, data, parents=True)
        elif found.data != data:
            session.set(path, data)


def compare(ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> list[Difference]:
    """Return the nodes that differ between the two sides, by path."""
    every: Iterable[str] = sorted({*ours, *theirs})
    return [Difference(path, ours.get(path), theirs.get(path)) for path in every if ours.get(path) != theirs.get(path)]


def _and_above(path: str) -> list[str]:
    """Return a path and all paths above it, but the root."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts) + 1)]
