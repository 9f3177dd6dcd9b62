"""One consistent reading of what Kafka keeps in a live ZooKeeper.

A session asks node by node while the cluster goes on, so a plain walk would mix times. Here the last transaction that
the server knew before the walk is remembered. Nodes and lists that no later transaction touched are as they were then,
and together they are the tree of that moment; if one was touched, everything is read again. States of partitions change
all the time and say nothing of replicas, so they may be newer. The addresses, the connection and its errors belong to
``zookeeper_live``, what the nodes mean to ``znodes``. Source: FACTS §8; KIP37-4; LIBRARIES §3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from reconciler.errors import MetadataError, UsageError
from reconciler.sources.zookeeper import znodes
from reconciler.sources.zookeeper.jute import Znode

ANSWER_TIMEOUT_S = 15.0
"""Seconds to wait for one answer of a server; there is no option for it."""

ATTEMPTS = 5
"""How often everything is read before a cluster that keeps changing is refused."""

_IN_FLIGHT = 500
"""Questions that are sent before the first answer is awaited."""

_TOPICS, _BROKERS, _MARKED = "/brokers/topics", "/brokers/ids", "/admin/delete_topics"
_EPOCH = "/controller_epoch"
_SINGLE = ("/cluster/id", _EPOCH, "/migration")


class Client(Protocol):
    """What is used of a ``kazoo.client.KazooClient``; every question gives a result whose ``get`` waits."""

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


class _MovedError(Exception):
    """A node changed during the reading; the text is its path."""


@dataclass(slots=True)
class Reading:
    """Nodes as of one moment.

    Attributes:
        before: the last transaction before the reading; all but states of partitions are as of it.
        nodes: what ``znodes.keep`` wants, by path.
        zxid: the greatest that any of them carries, or the list of any of them.
    """

    before: int
    nodes: dict[str, Znode] = field(default_factory=dict)
    zxid: int = 0


def read(client: Client, location: str) -> Reading:
    """Read the nodes of the cluster below the client's root.

    Raises:
        UsageError: no cluster keeps its topics there.
        MetadataError: a node may not be read, or something changed during every attempt.
        kazoo.exceptions.KazooException, KazooTimeoutError: the connection failed.
    """
    moved = ""
    for _ in range(ATTEMPTS):
        try:
            return _Walk(client, location).reading
        except _MovedError as error:
            moved = str(error)
    raise MetadataError(
        f"{location}: the cluster changed while it was read, {ATTEMPTS} times running, last at {moved}: try again when"
        " fewer topics and brokers come and go"
    )


class _Walk:
    """One attempt; raises _MovedError where two moments would be mixed."""

    def __init__(self, client: Client, location: str) -> None:
        self._client, self._location = client, location
        client.sync_async("/").get(timeout=ANSWER_TIMEOUT_S)
        self.reading = Reading(client.last_zxid)
        marks = self._marks()
        for path in _SINGLE:
            for _, found in self._fetch([path]):
                if found is not None:
                    self._keep(path, *found)
        self._keep_all(self._children(_BROKERS) or ())
        self._keep_tree(self._children(_MARKED) or ())
        topics = self._children(_TOPICS)
        if topics is None:
            raise UsageError(self._no_topics())
        self._keep_states(self._keep_topics(topics))
        if self._marks() != marks:
            raise _MovedError("the list of topics or brokers, or the controller epoch")

    def _keep_topics(self, level: Sequence[str]) -> list[str]:
        """Keep topics and tiers, level by level; return the paths where the states of their partitions would be."""
        states: list[str] = []
        while level:
            parents = []
            for path, data, stat in self._present(level):
                self._keep(path, data, stat)
                numbers = znodes.decode_topic(data or b"").partitions
                states += [f"{path}/partitions/{number}/state" for number in numbers]
                if not numbers and stat.numChildren:
                    parents.append(path)
            level = [path for _, children in self._lists(parents) for path in children if znodes.keep(path)]
        return states

    def _keep_tree(self, level: Sequence[str]) -> None:
        while level:
            parents = []
            for path, data, stat in self._present(level):
                self._keep(path, data, stat)
                if stat.numChildren:
                    parents.append(path)
            level = [path for _, children in self._lists(parents) for path in children]

    def _keep_all(self, paths: Iterable[str]) -> None:
        for path, data, stat in self._present(paths):
            self._keep(path, data, stat)

    def _keep_states(self, paths: Iterable[str]) -> None:
        """A partition without a state is new: its leader is not chosen yet."""
        for path, found in self._fetch(paths):
            if found is not None:
                self._add(path, *found)

    def _present(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | None, Any]]:
        """Ask for nodes that a list named."""
        for path, found in self._fetch(paths):
            if found is None:
                raise _MovedError(path)
            yield path, *found

    def _keep(self, path: str, data: bytes | None, stat: Any) -> None:
        if max(stat.czxid, stat.mzxid) > self.reading.before:
            raise _MovedError(path)
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
                raise _MovedError(path)
            names, stat = found
            if stat.pzxid > self.reading.before:
                raise _MovedError(path)
            self.reading.zxid = max(self.reading.zxid, stat.pzxid)
            yield path, [f"{path}/{name}" for name in sorted(names)]

    def _ask_for_children(self, path: str) -> Any:
        return self._client.get_children_async(path or "/", include_data=True)

    def _fetch(self, paths: Iterable[str]) -> Iterator[tuple[str, tuple[bytes | None, Any] | None]]:
        return self._asked(paths, self._client.get_async)

    def _asked(self, paths: Iterable[str], ask: Any) -> Iterator[tuple[str, Any]]:
        """The answer for each path, in order, many questions at once; None where there is no such node."""
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
        """What changes with the list of topics, of brokers and of marked topics, and with the controller."""
        stats = [found and found[1] for _, found in self._fetch((_EPOCH, _TOPICS, _BROKERS, _MARKED))]
        return tuple(stat and (stat.czxid, stat.mzxid, stat.pzxid) for stat in stats)

    def _no_topics(self) -> str:
        """Say where the topics may be: Kafka's root is often a node of the tree (its chroot)."""
        roots = [name.rpartition("/")[2] for name in self._children("") or ()]
        found = [name for (name, there) in zip(roots, self._have_topics(roots), strict=True) if there]
        hint = f"; there is one below /{found[0]}: name it as zk:HOST:PORT/{found[0]}" if found else ""
        return f"{self._location}: there is no {_TOPICS}, so no Kafka cluster keeps its topics here{hint}"

    def _have_topics(self, roots: Iterable[str]) -> list[bool]:
        return [found is not None for _, found in self._fetch(f"/{name}{_TOPICS}" for name in roots)]
