"""Names by nodes: the effect of a change, also after the loss of an earlier one.

Also when a change is durable, and which bytes a file may hold after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from logstore.fs.crash_disk.unsynced import ROOT, ChangeKind, Image, NameChange, Overwrite, Unsynced, possible_contents

FILE, OTHER, DIRECTORY, EMPTY = 1, 2, 3, 4


def image() -> Image:
    return Image({ROOT: {"f": FILE, "d": DIRECTORY, "e": EMPTY}, DIRECTORY: {"g": OTHER}, EMPTY: {}})


def applied(change: NameChange) -> dict[int, dict[str, int]]:
    found = image()
    found.apply(change)
    return found.directories


def rename(name: str, node: int, target: int, new_name: str) -> NameChange:
    return NameChange(ChangeKind.RENAME, ROOT, name, node, target, new_name)


@pytest.mark.parametrize(
    "change",
    [
        NameChange(ChangeKind.ADD, ROOT, "d", 9),
        NameChange(ChangeKind.REMOVE, ROOT, "f", OTHER),
        NameChange(ChangeKind.REMOVE, ROOT, "missing", FILE),
        NameChange(ChangeKind.REMOVE, ROOT, "d", DIRECTORY),
        rename("missing", FILE, DIRECTORY, "f"),
        rename("f", FILE, ROOT, "f"),
        rename("f", FILE, ROOT, "d"),
        rename("e", EMPTY, ROOT, "d"),
        rename("d", DIRECTORY, DIRECTORY, "inside"),
        rename("d", DIRECTORY, ROOT, "f"),
    ],
)
def test_a_change_that_makes_no_sense_does_nothing(change: NameChange) -> None:
    assert applied(change) == image().directories


def test_a_directory_is_not_moved_to_a_place_below_itself() -> None:
    found = Image({ROOT: {"a": 1}, 1: {"b": 2}, 2: {}})
    found.apply(rename("a", 1, 2, "c"))
    assert found.directories == {ROOT: {"a": 1}, 1: {"b": 2}, 2: {}}


def test_a_file_gives_way_to_a_file_and_an_empty_directory_to_a_directory() -> None:
    assert applied(rename("f", FILE, DIRECTORY, "g"))[DIRECTORY] == {"g": FILE}
    assert applied(rename("d", DIRECTORY, ROOT, "e"))[ROOT] == {"f": FILE, "e": DIRECTORY}
    assert applied(NameChange(ChangeKind.ADD, ROOT, "f", 9))[ROOT]["f"] == 9


def test_an_empty_directory_and_a_file_are_removed() -> None:
    assert applied(NameChange(ChangeKind.REMOVE, ROOT, "e", EMPTY))[ROOT] == {"f": FILE, "d": DIRECTORY}
    assert applied(NameChange(ChangeKind.REMOVE, ROOT, "f", FILE))[ROOT] == {"d": DIRECTORY, "e": EMPTY}


def test_a_walk_yields_parents_first() -> None:
    assert [(directory, path) for directory, _, _, path in image().walk()] == [
        *((ROOT, "f"), (ROOT, "d"), (ROOT, "e")),
        (DIRECTORY, "d/g"),
    ]


def test_what_no_name_leads_to_is_forgotten() -> None:
    found = image()
    del found.directories[ROOT]["d"]
    found.forget_unreachable()
    assert found.directories == {ROOT: {"f": FILE, "e": EMPTY}, EMPTY: {}}


def test_a_copy_goes_its_own_way() -> None:
    first = image()
    second = first.copy()
    second.directories[DIRECTORY]["new"] = 9
    assert first.directories == image().directories


D, E, F = 1, 2, 3


def two_directories() -> Unsynced:
    """Two directories, and a file in the first; all durable."""
    made = Unsynced()
    made.change(NameChange(ChangeKind.ADD, ROOT, "d", D), directory=True)
    made.change(NameChange(ChangeKind.ADD, ROOT, "e", E), directory=True)
    made.change(NameChange(ChangeKind.ADD, D, "f", F))
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
    unsynced.change(NameChange(ChangeKind.RENAME, D, "f", F, E, "f"))
    assert len(drawn(unsynced)) == 2
    for node in (first, ROOT):
        unsynced.sync(node)
        assert len(drawn(unsynced)) == 2
    unsynced.sync(last)
    assert unsynced.is_all_durable
    assert drawn(unsynced) == [{ROOT: {"d": D, "e": E}, D: {}, E: {"f": F}}]


def test_each_change_is_lost_apart_from_the_others() -> None:
    unsynced = two_directories()
    unsynced.change(NameChange(ChangeKind.REMOVE, D, "f", F))
    unsynced.change(NameChange(ChangeKind.REMOVE, ROOT, "e", E))
    assert len(drawn(unsynced)) == 4
    unsynced.sync(ROOT)
    assert [state[ROOT] for state in drawn(unsynced)] == [{"d": D}, {"d": D}]


def test_what_was_removed_from_a_directory_that_is_durably_gone_does_not_come_back() -> None:
    unsynced = two_directories()
    unsynced.change(NameChange(ChangeKind.REMOVE, D, "f", F))
    unsynced.change(NameChange(ChangeKind.REMOVE, ROOT, "d", D))
    unsynced.sync(ROOT)
    assert unsynced.is_all_durable
    assert drawn(unsynced) == [{ROOT: {"e": E}, E: {}}]


def test_a_synced_file_keeps_its_bytes_and_a_synced_disk_everything() -> None:
    unsynced = two_directories()
    unsynced.overwrite(F, Overwrite(0, 1, 0, b""))
    assert not unsynced.is_all_durable
    unsynced.sync(F)
    assert unsynced.is_all_durable
    unsynced.overwrite(F, Overwrite(0, 1, 1, b"x"))
    unsynced.change(NameChange(ChangeKind.REMOVE, D, "f", F))
    unsynced.sync_all()
    assert unsynced.is_all_durable


@pytest.mark.parametrize(
    ("present", "done", "expected"),
    [
        (b"abcd", [Overwrite(0, 4, 0, b"")], [b"abcd", b"", b"ab", bytes(4)]),
        (b"abXY", [Overwrite(2, 2, 4, b"cd")], [b"abXY", b"abcd", b"abXd"]),
        (b"ab", [Overwrite(2, -1, 4, b"cd")], [b"ab", b"abcd"]),
        (b"ab\0\0", [Overwrite(4, -1, 2, b"")], [b"ab\0\0", b"ab"]),
        (b"XY", [Overwrite(0, -1, 4, b"abcd"), Overwrite(0, 2, 0, b"")], [b"XY", b"abcd", b"X"]),
        (b"abcd", [Overwrite(0, 2, 0, b""), Overwrite(2, 2, 2, b"")], [b"abcd", b"", b"abc", bytes(4)]),
        (b"a\0\0b", [Overwrite(3, 1, 1, b"")], [b"a\0\0b", b"a", b"a\0\0", b"a\0\0\0"]),
        (b"same", [Overwrite(0, 4, 4, b"same")], [b"same"]),
    ],
)
def test_a_file_holds_all_or_nothing_or_a_part_or_zeros(
    present: bytes, done: Sequence[Overwrite], expected: list[bytes]
) -> None:
    assert possible_contents(present, done) == expected
