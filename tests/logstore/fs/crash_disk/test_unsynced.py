"""When a change is durable, and which bytes a file may hold after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from logstore.fs.crash_disk import ROOT, ChangeKind, DataChange, NameChange, Unsynced
from logstore.fs.crash_disk.unsynced import PendingData

D, E, F = 1, 2, 3


def two_directories() -> Unsynced:
    """Two directories, and a file in the first; all durable."""
    made = Unsynced()
    made.take(NameChange(ChangeKind.MKDIR, ROOT, "d", D))
    made.take(NameChange(ChangeKind.MKDIR, ROOT, "e", E))
    made.take(NameChange(ChangeKind.CREATE, D, "f", F))
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
    unsynced.take(NameChange(ChangeKind.RENAME, D, "f", F, E, "f"))
    assert len(drawn(unsynced)) == 2
    for node in (first, ROOT):
        unsynced.sync([node])
        assert len(drawn(unsynced)) == 2
    unsynced.sync([last])
    assert unsynced.is_all_durable
    assert drawn(unsynced) == [{ROOT: {"d": D, "e": E}, D: {}, E: {"f": F}}]


def test_each_change_is_lost_apart_from_the_others() -> None:
    unsynced = two_directories()
    unsynced.take(NameChange(ChangeKind.UNLINK, D, "f", F))
    unsynced.take(NameChange(ChangeKind.RMDIR, ROOT, "e", E))
    assert len(drawn(unsynced)) == 4
    unsynced.sync([ROOT])
    assert [state[ROOT] for state in drawn(unsynced)] == [{"d": D}, {"d": D}]


def test_what_was_removed_from_a_directory_that_is_durably_gone_does_not_come_back() -> None:
    unsynced = two_directories()
    unsynced.take(NameChange(ChangeKind.UNLINK, D, "f", F))
    unsynced.take(NameChange(ChangeKind.RMDIR, ROOT, "d", D))
    unsynced.sync([ROOT])
    assert unsynced.is_all_durable
    assert drawn(unsynced) == [{ROOT: {"e": E}, E: {}}]


def test_a_synced_file_keeps_its_bytes_and_a_synced_disk_everything() -> None:
    unsynced = two_directories()
    unsynced.take(DataChange(F, 0, b"x", 0, b""))
    assert not unsynced.is_all_durable
    unsynced.sync([F])
    assert unsynced.is_all_durable
    unsynced.take(DataChange(F, 0, b"y", 1, b"x"))
    unsynced.take(NameChange(ChangeKind.UNLINK, D, "f", F))
    unsynced.sync_all()
    assert unsynced.is_all_durable


WHOLE, NOTHING, CUT, ZEROS = "", "nothing of it", "cut short", "zeros"


@pytest.mark.parametrize(
    ("present", "changes", "expected"),
    [
        (b"abcd", [(0, b"abcd", 0, b"")], {b"abcd": WHOLE, b"": NOTHING, b"ab": CUT, bytes(4): ZEROS}),
        (b"abXY", [(2, b"XY", 4, b"cd")], {b"abXY": WHOLE, b"abcd": NOTHING, b"abXd": CUT}),
        (b"ab", [(2, None, 4, b"cd")], {b"ab": WHOLE, b"abcd": NOTHING}),
        (b"ab\0\0", [(4, None, 2, b"")], {b"ab\0\0": WHOLE, b"ab": NOTHING}),
        (b"XY", [(0, None, 4, b"abcd"), (0, b"XY", 0, b"")], {b"XY": WHOLE, b"abcd": NOTHING, b"X": CUT}),
        (
            b"abcd",
            [(0, b"ab", 0, b""), (2, b"cd", 2, b"")],
            {b"abcd": WHOLE, b"": NOTHING, b"abc": CUT, bytes(4): ZEROS},
        ),
        (b"a\0\0b", [(3, b"b", 1, b"")], {b"a\0\0b": WHOLE, b"a": NOTHING, b"a\0\0": CUT, b"a\0\0\0": ZEROS}),
        (b"same", [(0, b"same", 4, b"same")], {b"same": WHOLE}),
    ],
)
def test_a_file_holds_all_or_nothing_or_a_part_or_zeros(
    present: bytes, changes: Sequence[tuple[int, bytes | None, int, bytes]], expected: dict[bytes, str]
) -> None:
    pending = PendingData(0, F, [DataChange(F, *change) for change in changes])
    assert pending.contents(present) == list(expected.items())


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (b"abcd", DataChange(F, 1, b"XY", 4, b"bc"), b"aXYd"),
        (b"ab", DataChange(F, 4, b"X", 2, b""), b"ab\0\0X"),
        (b"abcd", DataChange(F, 1, None, 4, b"bcd"), b"a"),
        (b"a", DataChange(F, 3, None, 1, b""), b"a\0\0"),
    ],
)
def test_a_change_of_bytes_is_done_again_and_undone(before: bytes, change: DataChange, after: bytes) -> None:
    assert change.redo(before) == after
    assert change.undo(after) == before


def test_what_may_be_lost_is_listed_in_the_order_in_which_it_was_done() -> None:
    unsynced = two_directories()
    unsynced.take(NameChange(ChangeKind.RENAME, D, "f", F, E, "f"))
    unsynced.take(DataChange(F, 0, b"x", 0, b""))
    unsynced.take(NameChange(ChangeKind.CREATE, ROOT, "g", 4))
    unsynced.take(DataChange(F, 1, b"y", 1, b""))
    first, data, last = unsynced.pending()
    assert first.number < data.number < last.number
    assert isinstance(data, PendingData)
    assert len(data.changes) == 2
    assert unsynced.names_without({first.number, last.number}) == unsynced.durable
    assert unsynced.names_without({data.number}) == unsynced.present
    unsynced.sync([ROOT, F])
    assert unsynced.pending() == [first]
