"""Read ZooKeeper's transaction log beside a snapshot: only to say as of when the snapshot speaks.

A snapshot ``snapshot.<zxid>`` holds every transaction up to its zxid, and perhaps some of those that came while it was
written. Its nodes only say when one of them changed last, which may be long before: most transactions of a cluster at
rest are sessions. The log has the time of each transaction::

    header        magic "ZKLG", version 2, database id                      int32 int32 int64
    transaction   Adler-32, length, then so many bytes, then "B"            int64 int32
      begins      session, cxid, zxid, time in ms since 1970, type          int64 int32 int64 int64 int32
      goes on     a created, deleted or changed node has its path first     string

Zeros fill the file up to its allocated size. So the snapshot speaks as of the time of its own last transaction, and
goes on to speak until the first one after it that may change a node which is read here. Nothing is applied.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

MAGIC = b"ZKLG"
_NAME = re.compile(r"log\.([0-9a-f]{1,16})", re.ASCII)
_HEADER = struct.Struct(">4siq")
_LENGTHS = struct.Struct(">qi")
_BEGINNING = struct.Struct(">qiqqi")
_INT = struct.Struct(">i")
_END = b"B"

MOST_TRANSACTIONS = 500_000
"""A server begins a new log with each snapshot, every 100,000 transactions by default; more are not followed."""

_CREATE_SESSION, _CLOSE_SESSION, _ERROR = -10, -11, -1
_HARMLESS = frozenset({_CREATE_SESSION, _ERROR, 7})
"""A new session, a request that failed, and new rights of a node (setACL)."""

_WITH_PATH = frozenset({1, 2, 5, 15, 19, 20, 21})
"""create, delete, setData, create2, createContainer, deleteContainer, createTTL."""


class Transaction(NamedTuple):
    """One transaction of a log."""

    zxid: int
    time_ms: int
    kind: int
    session: int
    body: bytes


class SpokenFor(NamedTuple):
    """How long a snapshot speaks, by the log beside it."""

    as_of_ms: int
    last_zxid: int
    """The last transaction that it speaks for: its own last one, or a later one that changes nothing here."""


def last_spoken_for(folder: str, zxid: int, keep: Callable[[str], object], owners: Collection[int]) -> SpokenFor | None:
    """Find out as of when a snapshot speaks; None: its last transaction is in no log of the folder.

    ``folder`` has the log files; ``zxid``: the last transaction that the snapshot holds for certain; ``keep``: whether
    the node of a path is read; ``owners``: the sessions with which nodes that are read go away.
    """
    spoken: SpokenFor | None = None
    for each in _from_log_with(folder, zxid):
        if spoken is None:
            if each.zxid == zxid:
                spoken = SpokenFor(each.time_ms, zxid)
        elif each.zxid != spoken.last_zxid + 1:
            break  # a transaction is not in the log, or another leader has begun
        elif _changes_nothing(each, keep, owners):
            spoken = SpokenFor(max(spoken.as_of_ms, each.time_ms), each.zxid)
        else:
            # A clock that was set back may have dated it before the one that it follows.
            return SpokenFor(each.time_ms - 1, spoken.last_zxid)
    return spoken


def _changes_nothing(each: Transaction, keep: Callable[[str], object], owners: Collection[int]) -> bool:
    if each.kind in _HARMLESS:
        return True
    if each.kind == _CLOSE_SESSION:
        return each.session not in owners
    if each.kind not in _WITH_PATH or len(each.body) < _INT.size:
        return False
    (length,) = _INT.unpack_from(each.body)
    path = each.body[_INT.size : _INT.size + length]
    return 0 < length == len(path) and not keep(path.decode("utf-8", "surrogateescape"))


def _from_log_with(folder: str, zxid: int) -> Iterator[Transaction]:
    """Yield the transactions of the log that has a zxid, and of those after it, as far as they are sound."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    logs = sorted((int(match[1], 16), name) for name in names if (match := _NAME.fullmatch(name)))
    first = max((number for number, _ in logs if number <= zxid), default=None)
    left = MOST_TRANSACTIONS
    for number, name in logs:
        if first is None or number < first:
            continue
        for each in _read(os.path.join(folder, name)):
            yield each
            left -= 1
            if not left:
                return


def _read(path: str) -> Iterator[Transaction]:
    """Yield the transactions of one log up to its end, or up to the first one that is damaged."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEADER.size:
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if _HEADER.unpack_from(data)[:2] == (MAGIC, 2):
                    yield from _transactions(data, size)
    except (OSError, ValueError):
        return


def _transactions(data: mmap.mmap, size: int) -> Iterator[Transaction]:
    start = _HEADER.size
    while start + _LENGTHS.size <= size:
        checksum, length = _LENGTHS.unpack_from(data, start)
        end = start + _LENGTHS.size + length
        if length < _BEGINNING.size or end >= size:
            return
        whole = data[start + _LENGTHS.size : end]
        if zlib.adler32(whole) != checksum or data[end : end + 1] != _END:
            return
        session, _, zxid, time_ms, kind = _BEGINNING.unpack_from(whole)
        yield Transaction(zxid, time_ms, kind, session, whole[_BEGINNING.size :])
        start = end + 1
