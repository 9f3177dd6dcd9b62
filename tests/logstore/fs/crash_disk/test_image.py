"""Names by nodes: the effect of a change, also after the loss of an earlier one."""

from __future__ import annotations

import pytest

from logstore.fs.crash_disk import ROOT, ChangeKind, Image, NameChange

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
        NameChange(ChangeKind.CREATE, ROOT, "d", 9),
        NameChange(ChangeKind.UNLINK, ROOT, "f", OTHER),
        NameChange(ChangeKind.UNLINK, ROOT, "missing", FILE),
        NameChange(ChangeKind.RMDIR, ROOT, "d", DIRECTORY),
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
    assert applied(NameChange(ChangeKind.CREATE, ROOT, "f", 9))[ROOT]["f"] == 9


def test_an_empty_directory_and_a_file_are_removed() -> None:
    assert applied(NameChange(ChangeKind.RMDIR, ROOT, "e", EMPTY))[ROOT] == {"f": FILE, "d": DIRECTORY}
    assert applied(NameChange(ChangeKind.UNLINK, ROOT, "f", FILE))[ROOT] == {"d": DIRECTORY, "e": EMPTY}


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
