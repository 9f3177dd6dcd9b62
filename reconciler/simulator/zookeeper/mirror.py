"""The ZooKeeper in memory and a real one, held against each other: read, written, compared, through kazoo.

So a cluster that was simulated can be looked at with Kafka's own tools, one that is real can be simulated from where it
stands, and the one in memory is proved by the real one: the same operations must give the same nodes. Data alone goes
across: ephemeral nodes become lasting ones there, for the mirror's session is not a broker's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.simulator.zookeeper.nodes import check_path
from reconciler.simulator.zookeeper.server import Session

ITS_OWN = "/zookeeper"
"""What a real server keeps for itself; never read and never written."""


class RealZooKeeper(Protocol):
    """What is asked of a ``kazoo.client.KazooClient`` that is connected."""

    def get(self, path: str) -> tuple[bytes, Any]:
        """Data and status of a node."""

    def exists(self, path: str) -> Any:
        """The status of a node; None where there is none."""

    def get_children(self, path: str) -> list[str]:
        """The names of a node's children."""

    def create(self, path: str, value: bytes = b"", *, makepath: bool = False) -> str:
        """Create a node, and with ``makepath`` those above it."""

    def set(self, path: str, value: bytes) -> Any:
        """Give a node other data."""

    def delete(self, path: str) -> Any:
        """Delete a node without children."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A node that is not the same on both sides; None: it is not there."""

    path: str
    ours: bytes | None
    theirs: bytes | None


def read(client: RealZooKeeper, root: str = "/") -> dict[str, bytes]:
    """The data of every node below a root, by its path below it, sorted; one that goes while it is read is not told.

    Args:
        client: connected.
        root: a chroot such as ``/kafka``; it is not part of the paths.
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
    """Bring a real server to the same nodes: what is missing is created, what differs is set.

    Args:
        client: connected.
        nodes: data by path below the root, as :meth:`ZooKeeper.dump` gives it.
        root: a chroot such as ``/kafka``; created where it is missing.
        others: nodes below the root that are not among these stay; False: they are deleted, the deepest first.

    Raises:
        InvalidPathError: a path is none; nothing was written.
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
    """Bring the one in memory to the same nodes; those that are there beside them stay."""
    for path, data in sorted(nodes.items()):
        found = session.find(path)
        if found is None:
            session.create(path, data, parents=True)
        elif found.data != data:
            session.set(path, data)


def compare(ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> list[Difference]:
    """What is not the same on both sides, by path."""
    every: Iterable[str] = sorted({*ours, *theirs})
    return [Difference(path, ours.get(path), theirs.get(path)) for path in every if ours.get(path) != theirs.get(path)]


def _and_above(path: str) -> list[str]:
    """A path and those above it, but the root."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts) + 1)]
