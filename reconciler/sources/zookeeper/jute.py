"""Read the bytes of a ZooKeeper snapshot: jute records, in order and never beyond the end of the file.

    header      magic "ZKSN", version 2, database id                  int32 int32 int64
    sessions    count, then (session id, timeout) each                int32, (int64 int32)*
    ACL cache   count, then (index, [perms, scheme, id]) each         int32, (int64 vector)*
    nodes       path, data, ACL index, stat; the path "/" ends them   string buffer int64 60 bytes
    seal        Adler-32 of all bytes before, then the string "/"     int64 string
    additions   3.6+: (zxid, version, digest) and a seal; 3.9+: (last zxid) and a seal

All numbers are big-endian; a string or buffer is an int32 length, -1 for null, and that many bytes.

A server writes the root first, with an empty path, then every other node once; each ACL has its own index, and each of
its entries a scheme. Bytes that break this, as any number of zeros would, are refused where they begin.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.errors import MetadataError

MAGIC = b"ZKSN"
Buffer = bytes | mmap.mmap

_HEADER = struct.Struct(">4siq")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_SESSION = struct.Struct(">qi")
_NODE_TAIL = struct.Struct(">qqqqqiiiqq")
"""ACL index, then the stat: czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeral owner, pzxid."""

MAX_VALUE_BYTES = 64 << 20
"""The longest string or buffer; a server's own limit, ``jute.maxbuffer``, is 1 MiB unless somebody raises it."""

_ANY_ZXID = 2**63 - 1
_SEAL_BYTES = 13
_ADDITIONS = frozenset({0, 20 + _SEAL_BYTES, 8 + _SEAL_BYTES, 20 + 8 + 2 * _SEAL_BYTES})
"""The possible lengths of the additions behind the first seal."""


class Znode(NamedTuple):
    """One node: its data (empty for null), creating zxid, time of the last change in ms since 1970, data version."""

    data: bytes
    czxid: int
    modified_ms: int
    version: int


@dataclass(frozen=True, slots=True)
class ZooKeeperSnapshot:
    """The nodes that were kept, by path, and facts about all nodes of the snapshot, kept or not."""

    nodes: dict[str, Znode]
    last_zxid: int
    """The greatest zxid that any node carries."""
    modified_ms: int
    """The newest change of any node up to a given transaction, ms since 1970."""
    owners: frozenset[int]
    """The sessions with which kept nodes go away."""
    problem: str | None
    """A defect behind the first seal; the nodes themselves are sealed and sound."""


class _JuteReader:
    """An offset in the bytes; every step forward is checked against their end."""

    def __init__(self, data: Buffer, location: str) -> None:
        self.data = data
        self.location = location
        self.offset = 0
        self.end = len(data)

    def fail(self, problem: str, offset: int) -> MetadataError:
        return MetadataError(f"{self.location} is no sound ZooKeeper snapshot: at byte {offset}, {problem}")

    def take(self, form: struct.Struct, what: str) -> tuple[int, ...]:
        """Unpack fixed fields."""
        start = self.offset
        if form.size > self.end - start:
            raise self.fail(
                f"{what} needs {form.size} bytes and {self.end - start} are left: the file is cut short", start
            )
        self.offset = start + form.size
        return form.unpack_from(self.data, start)

    def count(self, what: str, least_bytes: int) -> int:
        """Read the number of items that take at least ``least_bytes`` each; null counts as none."""
        start = self.offset
        (count,) = self.take(_INT, f"the number of {what}")
        if count < -1 or count * least_bytes > self.end - self.offset:
            raise self.fail(f"{count} {what} are claimed and {self.end - self.offset} bytes are left", start)
        return max(count, 0)

    def buffer(self, what: str) -> bytes:
        """Read a length and that many bytes."""
        length = self.count(f"bytes of {what}", 1)
        start = self.offset
        if length > MAX_VALUE_BYTES:
            raise self.fail(f"{what} claims {length} bytes, and {MAX_VALUE_BYTES} are the most", start - _INT.size)
        self.offset = start + length
        return self.data[start : self.offset]

    def text(self, what: str) -> str:
        start = self.offset
        raw = self.buffer(what)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(f"{what} is not UTF-8", start) from error

    def seal(self) -> None:
        """Check an Adler-32 over all bytes before it."""
        start = self.offset
        with memoryview(self.data) as view, view[:start] as sealed:
            actual = zlib.adler32(sealed)
        (claimed,) = self.take(_LONG, "the checksum")
        if claimed != actual:
            raise self.fail(f"the Adler-32 checksum is {claimed:#x} and the bytes before give {actual:#x}", start)
        if self.text("the end mark") != "/":
            raise self.fail("the end mark is not '/'", start + _LONG.size)


def read(data: Buffer, location: str, keep: Callable[[str], object], *, up_to: int | None = None) -> ZooKeeperSnapshot:
    """Read a whole snapshot and check its seals.

    Args:
        data: the uncompressed bytes.
        location: the file, for messages.
        keep: whether to keep the node of a path.
        up_to: the last transaction that the snapshot holds whole; later changes do not date it. None: not known.

    Raises:
        MetadataError: the bytes are empty, cut short, damaged, or not a snapshot; the message gives the byte.
    """
    reader = _JuteReader(data, location)
    if not len(data):
        raise reader.fail("the file is empty", 0)
    if data[:4] != MAGIC:
        raise reader.fail(f"{MAGIC!r} is expected and {data[:4]!r} is found", 0)
    _, version, _ = reader.take(_HEADER, "the header")
    if version != 2:
        raise reader.fail(f"version {version} is not known", 4)
    sessions = reader.count("sessions", _SESSION.size)
    reader.offset += sessions * _SESSION.size
    _skip_acls(reader)
    snapshot = _read_nodes(reader, keep, up_to)
    reader.seal()
    return ZooKeeperSnapshot(*snapshot, _additions_problem(reader))


def _skip_acls(reader: _JuteReader) -> None:
    seen: set[int] = set()
    for _ in range(reader.count("access control lists", _LONG.size + _INT.size)):
        start = reader.offset
        (index,) = reader.take(_LONG, "the index of an access control list")
        if index in seen:
            raise reader.fail(f"the index {index} of an access control list stands for the second time", start)
        seen.add(index)
        for _ in range(reader.count("access control entries", 3 * _INT.size)):
            reader.take(_INT, "permissions")
            if not reader.buffer("a scheme"):
                raise reader.fail("an access control entry has no scheme", reader.offset - _INT.size)
            reader.buffer("an identity")


def _read_nodes(
    reader: _JuteReader, keep: Callable[[str], object], up_to: int | None
) -> tuple[dict[str, Znode], int, int, frozenset[int]]:
    nodes: dict[str, Znode] = {}
    owners: set[int] = set()
    most = _ANY_ZXID if up_to is None else up_to
    last_zxid = modified_ms = 0
    before: str | None = None
    start = reader.offset
    while (path := reader.text("a path")) != "/":
        if path == before or (path[:1] != "/" and (path, before) != ("", None)):
            raise reader.fail(f"the node {path!r:.80} cannot follow {before!r:.80}", start)
        before = path
        data = reader.buffer("a node's data")
        _, czxid, mzxid, _, mtime, version, _, _, owner, pzxid = reader.take(_NODE_TAIL, "a node's stat")
        last_zxid = max(last_zxid, mzxid, pzxid)
        if mtime > modified_ms and mzxid <= most:
            modified_ms = mtime
        if keep(path):
            nodes[path] = Znode(data, czxid, mtime, version)
            if owner:
                owners.add(owner)
        start = reader.offset
    return nodes, last_zxid, modified_ms, frozenset(owners)


def _additions_problem(reader: _JuteReader) -> str | None:
    """Check the additions of newer servers behind the first seal, by their length and the seal at their end."""
    left = reader.end - reader.offset
    if left == 0:
        return None
    if left in _ADDITIONS:
        reader.offset = reader.end - _SEAL_BYTES
        try:
            reader.seal()
        except MetadataError as error:
            return str(error)
        return None
    return f"{reader.location}: {left} bytes behind the checksum of the nodes, at byte {reader.offset}, are not known"
