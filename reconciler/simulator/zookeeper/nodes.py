"""The tree of nodes, changed by transactions that are done as a whole or not at all; and the errors of a change.

Versions and transaction IDs count as in ZooKeeper: a transaction has one ID, a node's version starts at 0, and the
number of a sequential node is how many children its parent ever had. The errors have the names of ZooKeeper's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from reconciler.errors import ReconcilerError


class SimulatedZooKeeperError(ReconcilerError):
    """Root of the errors of the ZooKeeper in memory; nothing was changed."""


class NoNodeError(SimulatedZooKeeperError):
    """The node, or its parent, does not exist."""


class NodeExistsError(SimulatedZooKeeperError):
    """The node exists already."""


class BadVersionError(SimulatedZooKeeperError):
    """The node has another version: somebody else changed it."""


class NotEmptyError(SimulatedZooKeeperError):
    """A node that has children cannot be deleted."""


class EphemeralParentError(SimulatedZooKeeperError):
    """An ephemeral node cannot have children."""


class InvalidPathError(SimulatedZooKeeperError):
    """The path neither is ``/`` nor begins with it, or it has an empty, ``.`` or ``..`` part."""


class SessionExpiredError(SimulatedZooKeeperError):
    """The session is over; only a new one can read and write."""


ANY_VERSION = -1
"""Expected as a version, it matches every version."""


class NodeData(NamedTuple):
    """One node as a reader sees it."""

    data: bytes
    version: int
    czxid: int
    """The transaction that created it: a broker's epoch, for its node (FACTS §8)."""
    mzxid: int
    """The last transaction that changed its data."""
    owner: int | None
    """The number of the session that an ephemeral node ends with; None: the node is lasting."""
    children_version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Fail the whole transaction unless the node has this version."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node; ``sequence`` adds ten digits to its name."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Replace a node's data."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a node without children."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Check | Create | Set | Delete


@dataclass(slots=True)
class _Node:
    data: bytes
    czxid: int
    mzxid: int
    owner: int | None
    version: int = 0
    children: dict[str, None] = field(default_factory=dict)
    ever: int = 0


class Nodes:
    """Every node by its path. The root always exists."""

    def __init__(self) -> None:
        self._nodes = {"/": _Node(b"", 0, 0, None)}
        self.last_transaction = 0

    def __contains__(self, path: str) -> bool:
        return path in self._nodes

    def paths(self) -> list[str]:
        """Return every path but the root's, sorted."""
        return sorted(path for path in self._nodes if path != "/")

    def below(self, path: str) -> list[str]:
        """Return the paths of a node and of all nodes below it, each before its parent.

        Raises:
            NoNodeError: the node does not exist.
        """
        found = [path]
        for each in found:
            found.extend(join(each, name) for name in self.children(each))
        return found[::-1]

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted.

        Raises:
            NoNodeError: the node does not exist.
        """
        return sorted(self._node(path).children)

    def get(self, path: str) -> NodeData:
        """Read a node.

        Raises:
            NoNodeError: the node does not exist.
        """
        node = self._node(path)
        # As ZooKeeper counts: each child that came or went is one change.
        changes = 2 * node.ever - len(node.children)
        return NodeData(node.data, node.version, node.czxid, node.mzxid, node.owner, changes)

    def owned_by(self, owner: int) -> list[str]:
        """Return the paths of a session's ephemeral nodes, sorted."""
        return sorted(path for path, node in self._nodes.items() if node.owner == owner)

    def commit(self, operations: Sequence[Operation], owner: int) -> list[str]:
        """Do all operations as one transaction, or none of them.

        Returns:
            The path of each operation's node; a sequential node's has its number.

        Raises:
            SimulatedZooKeeperError: an operation cannot be done; nothing was changed.
        """
        transaction = self.last_transaction + 1
        undo: list[Callable[[], None]] = []
        try:
            paths = [self._do(operation, transaction, owner, undo) for operation in operations]
        except Exception:
            for step in reversed(undo):
                step()
            raise
        self.last_transaction = transaction
        return paths

    def _do(self, operation: Operation, transaction: int, owner: int, undo: list[Callable[[], None]]) -> str:
        if isinstance(operation, Create):
            return self._create(operation, transaction, owner, undo)
        node = self._node(operation.path, operation.version)
        if isinstance(operation, Set):
            before = (node.data, node.version, node.mzxid)
            node.data, node.version, node.mzxid = operation.data, node.version + 1, transaction

            def set_back() -> None:
                node.data, node.version, node.mzxid = before

            undo.append(set_back)
        elif isinstance(operation, Delete):
            self._delete(operation.path, node, undo)
        return operation.path

    def _create(self, operation: Create, transaction: int, owner: int, undo: list[Callable[[], None]]) -> str:
        above = operation.path.rpartition("/")[0]
        parent = self._node(above or "/")
        path = f"{operation.path}{parent.ever:010d}" if operation.sequence else operation.path
        check_path(path)
        name = path.rpartition("/")[2]
        if path in self._nodes:
            raise NodeExistsError(f"{path} exists already; set its data, or delete it first")
        if parent.owner is not None:
            raise EphemeralParentError(f"{above} is ephemeral and cannot have {name!r} below it")
        self._nodes[path] = _Node(operation.data, transaction, transaction, owner if operation.ephemeral else None)
        parent.children[name] = None
        parent.ever += 1

        def take_back() -> None:
            del self._nodes[path]
            del parent.children[name]
            parent.ever -= 1

        undo.append(take_back)
        return path

    def _delete(self, path: str, node: _Node, undo: list[Callable[[], None]]) -> None:
        if path == "/":
            raise InvalidPathError("the root cannot be deleted")
        if node.children:
            raise NotEmptyError(f"{path} has {len(node.children)} children; delete them first, or delete recursively")
        above, _, name = path.rpartition("/")
        parent = self._node(above or "/")
        del self._nodes[path]
        del parent.children[name]

        def put_back() -> None:
            self._nodes[path] = node
            parent.children[name] = None

        undo.append(put_back)

    def _node(self, path: str, version: int = ANY_VERSION) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            check_path(path)
            raise NoNodeError(f"there is no {path}; create it first")
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(f"{path} is at version {node.version}, not {version}; read it again")
        return node


def join(above: str, name: str) -> str:
    """Return the path of a child."""
    return f"{above.rstrip('/')}/{name}"


def check_path(path: str) -> None:
    """Check a path against ZooKeeper's rules.

    Raises:
        InvalidPathError: the path breaks a rule.
    """
    parts = path.split("/")
    if path != "/" and (parts[0] or len(parts) < 2 or any(part in ("", ".", "..") for part in parts[1:])):
        raise InvalidPathError(f"{path!r} is no path: it begins with / and has no empty, '.' or '..' part")
