"""Files of a log dir that are damaged as they are drawn, each with the repair of it and the bytes that are right.

The right bytes are put together here, of what was drawn. Source: FACTS §2.1, §2.3; DESIGN §6.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.repair import CheckpointWithout, FileRepair, TopicIdFile

METADATA: Final = "partition.metadata"
CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
GONE: Final = ("gone", 0)
"""A partition that has no directory."""

_TORN: Final = (b"", b"version: 0\n", b"version: 0\ntopic_id: ?", bytes(43), b"{")
_STRANGE: Final = (b"orders\n", b"\0\0\0\0\n", b"orders 0 many\n", b"# orders 0 7\n")


@dataclass(slots=True)
class RepairedFile:
    """One file that is repaired.

    Attributes:
        path: below the log dir.
        content: what the repair makes the new bytes of.
        before: the damaged bytes; None: there is no such file.
        after: the right bytes; None: there should be no such file.
        inode: of the partition dir that holds it; None: it lies in the root.
        may_be: what it may hold by now.
    """

    path: str
    content: TopicIdFile | CheckpointWithout | None
    before: bytes | None
    after: bytes | None
    inode: int | None
    may_be: set[bytes | None]

    @property
    def folder(self) -> str:
        """The partition dir that holds it; empty: the root."""
        return self.path.rpartition("/")[0]

    @property
    def repair(self) -> FileRepair:
        """The repair, as a plan has it."""
        return FileRepair(self.path, self.content, _sum(self.before), _sum(self.after), self.inode)


def _sum(data: bytes | None) -> str:
    return "missing" if data is None else hashlib.sha256(data).hexdigest()


def damaged_metadata(random: Random, at: TopicPartition, inode: int, *, is_ours: bool) -> RepairedFile:
    """Draw a partition.metadata that is torn, missing, or another topic's."""
    topic_id = TopicId(random.randbytes(16))
    after = f"version: 0\ntopic_id: {topic_id}".encode()
    if is_ours:
        fields = {"schema_version": 0, "id": str(topic_id), "name": at.topic, "partition": at.partition}
        after = json.dumps(fields).encode()
    other = f"version: 0\ntopic_id: {TopicId(random.randbytes(16))}".encode()
    before = random.choice((None, None, other, random.choice(_TORN)))
    return RepairedFile(f"{at}/{METADATA}", TopicIdFile(at, topic_id), before, after, inode, {before})


def damaged_checkpoint(random: Random, file: str, held: list[TopicPartition]) -> RepairedFile:
    """Draw a checkpoint with a line that is none, or with an entry of a partition that is gone."""
    entries = [f"{at.topic} {at.partition} {random.randrange(1 << 40)}\n".encode() for at in held]
    after = b"".join((b"0\n%d\n" % len(entries), *entries))
    place = random.randint(0, len(entries))
    if random.random() < 0.5:
        gone = f"{GONE[0]} {GONE[1]} {random.randrange(1 << 40)}\n".encode()
        entries.insert(place, gone)
        content = CheckpointWithout(frozenset({GONE}))
    else:
        entries.insert(place, random.choice(_STRANGE))
        content = CheckpointWithout(frozenset(), is_rebuilt=True)
    before = b"".join((b"0\n%d\n" % len(entries), *entries))
    return RepairedFile(file, content, before, after, None, {before})


def leftover(random: Random) -> RepairedFile:
    """Draw what a broker left of a write that was cut short."""
    before = random.choice((b"", b"half", b"0\n"))
    return RepairedFile("meta.properties.tmp", None, before, None, None, {before})
