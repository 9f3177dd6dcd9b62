"""``moving.json``: the record of a move between disks, in the copy from when it is whole until it is live.

The record lies in the copy while that has its ``-future`` name, and says where the replica comes from and where it
goes, so that recovery after a crash can finish the move or drop the copy. Source: KIP516-3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from layout import json_text
from layout.ids import TopicId
from layout.ours.staged_record import checkpoint_offsets, stays_below

MOVE_RECORD: Final = "moving.json"
SCHEMA_VERSION: Final = 1
"""Raised whenever a field changes its meaning or goes."""


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """The source and the target of a move.

    Attributes:
        topic: full topic name, namespace included.
        partition: int32, not negative.
        topic_id: the zero ID for a replica that has none.
        source_log_dir: directory ID of the log dir that the replica leaves, because a disk may be mounted elsewhere
            after a crash; the absolute path of a log dir without an ID.
        source_path: path of the original below its log dir.
        path: live path of the copy below its log dir.
        checkpoints: the replica's offset (int64) in each offset checkpoint, by file name.
    """

    topic: str
    partition: int
    topic_id: TopicId
    source_log_dir: str
    source_path: str
    path: str
    checkpoints: Mapping[str, int] = field(default_factory=dict, hash=False)


def encode_move_record(record: MoveRecord) -> bytes:
    """Write the record: indented JSON in ASCII, one final line end."""
    fields = {
        "schema_version": SCHEMA_VERSION,
        "name": record.topic,
        "partition": record.partition,
        "topic_id": str(record.topic_id),
        "source_log_dir": record.source_log_dir,
        "source_path": record.source_path,
        "path": record.path,
        "checkpoints": dict(record.checkpoints),
    }
    return (json.dumps(fields, indent=2) + "\n").encode("ascii")


def parse_move_record(data: bytes) -> MoveRecord:
    """Read the record; unknown fields are ignored.

    Raises:
        DamagedFileError: no JSON object, an unknown schema version, or a field that breaks a rule; all reasons at once.
    """
    reader = json_text.FieldReader.of_file(data, MOVE_RECORD, SCHEMA_VERSION)
    record = MoveRecord(
        topic=reader.text("name"),
        partition=reader.integer("partition", least=0),
        topic_id=reader.id("topic_id", TopicId),
        source_log_dir=reader.text("source_log_dir"),
        source_path=reader.text("source_path"),
        path=reader.text("path"),
        checkpoints=checkpoint_offsets(reader),
    )
    for name, path in (("source_path", record.source_path), ("path", record.path)):
        if not stays_below(path):
            reader.note(f"{name} is {path!r:.60}, expected a path below the log dir without '.' or '..'")
    reader.check(MOVE_RECORD)
    return record
