"""Writes ZooKeeper snapshots as a server that Kafka uses would (FACTS §8), for tests and sample fleets.

Owns the encoding, the reverse of ``reconciler.sources.zookeeper.jute``, and the nodes that Kafka keeps for a topic. A
snapshot of one topic with a topic ID::

    nodes = {"/brokers/ids/1": b"{}", **topic_nodes("orders", {0: [1, 2]}, topic_id=TopicId.random(os.urandom))}
    with open(os.path.join(folder, "snapshot.2a"), "wb") as file:
        file.write(snapshot_bytes(nodes))
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

from layout.ids import TopicId
from reconciler.sources.zookeeper import TOPIC_VERSION, TOPICS, encode_state, encode_topic, path_of

_STAT = struct.Struct(">qqqqqiiiqq")


def topic_nodes(
    topic: str,
    partitions: Mapping[int, Sequence[int]],
    *,
    topic_id: TopicId | None = None,
    leader_epoch: int = 0,
) -> dict[str, bytes]:
    """The nodes of a topic: version 3 with an ID, else version 2; each partition led by its first replica, all in sync.

    The tiers of a namespace, joined by ``:``, become nodes on the way (KIP37-4).
    """
    path = f"{TOPICS}/{path_of(topic)}"
    version = TOPIC_VERSION if topic_id is not None else TOPIC_VERSION - 1
    nodes = {path: encode_topic(topic_id, partitions, version=version)}
    for partition, replicas in partitions.items():
        nodes[f"{path}/partitions/{partition}/state"] = encode_state(replicas[0], leader_epoch, replicas, 1)
    return nodes


def snapshot_bytes(
    nodes: Mapping[str, bytes],
    *,
    versions: Mapping[str, int] | None = None,
    czxids: Mapping[str, int] | None = None,
    modified_ms: int = 1_700_000_000_000,
    owners: Mapping[str, int] | None = None,
    digest: bool = True,
) -> bytes:
    """A whole snapshot file; nodes on the way to a path are added where they are absent.

    Data versions are 0 and creating zxids 1, unless given by path; an owner is the session that its node goes away
    with. With ``digest``, the additions of servers since 3.6 and 3.9 follow the first seal.
    """
    everything = {"": b""} | {parent: b"" for path in nodes for parent in _parents(path)} | dict(nodes)
    parts = [struct.pack(">4siq", b"ZKSN", 2, -1)]
    parts.append(struct.pack(">iqi", 1, 0x1000_0000_0000_0001, 18_000))
    parts.append(struct.pack(">iqii", 1, 1, 1, 31) + _text("world") + _text("anyone"))
    for path in sorted(everything):
        czxid = (czxids or {}).get(path, 1)
        version = (versions or {}).get(path, 0)
        data = everything[path]
        stat = _STAT.pack(1, czxid, czxid, modified_ms, modified_ms, version, 0, 0, (owners or {}).get(path, 0), czxid)
        parts.append(_text(path) + struct.pack(">i", len(data)) + data + stat)
    sealed = seal(b"".join(parts) + _text("/"))
    if digest:
        sealed = seal(sealed + struct.pack(">qiq", 1, 2, 0))
        sealed = seal(sealed + struct.pack(">q", 1))
    return sealed


def log_bytes(transactions: Iterable[tuple[int, int, int, str]], *, session: int = 7, filled_to: int = 4096) -> bytes:
    """A file ``log.<zxid>`` of transactions of one session, with zeros up to the size that a server allocates.

    Each is zxid, time in ms since 1970, type, and path; no path: "".
    """
    data = struct.pack(">4siq", b"ZKLG", 2, 0)
    for zxid, time_ms, kind, path in transactions:
        record = struct.pack(">qiqqi", session, 0, zxid, time_ms, kind) + (_text(path) if path else b"")
        data += struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"
    return data.ljust(filled_to, b"\0")


def seal(data: bytes) -> bytes:
    """The bytes, their Adler-32, and the end mark."""
    return data + struct.pack(">q", zlib.adler32(data)) + _text("/")


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">i", len(raw)) + raw


def _parents(path: str) -> list[str]:
    steps = path.split("/")
    return ["/".join(steps[:count]) for count in range(2, len(steps))]
