"""Files of log dirs put right, with a backup of every changed file and an undo. Knows no plan."""

from logstore.repair.backup import repair_files
from logstore.repair.checks import (
    ChangedSinceError,
    CheckedRepair,
    CheckpointWithout,
    FileRepair,
    RepairStatus,
    TopicIdFile,
    check_better_copy,
    check_repair,
    check_worse_copy,
    is_gone,
    replicas_with_directory,
)
from logstore.repair.read import read_files
from logstore.repair.undo import UndoOutcome, undo_repair

__all__ = [
    "ChangedSinceError",
    "CheckedRepair",
    "CheckpointWithout",
    "FileRepair",
    "RepairStatus",
    "TopicIdFile",
    "UndoOutcome",
    "check_better_copy",
    "check_repair",
    "check_worse_copy",
    "is_gone",
    "read_files",
    "repair_files",
    "replicas_with_directory",
    "undo_repair",
]
