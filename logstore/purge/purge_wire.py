"""What the processes of a purge tell each other, in a form that ``marshal`` knows: looks, and outcomes of batches."""

from __future__ import annotations

from typing import TypeAlias

from layout.ids import TopicId
from layout.ours import StagedRecord
from logstore.purge.judge_staged import Due, Seen
from logstore.purge.purge_batches import PurgeBatch
from logstore.purge.purge_report import Kept, Why

RecordFields: TypeAlias = tuple[str, int, bytes, str, str, str, int, int, dict[str, int]]
"""Those of a record, in their order."""

Look: TypeAlias = tuple[int, list[str], list[int], RecordFields] | int | None
"""Of one directory: what :class:`Seen` has; when it is due; or None: it wants a closer look."""

_Kept: TypeAlias = tuple[str, str, str, int | None]
_Due: TypeAlias = tuple[str, int, RecordFields | None, int, int, str | None, bool, bool, list[tuple[int, str, int]]]

ToldBatch: TypeAlias = tuple[list[_Kept], list[_Due], list[_Due], str | None, list[bool]]
"""What became of a batch: the fields of :class:`PurgeBatch` from ``kept`` on, in their order."""


def fields_of(record: StagedRecord) -> RecordFields:
    """A record, as one process tells it."""
    return (
        record.topic,
        record.partition,
        record.topic_id.to_bytes(),
        record.path,
        record.verdict,
        record.evidence,
        record.staged_ms,
        record.due_ms,
        dict(record.checkpoints),
    )


def record_of(fields: RecordFields) -> StagedRecord:
    """A record, as the other one understands it."""
    topic, partition, topic_id, path, verdict, evidence, staged_ms, due_ms, checkpoints = fields
    known = TopicId(topic_id)
    return StagedRecord(topic, partition, known, path, verdict, evidence, staged_ms, due_ms, checkpoints)


def seen(look: Look) -> Seen | int | None:
    """A look that came from another process, as a purge takes it."""
    if look is None or isinstance(look, int):
        return look
    inode, names, weights, fields = look
    return Seen(inode, names, weights, record_of(fields))


def told(batch: PurgeBatch) -> ToldBatch:
    """What became of a batch, as one process tells it."""
    kept = [(each.location, each.why.value, each.reason, each.due_ms) for each in batch.kept]
    partly, emptied = ([_told(due) for due in some] for some in (batch.partly, batch.emptied))
    return kept, partly, emptied, batch.failure, batch.had_record_inside


def heard(batch: ToldBatch) -> PurgeBatch:
    """What became of a batch, as the other one understands it; the names of its directories are not told."""
    kept, partly, emptied, failure, had_record_inside = batch
    return PurgeBatch(
        names=(),
        kept=[Kept(location, Why(why), reason, due_ms) for location, why, reason, due_ms in kept],
        partly=[_heard(due) for due in partly],
        emptied=[_heard(due) for due in emptied],
        failure=failure,
        had_record_inside=had_record_inside,
    )


def _told(due: Due) -> _Due:
    fields = None if due.record is None else fields_of(due.record)
    return due.name, due.inode, fields, due.files, due.bytes, due.problem, due.cancelled, due.touched, due.held


def _heard(due: _Due) -> Due:
    name, inode, fields, files, number_of_bytes, problem, cancelled, touched, held = due
    record = None if fields is None else record_of(fields)
    return Due(name, inode, record, files, number_of_bytes, problem, cancelled, touched, held)
