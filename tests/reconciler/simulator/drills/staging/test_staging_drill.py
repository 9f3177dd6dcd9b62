"""The drill of what is staged: sound code keeps what it confirmed, and a mistake is noticed within a few seeds."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from layout.ids import TopicId
from layout.ours import LedgerEntry, LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE
from logstore.fs import Directory, Disk, make_directory
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import Ledgers, read_ledger
from logstore.log_dir.checkpoints import CheckpointFiles
from logstore.log_dir.ledger import LedgerFile
from logstore.purge.throttle import Throttle
from logstore.staging import bring_back, run, strays
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_staging
from reconciler.simulator.drills.staging.damage import Said, damage_line
from tests.reconciler.simulator.drills.counting import counted

SEEDS, STEPS = 120, 40


def test_sound_code_keeps_what_it_confirmed_and_a_seed_always_plays_the_same() -> None:
    first = counted(drill_staging, 8, STEPS)
    assert first == counted(drill_staging, 8, STEPS)
    assert first["drill_ledger stage"] and first["drill_ledger damaged"]
    assert first["drill_staging stage"] and first["drill_staging damaged"] and first["drill_staging purge"]


def mistaken_undo(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run._Staging, "_undo", lambda self, moves: self._forget(moves))


def forgotten_candidates(patch: pytest.MonkeyPatch) -> None:
    def put_back(self: run._Staging, moves: list[object], left: list[object]) -> int:
        return max(1, len(moves) // 4)

    patch.setattr(run._Staging, "_put_back", put_back)


def used_again(patch: pytest.MonkeyPatch) -> None:
    sound = LedgerFile.stage

    def stage(self: LedgerFile, records: dict[str, StagedRecord], lines: list[bytes] | None = None) -> None:
        for name in records.keys() & self.ledger.entries.keys():
            if self.ledger.entries[name].event is not LedgerEvent.STAGED:
                del self.ledger.entries[name]
        sound(self, records, lines)

    patch.setattr(LedgerFile, "stage", stage)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (used_again, "is staged once more"),
        (lambda patch: patch.setattr(LedgerFile, "sync", lambda self: None), "the ledger says|is staged, and"),
        (
            lambda patch: patch.setattr(LedgerFile, "_recover", lambda self: self.ledger.torn.clear()),
            "is taken for damage",
        ),
        (
            lambda patch: patch.setattr(
                LedgerFile, "_is_replaced", property(lambda _: False, lambda *_: None), raising=False
            ),
            "the ledger says",
        ),
        (
            lambda patch: patch.setattr(LedgerEntry, "may_be_partly_purged", property(lambda self: False)),
            "is said to be whole|should be half purged|is staged, and not whole",
        ),
        (lambda patch: patch.setattr(CheckpointFiles, "give_back", lambda self, *_: None), "checkpoint entries"),
        (mistaken_undo, "should be live"),
        (forgotten_candidates, "are staged and .* refused"),
        (lambda patch: patch.setattr(strays, "_check_same", lambda *_: None), "a stray that is"),
        (lambda patch: patch.setattr(bring_back, "_check_same", lambda *_: None), "is another directory by now"),
    ],
    ids=[
        "name of a purged one used again",
        *("ledger not synced", "torn line left", "name not synced", "begun purge forgotten", "offsets not given back"),
        *("staging not undone", "batch without room lost", "another stray adopted", "another directory restored"),
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_staging, SEEDS, STEPS)


def test_a_clock_that_goes_back_is_noticed_where_it_makes_a_purge_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Throttle.take

    def slow(self: Throttle, number_of_bytes: int, unlinks: int, cancel: object) -> bool:
        return sound(self, number_of_bytes, unlinks + 3_600_000, cancel)  # type: ignore[arg-type]

    monkeypatch.setattr(Throttle, "take", slow)
    with pytest.raises(BrokenInvariantError, match=r"a purge of \d+ replicas waits"):
        counted(drill_staging, SEEDS, STEPS)


def test_a_damaged_line_costs_what_it_said_and_puts_what_is_before_it_in_doubt() -> None:
    names = [f"{TopicId(bytes([number] * 16))}_{number}" for number in range(2)]
    records = {
        name: StagedRecord("orders", number, TopicId(bytes([number] * 16)), f"orders-{number}", "S", "it", 1, 2)
        for number, name in enumerate(names)
    }
    with (
        MachineDisks.in_memory(1) as disks,
        Directory.open(f"{disks.root}/disk-1") as mounted,
        make_directory(disks.disk, mounted, "s") as folder,
    ):
        ledgers = Ledgers(disks.disk)
        for name, record in records.items():
            ledgers.of(folder).stage({name: record})
        ledgers.of(folder).note(LedgerEvent.PURGING, names[:1], durable=True)
        ledgers.close()
        found = set[int]()
        with open(f"{folder.path}/{LEDGER_FILE}", "rb") as file:
            whole = file.read()
        for seed in range(20):
            damaged = damage_line(disks.disk, folder, Random(seed))
            assert damaged is not None
            said = read_ledger(folder)
            assert said is not None and [each.number for each in said.damaged] == [damaged.number]
            found.add(damaged.number)
            if damaged.number == 6:
                staged = Said(LedgerEvent.STAGED, in_doubt=True, has_record=True)
                assert damaged.said == {names[0]: staged, names[1]: staged}
            restored(disks.disk, folder, whole)
        assert found == {2, 4, 6}


def restored(disk: Disk, folder: Directory, data: bytes) -> None:
    """Write a ledger as it was."""
    descriptor = disk.open_to_change(folder.descriptor, LEDGER_FILE)
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        disk.write(descriptor, data)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
