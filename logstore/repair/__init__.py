"""Repairs files of log dirs by a reviewed plan, with a backup of every changed file and an undo."""

from logstore.repair.apply import RepairOutcome, apply_repair
from logstore.repair.checks import DUPLICATE, RepairStatus
from logstore.repair.read import read_files
from logstore.repair.undo import UndoOutcome, undo_repair

__all__ = [
    "DUPLICATE",
    "RepairOutcome",
    "RepairStatus",
    "UndoOutcome",
    "apply_repair",
    "read_files",
    "undo_repair",
]
