"""Moves a replica aside with its own way back, lists what is staged, and brings it back."""

from logstore.staging.bring_back import Restored, finish_restore, planned_restore, restore
from logstore.staging.candidate import Candidate, Refused, StagingOutcome
from logstore.staging.purge_note import EVERYTHING_DUE, PurgeNote, begin_purge, end_purge
from logstore.staging.shared_records import finish_shared_records
from logstore.staging.spare_records import FallbackRecords
from logstore.staging.staged import RecordReader, Staged, find_staged, list_staged, record_of_live, restored_path
from logstore.staging.staging import STAGING_BATCH_SIZE, OnCommitted, stage
from logstore.staging.staging_root import (
    Placement,
    choose_placement,
    name_below_log_dir,
    open_staging_root,
    placement_of,
    placements,
    staging_path,
    staging_roots,
)
from logstore.staging.stray_record import adopt_stray

__all__ = [
    "EVERYTHING_DUE",
    "STAGING_BATCH_SIZE",
    "Candidate",
    "FallbackRecords",
    "OnCommitted",
    "Placement",
    "PurgeNote",
    "RecordReader",
    "Refused",
    "Restored",
    "Staged",
    "StagingOutcome",
    "adopt_stray",
    "begin_purge",
    "choose_placement",
    "end_purge",
    "find_staged",
    "finish_restore",
    "finish_shared_records",
    "list_staged",
    "name_below_log_dir",
    "open_staging_root",
    "placement_of",
    "placements",
    "planned_restore",
    "record_of_live",
    "restore",
    "restored_path",
    "stage",
    "staging_path",
    "staging_roots",
]
