"""Whether what was added to a KRaft log can change which replicas a broker should hold.

A controller that is alive writes a record every half second though nothing happens (a NoOpRecord), and many that say
nothing of replicas: leaders, in-sync replicas, broker epochs. To load all metadata for each of these would keep a
machine busy, so the new end of the log is looked through first. Loading is left to ``sources``.
Source: FACTS §7.4, §7.5.
"""

from __future__ import annotations

from reconciler.errors import MetadataError
from reconciler.sources.kraft import (
    Batch,
    BrokenBatchError,
    RecordDecoder,
    WireError,
    open_file,
    read_batches,
    read_frame,
)

_PARTITION_CHANGE = 5
_OF_REPLICAS = frozenset({2, 3, 9, 23, 24, 25})
"""TopicRecord, PartitionRecord, RemoveTopicRecord, and the bounds of a transaction, which may hold any of them back."""

_CHANGES_A_VERDICT = ("replicas", "removingReplicas", "addingReplicas", "directories")


class _NoDigest:
    """Takes the bytes of a log that is looked through and not loaded."""

    def update(self, data: bytes, /) -> None:
        """Take nothing."""


def quiet_until(path: str, start: int, size: int) -> int | None:
    """Look through the batches of a segment from one on.

    Args:
        path: of the segment.
        start: byte at which a batch begins.
        size: bytes of the segment.

    Returns:
        The byte up to which nothing was said of replicas, which is before the end where a write goes on; None where
        something was said, or where it cannot be told.
    """
    position = start
    try:
        with open_file(path) as (file, _):
            file.seek(start)
            try:
                for batch in read_batches(file, size - start, _NoDigest()):
                    if not _is_quiet(batch):
                        return None
                    position = file.tell()
            except BrokenBatchError:
                return position
    except (MetadataError, WireError):
        return None
    return position


def _is_quiet(batch: Batch) -> bool:
    if batch.is_control:
        return True
    decoder = RecordDecoder()
    for record in batch.records():
        frame = read_frame(record.value)
        if frame.type in _OF_REPLICAS:
            return False
        if frame.type == _PARTITION_CHANGE:
            fields = decoder.decode(frame, record.value)
            if any(fields[name] is not None for name in _CHANGES_A_VERDICT):
                return False
    return True
