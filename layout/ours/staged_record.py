"""The record of a staged replica: what it was, so that it can be restored, and when a purge may delete it.

It says where the replica lay, why it was staged, until when it stays, and which checkpoint entries were removed with
it. A line of the ledger (``ledger``) holds it. A staged directory without a valid record is never purged, so reading is
strict: every field is checked, and all reasons come at once. Source: DESIGN §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from layout import json_text
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.ids import TopicId
from layout.topic import namespace_of

_WHAT: Final = "the record of a staged replica"
_OFFSET_CHECKPOINTS: Final = frozenset(OFFSET_CHECKPOINTS)
_NOT_BELOW: Final = frozenset({"", ".", ".."})


class StagedRecord(NamedTuple):
    """Everything that a restore or a purge needs to know of one staged replica.

    Attributes:
        topic: full topic name, namespace included.
        partition: int32, not negative.
        topic_id: the zero ID for a replica that had none.
        path: its former path below its log dir, with ``/`` between the parts.
        verdict: why it was staged, as the comparison calls it.
        evidence: the sentence that goes with the verdict.
        staged_ms: when it was staged, in ms since 1970.
        due_ms: when a purge may delete it, in ms since 1970; not before ``staged_ms``.
        checkpoints: the partition's offset (int64) in each offset checkpoint, by file name.
    """

    topic: str
    partition: int
    topic_id: TopicId
    path: str
    verdict: str
    evidence: str
    staged_ms: int
    due_ms: int
    checkpoints: Mapping[str, int] = MappingProxyType({})

    def __hash__(self) -> int:
        return hash(self[:-1])  # all but the checkpoints, which are a mapping

    @property
    def namespace(self) -> str:
        """The namespace of the topic; empty for the default namespace."""
        return namespace_of(self.topic)

    def is_due(self, now_ms: int) -> bool:
        """Whether a purge may delete the replica now; never before the time of staging, if a clock goes backwards."""
        return self.due_ms <= now_ms


def check_record(record: StagedRecord) -> None:
    """Check every rule of a record.

    Raises:
        DamagedFileError: the record breaks a rule; all reasons at once.
    """
    if not is_surely_valid(record):
        reader = json_text.FieldReader(_fields(record))
        _read(reader)
        if record.due_ms < record.staged_ms:
            reader.note(f"due_ms {record.due_ms} lies before staged_ms {record.staged_ms}")
        if not stays_below(record.path):
            reader.note(f"path is {record.path!r:.60}, expected a path below the log dir without '.' or '..'")
        reader.check(_WHAT)


def is_surely_valid(record: StagedRecord) -> bool:
    """Check a record by the fast path: True: no rule is broken; False: use the slow path.

    The types of all fields but the topic ID are checked too, because JSON may have any.
    """
    topic, partition, _, path, verdict, evidence, staged_ms, due_ms, checkpoints = record
    texts = (topic, path, verdict, evidence)
    try:
        return (
            "" not in texts
            and "".join(texts).isascii()  # raises TypeError where one of them is no text
            and type(partition) is type(staged_ms) is type(due_ms) is int
            and 0 <= partition < 1 << 31
            and 0 <= staged_ms <= due_ms < 1 << 63
            and (checkpoints == {} or (isinstance(checkpoints, dict) and _are_offsets(checkpoints)))
            and stays_below(path)
        )
    except TypeError:
        return False


def _are_offsets(checkpoints: dict[str, int]) -> bool:
    return _OFFSET_CHECKPOINTS.issuperset(checkpoints) and all(
        json_text.is_int(offset, 64) for offset in checkpoints.values()
    )


def _fields(record: StagedRecord) -> dict[str, object]:
    return {
        "name": record.topic,
        "partition": record.partition,
        "path": record.path,
        "verdict": record.verdict,
        "evidence": record.evidence,
        "staged_ms": record.staged_ms,
        "due_ms": record.due_ms,
        "checkpoints": dict(record.checkpoints),
    }


def _read(reader: json_text.FieldReader) -> None:
    """Check the form of each field; problems are noted in the reader."""
    for name in ("name", "path", "verdict"):
        reader.text(name)
    reader.text("evidence", may_be_empty=True)
    reader.integer("partition", least=0)
    reader.integer("staged_ms", bits=64, least=0)
    reader.integer("due_ms", bits=64, least=0)
    checkpoint_offsets(reader)


def checkpoint_offsets(reader: json_text.FieldReader) -> dict[str, int]:
    """Read the field ``checkpoints`` of a record: offset checkpoint → int64; problems are noted in the reader."""
    entries = reader.raw("checkpoints")
    if not isinstance(entries, dict):
        reader.note("checkpoints: expected an object with an offset for each checkpoint file")
        return {}
    for file, offset in entries.items():
        if file not in OFFSET_CHECKPOINTS:
            reader.note(f"checkpoints: {file!r:.60} is no offset checkpoint")
        elif not json_text.is_int(offset, 64):
            reader.note(f"checkpoints: the offset in {file} is {offset!r:.60}, expected an int64")
    return entries


def stays_below(path: str) -> bool:
    """Whether a relative path can only lead to something inside the log dir."""
    return "\0" not in path and _NOT_BELOW.isdisjoint(path.split("/"))


def is_absolute(path: str) -> bool:
    """Whether a path is absolute and has no component ``.`` or ``..``."""
    return path.startswith("/") and stays_below(path[1:])
