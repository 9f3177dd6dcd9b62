"""A game with the files of a ZooKeeper: snapshots and the log beside them, of which one byte may be damaged.

The newest snapshot that is sound counts, and the log says as of when it speaks, as far as the log is sound. Both are
written here as a server writes them, by ``struct`` alone. Source: FACTS §8; KIP516-11.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple

from layout.ids import TopicId
from logstore.fs import Directory, Disk, make_directory, write_new_file
from logstore.fs.crash_disk import memory_folder
from reconciler.desired import in_memory
from reconciler.errors import MetadataError
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.sources import load

_FOLDER: Final = "version-2"
_NEW_SESSION, _SET_DATA, _SET_RIGHTS = -10, 5, 7
_TOPICS: Final = "/brokers/topics"
_ABOVE: Final = ("", "/zookeeper", "/brokers", _TOPICS, "/brokers/ids")
_START_MS: Final = 1_772_366_400_000
_Replica = tuple[str, str | None, int, int]
"""Topic, its ID, partition, broker."""


class _Snapshot(NamedTuple):
    """One snapshot: the last transaction in it, its bytes, what it holds, and the time of its newest node."""

    zxid: int
    data: bytes
    replicas: list[_Replica]
    modified_ms: int


class _Logged(NamedTuple):
    """One transaction: its number, its time, its type, and the node that it is about."""

    zxid: int
    time_ms: int
    kind: int
    path: str


def play_zookeeper(random: Random) -> str:
    """Draw the files of a ZooKeeper, damage one or none, and compare what is read; gives what was damaged.

    Raises:
        BrokenInvariantError: something else is read.
    """
    log = _drawn_log(random)
    taken = sorted(random.sample(log, random.randint(1, min(3, len(log)))))
    snapshots = [_drawn_snapshot(random, each.zxid, each.time_ms) for each in taken]
    damage = random.choice(("none", "none", "snapshot", "log", "no log"))
    sound, contents, kept = list(snapshots), {f"snapshot.{each.zxid:x}": each.data for each in snapshots}, log
    if damage == "snapshot":
        hurt = sound.pop()
        contents[f"snapshot.{hurt.zxid:x}"] = _flipped(random, hurt.data, 16)
    if damage != "no log":
        pieces, kept = _written(random, log, hurt=damage == "log")
        contents[f"log.{log[0].zxid:x}"] = struct.pack(">4siq", b"ZKLG", 2, 0) + pieces
    _compare(contents, sound[-1] if sound else None, kept if damage != "no log" else [])
    return f"zookeeper {damage}"


def _flipped(random: Random, data: bytes, start: int) -> bytes:
    at = random.randrange(start, len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _drawn_log(random: Random) -> list[_Logged]:
    """Draw transactions that follow one another; the clock may go back."""
    zxid, time_ms, log = random.randrange(1, 300), _START_MS, list[_Logged]()
    for number in range(random.randint(1, 9)):
        time_ms += random.choice((0, 5, 9_000, 9_000, -40))
        kind = random.choice((_NEW_SESSION, _NEW_SESSION, _SET_RIGHTS, _SET_DATA))
        path = random.choice((f"{_TOPICS}/orders", "/config/changes"))
        log.append(_Logged(zxid + number, time_ms, kind, path))
    return log


def _written(random: Random, log: Sequence[_Logged], *, hurt: bool) -> tuple[bytes, list[_Logged]]:
    """Write transactions, one of them damaged or none; gives the bytes and those before the damage."""
    place, data = random.randrange(len(log)) if hurt else len(log), b""
    for number, each in enumerate(log):
        body = struct.pack(">qiqqi", 77, 0, each.zxid, each.time_ms, each.kind) + _text(each.path.encode())
        whole = struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B"
        # A length that is damaged says nothing of what the checksum is compared for.
        data += _flipped(random, whole, 12) if number == place else whole
    return data + bytes(random.choice((0, 64))), list(log[:place])


def _text(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


def _drawn_snapshot(random: Random, zxid: int, time_ms: int) -> _Snapshot:
    """Draw the topics of a moment, and write them as a server does."""
    nodes, replicas, newest = [(path, b"", 0) for path in _ABOVE], list[_Replica](), 0
    nodes.append(("/brokers/ids/1", b"{}", 0))
    for name in ("orders", "clicks", "hits"):
        if random.random() < 0.3:
            continue
        topic_id = random.choice((None, str(TopicId(random.randbytes(16)))))
        partitions = {number: random.sample(range(5), random.randint(1, 3)) for number in range(random.randint(1, 3))}
        node: dict[str, Any] = {"version": 3, "partitions": partitions}
        if topic_id is not None:
            node["topic_id"] = topic_id
        modified_ms = time_ms - random.randrange(5_000)
        newest = max(newest, modified_ms)
        nodes.append((f"{_TOPICS}/{name}", json.dumps(node).encode(), modified_ms))
        replicas += [(name, topic_id, number, node_id) for number, ids in partitions.items() for node_id in ids]
    data = struct.pack(">4siqi", b"ZKSN", 2, 0, 0) + struct.pack(">iqi", 1, 1, 1) + struct.pack(">i", 31)
    data += _text(b"world") + _text(b"anyone")
    for path, content, modified_ms in nodes:
        stat = (1, 1, min(zxid, 2), modified_ms, modified_ms, 0, 0, 0, 0, 1)
        data += _text(path.encode()) + _text(content) + struct.pack(">qqqqqiiiqq", *stat)
    data += _text(b"/")
    return _Snapshot(zxid, data + struct.pack(">q", zlib.adler32(data)) + _text(b"/"), replicas, newest)


def _as_of(snapshot: _Snapshot, log: Sequence[_Logged]) -> int | None:
    """As of when a snapshot speaks: of its last transaction, and on until something that is read changes."""
    place = next((place for place, each in enumerate(log) if each.zxid == snapshot.zxid), None)
    if place is None:
        return snapshot.modified_ms or None
    time_ms = log[place].time_ms
    for each in log[place + 1 :]:
        if each.kind == _SET_DATA and each.path.startswith(_TOPICS):
            return each.time_ms - 1
        time_ms = max(time_ms, each.time_ms)
    return time_ms


def _compare(contents: dict[str, bytes], wanted: _Snapshot | None, log: Sequence[_Logged]) -> None:
    with memory_folder() as folder:
        with Directory.open(folder) as root, make_directory(Disk(), root, _FOLDER) as inside:
            for name, content in contents.items():
                write_new_file(Disk(), inside, name, content, durable=False)
        try:
            (state,) = load(f"zk-snapshot:{folder}/{_FOLDER}")
        except MetadataError as error:
            if wanted is not None:
                raise BrokenInvariantError(f"{', '.join(contents)} cannot be read: {error}") from error
            return
    if wanted is None:
        raise BrokenInvariantError(f"a damaged snapshot is read as {state.identity}")
    columns = ("topic", "topic_id", "partition", "node_id")
    rows = sorted((tuple(each[name] for name in columns) for each in in_memory(state.replicas).to_pylist()), key=str)
    found = (state.identity.offset, state.identity.timestamp_ms, rows)
    right = (wanted.zxid, _as_of(wanted, log), sorted(wanted.replicas, key=str))
    if found != right:
        raise BrokenInvariantError(f"of {', '.join(sorted(contents))} {found} is read, and {right} is right; log {log}")
