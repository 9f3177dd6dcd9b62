"""Files put right from a reviewed plan, with backup and undo."""

from logstore.repair.repair import RepairOutcome, apply
from logstore.repair.repair_look import read_files
from logstore.repair.repair_step import Status
from logstore.repair.repair_undo import UndoOutcome, undo

__all__ = [
    "RepairOutcome",
    "Status",
    "UndoOutcome",
    "apply",
    "read_files",
    "undo",
]
