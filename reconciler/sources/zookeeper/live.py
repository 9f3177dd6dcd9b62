"""A live ZooKeeper as a metadata source: ``zk:HOST:PORT[,HOST:PORT…][/chroot]``, through kazoo.

A session asks node by node while the cluster goes on, so a plain walk would mix moments. The reading first notes the
last transaction that the server knows. Nodes and lists that no later transaction touched are as they were then, and
together they are the tree of that moment. If one was touched, everything is read again. States of partitions change
all the time and say nothing of replicas, so they may be newer.

Nothing is written to ZooKeeper, and no watch is left. A tree that cannot be read whole is refused. No credentials are
taken: a tree with nodes that only some users may read needs a snapshot file instead.
Source: DESIGN §7; FACTS §8; KIP516-11; KIP37-4; LIBRARIES §3.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from logstore.parallel import paused_gc
from reconciler.desired import DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.zookeeper import znodes
from reconciler.sources.zookeeper.jute import Znode
from reconciler.sources.zookeeper.state import assemble

CONNECT_TIMEOUT_S = 15.0
"""Seconds within which one of the servers must answer as a ZooKeeper; there is no option for it."""

ANSWER_TIMEOUT_S = 15.0
"""Seconds to wait for one answer of a server; there is no option for it."""

ATTEMPTS = 5
"""How often everything is read before a cluster that keeps changing is refused."""

_IN_FLIGHT = 500
"""Requests that are sent before the first answer is awaited."""

_SINGLE = (znodes.CLUSTER_ID, znodes.CONTROLLER_EPOCH, znodes.MIGRATION)
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)


def load(address: str) -> DesiredState:
    """Read the desired state from a live ZooKeeper; its age is the time of the reading.

    Args:
        address: ``HOST[:PORT][,HOST[:PORT]…][/chroot]``; the port of a host without one is 2181.

    Raises:
        UsageError: no such address or chroot, no cluster there, or kazoo is not installed.
        MetadataError: no server answers, the connection broke, a node may not be read, or the cluster kept changing.
    """
    now_ms = time.time_ns() // 1_000_000
    with session(address, " before everything was read") as client, paused_gc():
        reading = read(client, address)
    identity = MetadataIdentity(
        "zookeeper", address, offset=reading.zxid, timestamp_ms=now_ms, digest=content_digest(reading.nodes)
    )
    return assemble(reading.nodes, identity)


def split_address(address: str) -> tuple[str, str]:
    """Split an address into the servers, separated by commas, and the chroot, ``""`` for none.

    Raises:
        UsageError: it does not have the form ``HOST:PORT[,HOST:PORT…][/chroot]``.
    """
    hosts, _, below = address.partition("/")
    matches = [_HOST.fullmatch(host) for host in hosts.split(",")]
    names = below.removesuffix("/").split("/") if below else []
    is_bad_port = any(match and match[1] and not 0 < int(match[1]) < 1 << 16 for match in matches)
    if None in matches or is_bad_port or any(name in ("", ".", "..") for name in names):
        raise UsageError(f"{address!r:.200} is no address of ZooKeeper: zk:HOST:PORT[,HOST:PORT…][/chroot] is expected")
    return hosts, "".join(f"/{name}" for name in names)


def content_digest(nodes: Mapping[str, Znode]) -> str:
    """SHA-256, hex, over path, creating zxid, version and data of every node, in the order of the paths."""
    digest = hashlib.sha256()
    for path, node in sorted(nodes.items()):
        digest.update(f"{path}\0{node.czxid} {node.version} {len(node.data)}\0".encode("utf-8", "surrogatepass"))
        digest.update(node.data)
    return digest.hexdigest()


@contextmanager
def session(address: str, before: str = "", then: str = "try again") -> Iterator[Any]:
    """Connect a client whose root is the chroot of the address; turn its errors into ours, and close it in any case.

    Args:
        address: ``HOST[:PORT][,HOST[:PORT]…][/chroot]``.
        before: says of a connection that fails what it did not outlast, with a blank before it.
        then: says of it what holds now and what to do.

    Raises:
        UsageError: no such address or chroot, or kazoo is not installed.
        MetadataError: no server answers, or the connection fails.
    """
    hosts, chroot = split_address(address)
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ImportError as error:
        raise UsageError(
            "a live ZooKeeper is reached through kazoo, which is not installed: pip install 'kazoo>=2.10'"
        ) from error
    warning = _LastWarning()
    client = KazooClient(hosts=hosts, timeout=CONNECT_TIMEOUT_S, logger=warning.logger)
    try:
        client.start(CONNECT_TIMEOUT_S)
        if chroot:
            found = client.exists_async(chroot).get(timeout=CONNECT_TIMEOUT_S)
            if found is None:
                raise UsageError(f"{address}: ZooKeeper has no node {chroot}: name the chroot of zookeeper.connect")
            client.chroot = chroot
        yield client
    except KazooTimeoutError as error:
        raise MetadataError(
            f"{address}: no ZooKeeper answered within {CONNECT_TIMEOUT_S:.0f} s{warning.shown}: check host and port,"
            " and that the server runs"
        ) from error
    except KazooException as error:
        raise MetadataError(
            f"{address}: the connection to ZooKeeper failed{before} ({type(error).__name__}){warning.shown}: {then}"
        ) from error
    finally:
        client.stop()
        client.close()


def node_at(client: Any, path: str) -> Any:
    """Return data and status of a node, by a client of :func:`session`; None: there is no such node."""
    from kazoo.exceptions import NoNodeError

    try:
        return client.get(path)
    except NoNodeError:
        return None


class _LastWarning(logging.Handler):
    """Keeps the last warning of a client for the error message, and off standard error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.logger = logging.Logger("reconciler.zookeeper")
        self.logger.addHandler(self)
        self._text = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        # The message says already that the client gave up; the warning before says why.
        if not text.startswith("Failed connecting"):
            self._text = text

    @property
    def shown(self) -> str:
        return f" ({self._text:.200})" if self._text else ""


class ZooKeeperClient(Protocol):
    """The used part of a ``kazoo.client.KazooClient``; every request returns a result whose ``get`` waits."""

    @property
    def last_zxid(self) -> int:
        """The newest transaction that an answer came with."""
        ...

    def sync_async(self, path: str) -> Any:
        """Bring the server up to its leader."""
        ...

    def get_async(self, path: str) -> Any:
        """Ask for (data, stat)."""
        ...

    def get_children_async(self, path: str, *, include_data: bool) -> Any:
        """Ask for (names, stat)."""
        ...


class _ChangedError(Exception):
    """A node changed during the reading; the text names it."""


@dataclass(slots=True)
class ZooKeeperReading:
    """Nodes as of one moment.

    Attributes:
        before: the last transaction before the reading; all nodes but states of partitions are as of it.
        nodes: the nodes that ``znodes.keep`` selects, by path.
        zxid: the greatest zxid of any of them, or of the list of its children.
    """

    before: int
    nodes: dict[str, Znode] = field(default_factory=dict)
    zxid: int = 0


def read(client: ZooKeeperClient, location: str) -> ZooKeeperReading:
    """Read the nodes of the cluster below the client's root.

    Raises:
        UsageError: no cluster keeps its topics there.
        MetadataError: a node may not be read, or something changed during every attempt.
        kazoo.exceptions.KazooException, KazooTimeoutError: the connection failed.
    """
    moved = ""
    for _ in range(ATTEMPTS):
        try:
            return _TreeWalk(client, location).reading
        except _ChangedError as error:
            moved = str(error)
    raise MetadataError(
        f"{location}: the cluster changed while it was read, {ATTEMPTS} times running, last at {moved}: try again when"
        " fewer topics and brokers come and go"
    )


class _TreeWalk:
    """One attempt to read the tree; raises _ChangedError where two moments would be mixed."""

    def __init__(self, client: ZooKeeperClient, location: str) -> None:
        self._client, self._location = client, location
        client.sync_async("/").get(timeout=ANSWER_TIMEOUT_S)
        self.reading = ZooKeeperReading(client.last_zxid)
        marks = self._marks()
        for path in _SINGLE:
            for _, found in self._fetch([path]):
                if found is not None:
                    self._keep(path, *found)
        self._keep_tree(self._children(znodes.BROKERS) or ())
        self._keep_tree(self._children(znodes.MARKED) or ())
        self._keep_tree(self._children(znodes.FEWER_PARTITIONS) or ())
        topics = self._children(znodes.TOPICS)
        if topics is None:
            raise UsageError(self._no_topics())
        self._keep_states(self._keep_topics(topics))
        if self._marks() != marks:
            raise _ChangedError("the list of topics or brokers, or the controller epoch")

    def _keep_topics(self, level: Sequence[str]) -> list[str]:
        """Keep topics and namespaces, level by level; return the possible paths of the states of their partitions."""
        states: list[str] = []
        while level:
            parents = []
            for path, data, stat in self._kept(level):
                numbers = znodes.decode_topic(data or b"").partitions
                states += [f"{path}/partitions/{number}/state" for number in numbers]
                if not numbers and stat.numChildren:
                    parents.append(path)
            level = [path for _, children in self._lists(parents) for path in children if znodes.keep(path)]
        return states

    def _keep_tree(self, level: Sequence[str]) -> None:
        while level:
            parents = [path for path, _, stat in self._kept(level) if stat.numChildren]
            level = [path for _, children in self._lists(parents) for path in children]

    def _keep_states(self, paths: Iterable[str]) -> None:
        """A partition without a state is new: its leader is not chosen yet."""
        for path, found in self._fetch(paths):
            if found is not None:
                self._add(path, *found)

    def _kept(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | None, Any]]:
        """Keep nodes that a list named, and yield them."""
        for path, found in self._fetch(paths):
            if found is None:
                raise _ChangedError(path)
            self._keep(path, *found)
            yield path, *found

    def _keep(self, path: str, data: bytes | None, stat: Any) -> None:
        if max(stat.czxid, stat.mzxid) > self.reading.before:
            raise _ChangedError(path)
        self._add(path, data, stat)

    def _add(self, path: str, data: bytes | None, stat: Any) -> None:
        self.reading.nodes[path] = Znode(data or b"", stat.czxid, stat.mtime, stat.version)
        self.reading.zxid = max(self.reading.zxid, stat.czxid, stat.mzxid, stat.pzxid)

    def _children(self, path: str) -> list[str] | None:
        """The paths below a node; None when there is no such node."""
        return next((children for _, children in self._lists([path], optional=True)), None)

    def _lists(self, paths: Iterable[str], *, optional: bool = False) -> Iterator[tuple[str, list[str]]]:
        for path, found in self._asked(
            paths, lambda each: self._client.get_children_async(each or "/", include_data=True)
        ):
            if found is None:
                if optional:
                    continue
                raise _ChangedError(path)
            names, stat = found
            if stat.pzxid > self.reading.before:
                raise _ChangedError(path)
            self.reading.zxid = max(self.reading.zxid, stat.pzxid)
            yield path, [f"{path}/{name}" for name in sorted(names)]

    def _fetch(self, paths: Iterable[str]) -> Iterator[tuple[str, tuple[bytes | None, Any] | None]]:
        return self._asked(paths, self._client.get_async)

    def _asked(self, paths: Iterable[str], ask: Any) -> Iterator[tuple[str, Any]]:
        """Yield the answer for each path, in order, with many requests in flight; None where there is no such node."""
        from kazoo.exceptions import NoAuthError, NoNodeError

        rest = iter(paths)
        while batch := [(path, ask(path)) for path in islice(rest, _IN_FLIGHT)]:
            for path, answer in batch:
                try:
                    yield path, answer.get(timeout=ANSWER_TIMEOUT_S)
                except NoNodeError:
                    yield path, None
                except NoAuthError as error:
                    raise MetadataError(
                        f"{self._location}: {path} may not be read by everybody, so the reading would not be whole: let"
                        " its ACL allow it, or give a snapshot file (zk-snapshot:)"
                    ) from error

    def _marks(self) -> tuple[object, ...]:
        """Marks that change with the controller and with the lists of topics, brokers and what is to be deleted."""
        lists = (znodes.TOPICS, znodes.BROKERS, znodes.MARKED, znodes.FEWER_PARTITIONS)
        paths = (znodes.CONTROLLER_EPOCH, *lists)
        stats = [found and found[1] for _, found in self._fetch(paths)]
        return tuple(stat and (stat.czxid, stat.mzxid, stat.pzxid) for stat in stats)

    def _no_topics(self) -> str:
        """The message for a tree without topics; it names a node that may be the chroot, as Kafka often has one."""
        roots = [name.rpartition("/")[2] for name in self._children("") or ()]
        topics = self._fetch(f"/{name}{znodes.TOPICS}" for name in roots)
        found = [name for name, (_, there) in zip(roots, topics, strict=True) if there is not None]
        hint = f"; there is one below /{found[0]}: name it as zk:HOST:PORT/{found[0]}" if found else ""
        return f"{self._location}: there is no {znodes.TOPICS}, so no Kafka cluster keeps its topics here{hint}"
