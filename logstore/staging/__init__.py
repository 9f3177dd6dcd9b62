"""Stages replicas, each with a line in the ledger that says what it was, lists them, and restores them."""

from logstore.staging.bring_back import Restored, planned_restore, restore
from logstore.staging.candidate import Candidate, Refused, StagingOutcome
from logstore.staging.listing import (
    BROKERS_STRAY,
    Staged,
    damaged_lines,
    find_staged,
    list_staged,
    read_staged,
    staged_names,
)
from logstore.staging.new_name import settle_live, settle_name
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
from logstore.staging.records import restored_path, topic_id_in
from logstore.staging.root_ledger import RootLedger, note_event
from logstore.staging.run import OnCommitted, stage
from logstore.staging.strays import adopt_stray, forget_stray
from logstore.tunables import STAGING_BATCH_SIZE

__all__ = [
    "BROKERS_STRAY",
    "STAGING_BATCH_SIZE",
    "Candidate",
    "OnCommitted",
    "Placement",
    "Refused",
    "Restored",
    "RootLedger",
    "Staged",
    "StagingOutcome",
    "adopt_stray",
    "choose_placement",
    "damaged_lines",
    "find_staged",
    "forget_stray",
    "list_staged",
    "name_below_log_dir",
    "note_event",
    "open_staging_root",
    "placement_of",
    "placements",
    "planned_restore",
    "read_staged",
    "restore",
    "restored_path",
    "settle_live",
    "settle_name",
    "stage",
    "staged_names",
    "stages_in_place",
    "staging_path",
    "staging_roots",
    "topic_id_in",
]
