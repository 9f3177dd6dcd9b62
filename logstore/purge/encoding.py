"""Encodes what the processes of a purge send each other as values for ``marshal``: prefetches, and finished batches."""

from __future__ import annotations

from typing import TypeAlias

from layout.ids import TopicId
from layout.ours import StagedRecord
from logstore.purge.batches import PurgeBatch
from logstore.purge.eligibility import DueDirectory, PrefetchedDirectory
from logstore.purge.report import KeepReason, KeptDirectory

RecordFields: TypeAlias = tuple[str, int, bytes, str, str, str, int, int, dict[str, int]]
"""The fields of a :class:`StagedRecord`, in their order."""

EncodedPrefetch: TypeAlias = tuple[int, list[str], list[int], RecordFields] | int | None
"""Of one directory: the fields of :class:`PrefetchedDirectory`; its due time, if that is not over; or None: it must be
judged again by the process that purges."""

_EncodedKept: TypeAlias = tuple[str, str, str, int | None]
_EncodedDue: TypeAlias = tuple[
    str, int, RecordFields | None, int, int, str | None, bool, bool, list[tuple[int, str, int]]
]

EncodedBatch: TypeAlias = tuple[list[_EncodedKept], list[_EncodedDue], list[_EncodedDue], str | None, list[bool]]
"""The fields of a :class:`PurgeBatch` from ``kept`` on, in their order."""


def encode_record(record: StagedRecord) -> RecordFields:
    """Encode a record."""
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


def _decode_record(fields: RecordFields) -> StagedRecord:
    """Decode a record."""
    topic, partition, topic_id, path, verdict, evidence, staged_ms, due_ms, checkpoints = fields
    known = TopicId(topic_id)
    return StagedRecord(topic, partition, known, path, verdict, evidence, staged_ms, due_ms, checkpoints)


def decode_prefetch(look: EncodedPrefetch) -> PrefetchedDirectory | int | None:
    """Decode the prefetch of one directory."""
    if look is None or isinstance(look, int):
        return look
    inode, names, weights, fields = look
    return PrefetchedDirectory(inode, names, weights, _decode_record(fields))


def encode_batch(batch: PurgeBatch) -> EncodedBatch:
    """Encode what became of a batch."""
    kept = [(each.location, each.why.value, each.reason, each.due_ms) for each in batch.kept]
    partly, emptied = ([_encode_due(due) for due in some] for some in (batch.partly, batch.emptied))
    return kept, partly, emptied, batch.failure, batch.had_record_inside


def decode_batch(batch: EncodedBatch) -> PurgeBatch:
    """Decode what became of a batch; the names of its directories are not sent."""
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
    record = None if fields is None else _decode_record(fields)
    return DueDirectory(name, inode, record, files, number_of_bytes, problem, cancelled, touched, held)
