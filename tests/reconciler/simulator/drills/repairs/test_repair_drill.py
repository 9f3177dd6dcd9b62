"""The drill of repairs and scans: a sound engine keeps its promises, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.fs import Batch, write_new_file
from logstore.repair import RepairStatus, backup, undo
from logstore.repair.undo import Undone
from logstore.scan import duplicates, metadata_file, replica
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_repairs
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 40


def test_a_sound_engine_keeps_its_promises_and_a_seed_always_plays_the_same() -> None:
    reached = counted(drill_repairs, SEEDS, 0)
    undone = {f"drill_repair undo_{what}" for what in ("nothing", "changed", "replaced", "gone")}
    undone |= {f"drill_repair_fault {kind}" for kind in ("power", "system")}
    scanned = ("ok", "missing", "empty", "malformed", "zero_id", "contradicts", "copies")
    assert reached.keys() == undone | {f"drill_scan {what}" for what in scanned}
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
        (lambda patch: patch.setattr(metadata_file, "_contradiction", lambda *_: None), "is scanned as"),
        (lambda patch: patch.setattr(replica, "check_against_name", lambda found, _: found), "is scanned as"),
        (lambda patch: patch.setattr(duplicates, "last_leader_epoch", lambda _: 7), "is scanned as"),
        (lambda patch: patch.setattr(duplicates, "_live_twice", lambda _: frozenset()), "is scanned as"),
    ],
    ids=[
        *("not durable", "not added to", "anyhow", "not put back", "backup left", "backup gone", "not repaired"),
        *("another topic", "ID of the name", "epoch", "no copies"),
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_repairs, SEEDS, 0)
