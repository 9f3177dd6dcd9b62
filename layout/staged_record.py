"""``staged.json``: the record that travels inside a staged directory and holds its own way back.

It says what the replica was, where it lay, why it was staged, when a purge may take it, and which checkpoint entries
were taken out with it. A staged directory without a valid record is never purged, so reading it is strict: every field
is checked, and all reasons come at once. Writing it safely, restoring and purging belong to ``logstore``. Source:
DESIGN §5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from layout import json_text
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.ids import TopicId
from layout.topic import namespace_of

FILE_NAME: Final = "staged.json"
SCHEMA_VERSION: Final = 1
"""Raised whenever a field changes its meaning or goes."""


@dataclass(frozen=True, slots=True)
class StagedRecord:
    """Everything a restore or a purge needs to know of one staged replica.

    Attributes:
        topic: full topic name, namespace included.
        partition: int32, not negative.
        topic_id: the zero ID for a replica that had none.
        path: where it lay, below its log dir, with ``/`` between the parts; its last part is its former name.
        verdict: why it was staged, as the comparison calls it.
        evidence: the sentence that goes with the verdict.
        staged_ms: when it was staged, in ms since 1970.
        due_ms: when a purge may take it, in ms since 1970; not before ``staged_ms``.
        checkpoints: the offset (int64) that each offset checkpoint held for this partition, by file name.
    """

    topic: str
    partition: int
    topic_id: TopicId
    path: str
    verdict: str
    evidence: str
    staged_ms: int
    due_ms: int
    checkpoints: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def namespace(self) -> str:
        """The tiers of the topic's namespace, joined by ``:``; empty for the default namespace."""
        return namespace_of(self.topic)

    def is_due(self, now_ms: int) -> bool:
        """Whether a purge may take it now; never before the moment of staging, should a clock go backwards."""
        return self.due_ms <= now_ms


def encode(record: StagedRecord) -> bytes:
    """Write the record: indented JSON in ASCII, one final line end. Names that are not UTF-8 survive as escapes.

    Raises:
        DamagedFileError: the record breaks a rule, so that :func:`parse` would refuse what was written.
    """
    fields = {
        "schema_version": SCHEMA_VERSION,
        "name": record.topic,
        "namespace": record.namespace,
        "topic_id": str(record.topic_id),
        "partition": record.partition,
        "path": record.path,
        "verdict": record.verdict,
        "evidence": record.evidence,
        "staged_ms": record.staged_ms,
        "due_ms": record.due_ms,
        "checkpoints": dict(record.checkpoints),
    }
    written = (json.dumps(fields, indent=2) + "\n").encode("ascii")
    parse(written)
    return written


def parse(data: bytes) -> StagedRecord:
    """Read the record and hold it to every rule of :class:`StagedRecord`; unknown fields are ignored.

    Raises:
        DamagedFileError: no JSON object, a schema version that is not known, or any field that breaks a rule; all
            reasons at once.
    """
    fields = json_text.parse_object(data, FILE_NAME)
    reader = json_text.FieldReader(fields, FILE_NAME)
    if reader.integer("schema_version", 32) != SCHEMA_VERSION:
        reader.note(f"this release reads schema version {SCHEMA_VERSION} only")
    record = StagedRecord(
        topic=reader.text("name"),
        partition=reader.integer("partition", 32, least=0),
        topic_id=reader.id("topic_id", TopicId),
        path=reader.text("path"),
        verdict=reader.text("verdict"),
        evidence=reader.text("evidence", may_be_empty=True),
        staged_ms=reader.integer("staged_ms", 64, least=0),
        due_ms=reader.integer("due_ms", 64, least=0),
        checkpoints=_checkpoints(fields, reader),
    )
    if reader.text("namespace", may_be_empty=True) != record.namespace:
        reader.note(f"namespace is {fields.get('namespace')!r:.60}, the name's is {record.namespace!r:.60}")
    if record.due_ms < record.staged_ms:
        reader.note(f"due_ms {record.due_ms} lies before staged_ms {record.staged_ms}")
    if not _stays_below(record.path):
        reader.note(f"path is {record.path!r:.60}, expected a path below the log dir without '.' or '..'")
    reader.check()
    return record


def _checkpoints(fields: Mapping[str, object], reader: json_text.FieldReader) -> dict[str, int]:
    entries = fields.get("checkpoints")
    if not isinstance(entries, dict):
        reader.note("checkpoints: expected an object with an offset for each checkpoint file")
        return {}
    for file, offset in entries.items():
        if file not in OFFSET_CHECKPOINTS:
            reader.note(f"checkpoints: {file!r:.60} is no offset checkpoint")
        elif not json_text.is_int(offset, 64):
            reader.note(f"checkpoints: the offset in {file} is {offset!r:.60}, expected an int64")
    return entries


def _stays_below(path: str) -> bool:
    """Whether a relative path can only lead to something inside the log dir."""
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))
