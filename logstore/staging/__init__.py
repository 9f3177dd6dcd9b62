"""Moves a replica aside with its own way back, lists what is staged, and brings it back."""

from logstore.staging.bring_back import Restored, finish, planned_restore, restore
from logstore.staging.candidate import Candidate, Refused, StagingOutcome
from logstore.staging.purge_note import ALL_MS, PurgeNote, begin_purge, end_purge
from logstore.staging.shared_records import finish_shared_records
from logstore.staging.spare_records import SpareRecords
from logstore.staging.staged import RecordReader, Staged, home_of, list_staged, look_for_staged, record_of_live
from logstore.staging.staging import LOT, Settled, stage
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
from logstore.staging.stray_record import give_record

__all__ = [
    "ALL_MS",
    "LOT",
    "Candidate",
    "Placement",
    "PurgeNote",
    "RecordReader",
    "Refused",
    "Restored",
    "Settled",
    "SpareRecords",
    "Staged",
    "StagingOutcome",
    "begin_purge",
    "choose_placement",
    "end_purge",
    "finish",
    "finish_shared_records",
    "give_record",
    "home_of",
    "list_staged",
    "look_for_staged",
    "name_below_log_dir",
    "open_staging_root",
    "placement_of",
    "placements",
    "planned_restore",
    "record_of_live",
    "restore",
    "stage",
    "staging_path",
    "staging_roots",
]
