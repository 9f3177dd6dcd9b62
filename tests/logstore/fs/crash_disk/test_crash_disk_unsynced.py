"""What is durable when, and what a file may hold after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from logstore.fs.crash_disk.image import ROOT, Change, NameChange
from logstore.fs.crash_disk.unsynced import Overwritten, Unsynced, contents

D, E, F = 1, 2, 3


def two_directories() -> Unsynced:
    """Two directories, and a file in the first; all durable."""
    made = Unsynced()
    made.change(NameChange(Change.ADD, ROOT, "d", D), directory=True)
    made.change(NameChange(Change.ADD, ROOT, "e", E), directory=True)
    made.change(NameChange(Change.ADD, D, "f", F))
    made.sync_all()
    return made


def drawn(unsynced: Unsynced) -> list[dict[int, dict[str, int]]]:
    """Every state of names that is drawn."""
    found: list[dict[int, dict[str, int]]] = []
    for seed in range(100):
        state = unsynced.draw(Random(seed)).directories
        if state not in found:
            found.append(state)
    return found


@pytest.mark.parametrize(("first", "last"), [(E, D), (D, E)])
def test_a_rename_between_two_directories_is_durable_when_both_were_synced(first: int, last: int) -> None:
    unsynced = two_directories()
    unsynced.change(NameChange(Change.RENAME, D, "f", F, E, "f"))
    assert len(drawn(unsynced)) == 2
    for node in (first, ROOT):
        unsynced.sync(node)
        assert len(drawn(unsynced)) == 2
    unsynced.sync(last)
    assert unsynced.is_all_durable
    assert drawn(unsynced) == [{ROOT: {"d": D, "e": E}, D: {}, E: {"f": F}}]


def test_each_change_is_lost_apart_from_the_others() -> None:
    unsynced = two_directories()
    unsynced.change(NameChange(Change.REMOVE, D, "f", F))
    unsynced.change(NameChange(Change.REMOVE, ROOT, "e", E))
    assert len(drawn(unsynced)) == 4
    unsynced.sync(ROOT)
    assert [state[ROOT] for state in drawn(unsynced)] == [{"d": D}, {"d": D}]


def test_what_was_removed_from_a_directory_that_is_durably_gone_does_not_come_back() -> None:
    unsynced = two_directories()
    unsynced.change(NameChange(Change.REMOVE, D, "f", F))
    unsynced.change(NameChange(Change.REMOVE, ROOT, "d", D))
    unsynced.sync(ROOT)
    assert unsynced.is_all_durable
    assert drawn(unsynced) == [{ROOT: {"e": E}, E: {}}]


def test_a_synced_file_keeps_its_bytes_and_a_synced_disk_everything() -> None:
    unsynced = two_directories()
    unsynced.overwrite(F, Overwritten(0, 1, 0, b""))
    assert not unsynced.is_all_durable
    unsynced.sync(F)
    assert unsynced.is_all_durable
    unsynced.overwrite(F, Overwritten(0, 1, 1, b"x"))
    unsynced.change(NameChange(Change.REMOVE, D, "f", F))
    unsynced.sync_all()
    assert unsynced.is_all_durable


@pytest.mark.parametrize(
    ("present", "done", "expected"),
    [
        (b"abcd", [Overwritten(0, 4, 0, b"")], [b"abcd", b"", b"ab", bytes(4)]),
        (b"abXY", [Overwritten(2, 2, 4, b"cd")], [b"abXY", b"abcd", b"abXd"]),
        (b"ab", [Overwritten(2, -1, 4, b"cd")], [b"ab", b"abcd"]),
        (b"ab\0\0", [Overwritten(4, -1, 2, b"")], [b"ab\0\0", b"ab"]),
        (b"XY", [Overwritten(0, -1, 4, b"abcd"), Overwritten(0, 2, 0, b"")], [b"XY", b"abcd", b"X"]),
        (b"abcd", [Overwritten(0, 2, 0, b""), Overwritten(2, 2, 2, b"")], [b"abcd", b"", b"abc", bytes(4)]),
        (b"a\0\0b", [Overwritten(3, 1, 1, b"")], [b"a\0\0b", b"a", b"a\0\0", b"a\0\0\0"]),
        (b"same", [Overwritten(0, 4, 4, b"same")], [b"same"]),
    ],
)
def test_a_file_holds_all_or_nothing_or_a_part_or_zeros(
    present: bytes, done: Sequence[Overwritten], expected: list[bytes]
) -> None:
    assert contents(present, done) == expected
