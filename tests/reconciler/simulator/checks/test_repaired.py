"""What a repair and its undo must leave in a file, judged by its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.repair import RepairStatus, UndoOutcome
from logstore.repair.undo import Undone
from reconciler.plan import Action, ActionKind, AppliedAction, ApplyOutcome
from reconciler.simulator.checks import Damage, DamagedFile, bytes_of, wrongly_repaired, wrongly_undone

FILE = "recovery-point-offset-checkpoint"
BEFORE, SINCE = b"0\n2\norders 0 5\norders 1 7\n", b"0\n2\norders 0 5\norders 1 7\nwhat?\n"


def damaged(folder: Path, now: bytes | None) -> DamagedFile:
    if now is not None:
        (folder / FILE).write_bytes(now)
    return DamagedFile(str(folder), FILE, Damage.STRANGE_LINE, BEFORE, SINCE, frozenset({("orders", 0)}))


def outcome(folder: Path, status: RepairStatus) -> ApplyOutcome:
    action = Action(ActionKind.REBUILD_CHECKPOINT, str(folder), FILE, "", -1, None, None, "DAMAGED", "why")
    return ApplyOutcome([AppliedAction(action, status, "for a reason")])


@pytest.mark.parametrize(
    ("now", "is_right"),
    [(BEFORE, True), (b"0\n1\norders 0 5\n", True), (b"0\n1\norders 1 7\n", False), (SINCE, False), (None, False)],
)
def test_a_checkpoint_keeps_the_entries_of_what_lies_there(tmp_path: Path, now: bytes | None, is_right: bool) -> None:
    assert damaged(tmp_path, now).is_right is is_right
    assert bool(list(wrongly_repaired(damaged(tmp_path, now), outcome(tmp_path, RepairStatus.DONE)))) is not is_right


def test_a_damage_without_a_repair_that_was_done_is_told(tmp_path: Path) -> None:
    (wrong,) = wrongly_repaired(damaged(tmp_path, BEFORE), ApplyOutcome())
    assert wrong == f"no repair is proposed of {tmp_path}/{FILE}, which has a strange_line"
    (wrong,) = wrongly_repaired(damaged(tmp_path, BEFORE), outcome(tmp_path, RepairStatus.SKIPPED))
    assert wrong.endswith("is skipped: for a reason")


def test_an_undo_that_leaves_a_backup_or_other_bytes_is_told(tmp_path: Path) -> None:
    damaged(tmp_path, SINCE)
    undone = UndoOutcome(str(tmp_path), [Undone(FILE, RepairStatus.DONE)], backup_removed=True)
    assert list(wrongly_undone({f"{tmp_path}/{FILE}": SINCE}, undone)) == []
    undone.backup_removed = False
    said = list(wrongly_undone({}, undone))
    assert "leaves its backup there" in said[0] and f"leaves {bytes_of(f'{tmp_path}/{FILE}')!r}" in said[1]
