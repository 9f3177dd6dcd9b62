"""The drill of primitive changes: sound ones keep what they confirmed, and a mistake is noticed within a few seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import pytest

from logstore.fs import Directory, Disk, batch, copy, durable
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_files
from reconciler.simulator.runs.coverage import EXPECTED
from tests.reconciler.simulator.drills.counting import counted

SEEDS, STEPS = 60, 200


def test_sound_changes_keep_what_they_confirmed_and_a_seed_always_plays_the_same() -> None:
    found = counted(drill_files, SEEDS, STEPS)
    assert found.keys() == {each for each in EXPECTED if each.startswith("drill_file")}
    assert counted(drill_files, 3, STEPS) == counted(drill_files, 3, STEPS)


def written_in_part(_: Disk, descriptor: int, data: bytes) -> None:
    os.write(descriptor, data)


def synced_backwards(disk: Disk, directories: Iterable[Directory]) -> None:
    for each in {each.key: each for each in reversed(list(directories))}.values():
        disk.sync(each.descriptor)


def renamed_over(disk: Disk, source: Directory, name: str, target: Directory, new_name: str) -> None:
    disk.rename(source.descriptor, name, target.descriptor, new_name)


def unsynced(disk: Disk, parent: Directory, name: str, data: bytes, temporary: str) -> None:
    durable.write_draft(disk, parent, temporary, data, sync=False)
    disk.rename(parent.descriptor, temporary, parent.descriptor, name)
    disk.sync(parent.descriptor)


def removed_for_now(disk: Disk, parent: Directory, name: str) -> None:
    durable.remove_file(disk, parent, name, durable=False)


class Anything(int):
    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def believed(*_: object) -> Anything:
    return Anything()


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(Disk, "write", written_in_part), "a part was taken"),
        (lambda patch: patch.setattr("reconciler.simulator.drills.files.sync_all", synced_backwards), "in the order"),
        (lambda patch: patch.setattr("reconciler.simulator.drills.files.rename_exclusively", renamed_over), "is there"),
        (lambda patch: patch.setattr(copy, "_checksum", believed), "taken for good"),
        (lambda patch: patch.setattr(batch.Batch, "sync", lambda *_: None), "should hold"),
        (lambda patch: patch.setattr(batch, "barrier", lambda *_: None), "should hold"),
        (lambda patch: patch.setattr(durable, "_replace", unsynced), "should hold"),
    ],
    ids=["whole", "order", "taken", "read back", "entries", "barrier", "bytes"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_files, SEEDS, STEPS)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr("reconciler.simulator.drills.files.rename_exclusively", renamed_over), "is there"),
        (lambda patch: patch.setattr("reconciler.simulator.drills.files.remove_file", removed_for_now), "should hold"),
    ],
    ids=["taken", "removal"],
)
def test_a_drill_of_two_changes_has_something_to_remove_and_names_that_are_taken(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_files, 100, 40)
