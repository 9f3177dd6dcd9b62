"""Stages replicas, each with the record of what it was, lists them, and restores them."""

from logstore.staging.bring_back import Restored, finish_restore, planned_restore, restore
from logstore.staging.candidate import Candidate, Refused, StagingOutcome
from logstore.staging.fallback_records import FallbackRecords
from logstore.staging.listing import Staged, find_staged, list_staged
from logstore.staging.partly_purged import (
    EVERYTHING_DUE,
    PurgeNote,
    begin_purge,
    drop_spent_note,
    end_purge,
    was_purged_beside,
)
from logstore.staging.pipeline import STAGING_BATCH_SIZE, OnCommitted, stage
from logstore.staging.placement import (
    Placement,
    choose_placement,
    name_below_log_dir,
    open_staging_root,
    placement_of,
    placements,
    stages_in_place,
    staging_path,
    staging_roots,
)
from logstore.staging.records import RecordReader, finish_shared_records, record_of_live, restored_path
from logstore.staging.strays import adopt_stray

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
    "drop_spent_note",
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
    "stages_in_place",
    "staging_path",
    "staging_roots",
    "was_purged_beside",
]
