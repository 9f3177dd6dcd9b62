"""Files put right from a reviewed plan, with backup and undo."""

from logstore.repair.repair import RepairOutcome, apply_repair
from logstore.repair.repair_look import read_files
from logstore.repair.repair_step import RepairStatus
from logstore.repair.repair_undo import UndoOutcome, undo_repair

__all__ = [
    "RepairOutcome",
    "RepairStatus",
    "UndoOutcome",
    "apply_repair",
    "read_files",
    "undo_repair",
]
