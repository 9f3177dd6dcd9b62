"""What the processes of a purge tell each other, in a form that ``marshal`` knows: looks, and outcomes of batches."""

from __future__ import annotations

from typing import TypeAlias

from layout.ids import TopicId
from layout.ours import StagedRecord
from logstore.purge.batches import PurgeBatch
from logstore.purge.eligibility import DueDirectory, PrefetchedDirectory
from logstore.purge.report import KeepReason, KeptDirectory

RecordFields: TypeAlias = tuple[str, int, bytes, str, str, str, int, int, dict[str, int]]
"""Those of a record, in their order."""

EncodedPrefetch: TypeAlias = tuple[int, list[str], list[int], RecordFields] | int | None
"""Of one directory: what :class:`PrefetchedDirectory` has; when it is due; or None: it wants a closer look."""

_EncodedKept: TypeAlias = tuple[str, str, str, int | None]
_EncodedDue: TypeAlias = tuple[
    str, int, RecordFields | None, int, int, str | None, bool, bool, list[tuple[int, str, int]]
]

EncodedBatch: TypeAlias = tuple[list[_EncodedKept], list[_EncodedDue], list[_EncodedDue], str | None, list[bool]]
"""What became of a batch: the fields of :class:`PurgeBatch` from ``kept`` on, in their order."""


def encode_record(record: StagedRecord) -> RecordFields:
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


def decode_record(fields: RecordFields) -> StagedRecord:
    """A record, as the other one understands it."""
    topic, partition, topic_id, path, verdict, evidence, staged_ms, due_ms, checkpoints = fields
    known = TopicId(topic_id)
    return StagedRecord(topic, partition, known, path, verdict, evidence, staged_ms, due_ms, checkpoints)


def decode_prefetch(look: EncodedPrefetch) -> PrefetchedDirectory | int | None:
    """A look that came from another process, as a purge takes it."""
    if look is None or isinstance(look, int):
        return look
    inode, names, weights, fields = look
    return PrefetchedDirectory(inode, names, weights, decode_record(fields))


def encode_batch(batch: PurgeBatch) -> EncodedBatch:
    """What became of a batch, as one process tells it."""
    kept = [(each.location, each.why.value, each.reason, each.due_ms) for each in batch.kept]
    partly, emptied = ([_encode_due(due) for due in some] for some in (batch.partly, batch.emptied))
    return kept, partly, emptied, batch.failure, batch.had_record_inside


def decode_batch(batch: EncodedBatch) -> PurgeBatch:
    """What became of a batch, as the other one understands it; the names of its directories are not told."""
    kept, partly, emptied, failure, had_record_inside = batch
    return PurgeBatch(
        names=(),
        kept=[KeptDirectory(location, KeepReason(why), reason, due_ms) for location, why, reason, due_ms in kept],
        partly=[_decode_due(due) for due in partly],
        emptied=[_decode_due(due) for due in emptied],
        failure=failure,
        had_record_inside=had_record_inside,
    )


def _encode_due(due: DueDirectory) -> _EncodedDue:
    fields = None if due.record is None else encode_record(due.record)
    return due.name, due.inode, fields, due.files, due.bytes, due.problem, due.cancelled, due.touched, due.held


def _decode_due(due: _EncodedDue) -> DueDirectory:
    name, inode, fields, files, number_of_bytes, problem, cancelled, touched, held = due
    record = None if fields is None else decode_record(fields)
    return DueDirectory(name, inode, record, files, number_of_bytes, problem, cancelled, touched, held)
