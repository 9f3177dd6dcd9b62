"""A ZooKeeper of dictionaries: transactions, stats, and the questions that a client asks without waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Stat:
    """What of a node's stat is read."""

    czxid: int
    mzxid: int
    pzxid: int
    mtime: int = 1_700_000_000_000
    version: int = 0
    numChildren: int = 0  # noqa: N815 - the name that kazoo gives it


class Answer:
    """What a question gives: a value or an error, after a wait."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self, timeout: float) -> Any:
        assert timeout > 0, "a wait without an end"
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


class Tree:
    """The server and its client in one. ``before_answer`` is called with each path that is asked for."""

    def __init__(self, nodes: Mapping[str, bytes]) -> None:
        self.zxid = self.last_zxid = 0
        self.nodes: dict[str, tuple[bytes, Stat]] = {"/": (b"", Stat(0, 0, 0))}
        self.closed_paths: set[str] = set()
        self.asked: list[str] = []
        self.before_answer: Callable[[str], object] = lambda _: None
        for path, data in sorted(nodes.items()):
            self.create(path, data)

    def create(self, path: str, data: bytes = b"") -> None:
        assert path not in self.nodes
        parent = path.rpartition("/")[0] or "/"
        if parent not in self.nodes:
            self.create(parent)
        self.zxid += 1
        self.nodes[path] = data, Stat(self.zxid, self.zxid, self.zxid)
        self._touch(parent, 1)

    def set(self, path: str, data: bytes) -> None:
        self.zxid += 1
        stat = self.nodes[path][1]
        stat.mzxid, stat.version = self.zxid, stat.version + 1
        self.nodes[path] = data, stat

    def delete(self, path: str) -> None:
        self.zxid += 1
        del self.nodes[path]
        self._touch(path.rpartition("/")[0] or "/", -1)

    def sync_async(self, path: str) -> Answer:
        return self._answer(path, lambda: path)

    def get_async(self, path: str) -> Answer:
        return self._answer(path, lambda: (self.nodes[path][0], self._stat(path)))

    def get_children_async(self, path: str, *, include_data: bool) -> Answer:
        assert include_data
        below = path.rstrip("/") + "/"
        return self._answer(
            path,
            lambda: (
                [
                    each.removeprefix(below)
                    for each in reversed(list(self.nodes))
                    if each != "/" and each.rpartition("/")[0] + "/" == below
                ],
                self._stat(path),
            ),
        )

    def _answer(self, path: str, value: Callable[[], Any]) -> Answer:
        from kazoo.exceptions import NoAuthError, NoNodeError

        self.asked.append(path)
        self.before_answer(path)
        self.last_zxid = self.zxid
        if path in self.closed_paths:
            return Answer(NoAuthError())
        return Answer(value() if path in self.nodes else NoNodeError())

    def _stat(self, path: str) -> Stat:
        stat = self.nodes[path][1]
        return Stat(stat.czxid, stat.mzxid, stat.pzxid, stat.mtime, stat.version, stat.numChildren)

    def _touch(self, parent: str, children: int) -> None:
        stat = self.nodes[parent][1]
        stat.pzxid = self.zxid
        stat.numChildren += children
