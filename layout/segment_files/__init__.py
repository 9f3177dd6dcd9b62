"""The binary files beside a segment: its indexes and producer snapshots, and which files go when they are loaded."""

from layout.segment_files.loading import removed_at_load
from layout.segment_files.offset_index import OffsetIndex, OffsetIndexEntry, parse_offset_index
from layout.segment_files.producer_snapshot import ProducerState, parse_producer_snapshot
from layout.segment_files.time_index import TimeIndex, TimeIndexEntry, parse_time_index
from layout.segment_files.transaction_index import AbortedTransaction, parse_transaction_index

__all__ = [
    "AbortedTransaction",
    "OffsetIndex",
    "OffsetIndexEntry",
    "ProducerState",
    "TimeIndex",
    "TimeIndexEntry",
    "parse_offset_index",
    "parse_producer_snapshot",
    "parse_time_index",
    "parse_transaction_index",
    "removed_at_load",
]
