"""The drill of repairs: a sound engine keeps what it promises of them, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.fs import Batch, write_new_file
from logstore.repair import RepairStatus, backup, undo
from logstore.repair.undo import Undone
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_repairs
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 40


def test_a_sound_engine_keeps_its_promises_and_a_seed_always_plays_the_same() -> None:
    reached = counted(drill_repairs, SEEDS, 0)
    undone = {f"drill_repair undo_{what}" for what in ("nothing", "changed", "replaced", "gone")}
    assert reached.keys() == undone | {f"drill_repair_fault {kind}" for kind in ("power", "system")}
    assert counted(drill_repairs, 4, 0) == counted(drill_repairs, 4, 0)


def not_durably(disk, parent, name, data, *, durable) -> None:
    write_new_file(disk, parent, name, data, durable=False)


class Unsynced(Batch):
    def sync(self, paths) -> None:
        """Leave it to the system, when the directories are durable."""


def put_back_anyhow(log_dir, file):
    return None


def said_to_be_done(log_dir, files):
    return [Undone(file.path, RepairStatus.DONE) for file in files]


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(backup, "write_new_file", not_durably), "does not give its old bytes back"),
        (lambda patch: patch.setattr(backup, "merged_backups", lambda old, files: old), "does not give its old bytes"),
        (lambda patch: patch.setattr(undo, "_revalidate", put_back_anyhow), "and its undo|and should one of"),
        (lambda patch: patch.setattr(undo, "_put_back", said_to_be_done), "and its undo|and should one of"),
        (lambda patch: patch.setattr(undo, "remove_file", lambda *_: None), "the backup is gone: False"),
        (lambda patch: patch.setattr(undo, "Batch", Unsynced), "does not give its old bytes back"),
        (lambda patch: patch.setattr(backup, "change_files", lambda *_: {}), "and should one of"),
    ],
    ids=[
        "not durable",
        "not added to",
        "put back anyhow",
        "not put back",
        "backup left",
        "backup gone",
        "not repaired",
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_repairs, SEEDS, 0)
