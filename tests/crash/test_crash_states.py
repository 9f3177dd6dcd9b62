"""The model of a crash, rule by rule: a few steps, and exactly what may lie on the disk after them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.by_path import ByPath
from tests.crash.crash_states import crash_states
from tests.crash.images import Tree, read_tree, write_image, write_tree
from tests.crash.recording_disk import RecordingDisk
from tests.crash.steps import Done

Act = Callable[[ByPath], None]
LeftBy = Callable[[Tree, Act], list[Tree]]


def run(tree: Tree, act: Act, root: Path) -> RecordingDisk:
    write_tree(tree, str(root))
    disk = RecordingDisk(str(root))
    act(ByPath(disk, str(root)))
    disk.assert_nothing_else_changed()
    return disk


@pytest.fixture
def left_by(scratch: str) -> LeftBy:
    """``left_by(tree, act)``: every tree that a crash just after the last step of ``act`` may leave."""

    def states(tree: Tree, act: Act) -> list[Tree]:
        disk = run(tree, act, Path(scratch, "root"))
        return [state.tree for state in crash_states(disk.start, [*disk.log, Done("all")]) if state.done]

    return states


def same(found: list[Tree], *expected: Tree) -> None:
    def ordered(trees: list[Tree]) -> list[str]:
        return sorted(repr(sorted(tree.items())) for tree in trees)

    assert ordered(found) == ordered(list(expected))


def test_a_created_file_vanishes_or_stays_until_its_directory_is_synced(left_by: LeftBy) -> None:
    same(left_by({}, lambda disk: disk.create("f")), {}, {"f": b""})


def test_a_synced_directory_keeps_the_name_of_a_file_and_says_nothing_of_its_bytes(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.create("f", b"abcd")
        disk.sync()

    same(left_by({}, act), {"f": b""}, {"f": b"ab"}, {"f": bytes(4)}, {"f": b"abcd"})


def test_a_synced_file_keeps_its_bytes_and_nothing_keeps_its_name(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.create("f", b"abcd")
        disk.sync("f")

    same(left_by({}, act), {}, {"f": b"abcd"})


def test_bytes_written_after_a_sync_are_pending_again(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.overwrite("f", b"xy")
        disk.sync("f")
        disk.overwrite("f", b"z")

    same(left_by({"f": b"abcd"}, act), {"f": b"xycd"}, {"f": b"zycd"})


def test_a_file_that_was_cut_off_may_be_whole_again(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.overwrite("f", b"xy", keep=0)

    same(left_by({"f": b"abcd"}, act), {"f": b"abcd"}, {"f": b"xy"}, {"f": b"x"})


def test_a_removed_file_stays_away_or_comes_back_until_its_directory_is_synced(left_by: LeftBy) -> None:
    same(left_by({"f": b"x"}, lambda disk: disk.unlink("f")), {}, {"f": b"x"})


def test_a_removed_file_whose_directory_was_synced_is_gone(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.unlink("f")
        disk.sync()

    same(left_by({"f": b"x"}, act), {})


def test_a_removed_directory_stays_away_or_comes_back_with_any_of_what_was_in_it(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.unlink("d/f")
        disk.rmdir("d")

    same(left_by({"d": None, "d/f": b"x"}, act), {"d": None, "d/f": b"x"}, {"d": None}, {})


def test_what_was_removed_from_a_directory_that_is_durably_gone_does_not_come_back(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.unlink("a/b/f")
        disk.rmdir("a/b")
        disk.rmdir("a")
        disk.sync()

    same(left_by({"a": None, "a/b": None, "a/b/f": b"x"}, act), {})


def test_what_was_moved_out_of_a_directory_that_is_durably_gone_is_where_it_was_moved_to(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.rename("a/f", "b/f")
        disk.sync("b")
        disk.rmdir("a")
        disk.sync()

    same(left_by({"a": None, "a/f": b"x", "b": None}, act), {"b": None, "b/f": b"x"})


def test_a_rename_leaves_one_of_the_two_names_and_never_both_or_none(left_by: LeftBy) -> None:
    same(left_by({"a": b"x"}, lambda disk: disk.rename("a", "b")), {"a": b"x"}, {"b": b"x"})


def test_a_rename_over_a_file_leaves_the_old_file_under_its_name_or_the_new_one(left_by: LeftBy) -> None:
    trees = left_by({"a": b"new", "b": b"old"}, lambda disk: disk.rename("a", "b"))
    same(trees, {"a": b"new", "b": b"old"}, {"b": b"new"})


@pytest.mark.parametrize("synced", [[], ["a"], ["b"]])
def test_a_rename_between_two_directories_is_durable_only_when_both_were_synced(
    left_by: LeftBy, synced: list[str]
) -> None:
    def act(disk: ByPath) -> None:
        disk.rename("a/d", "b/d")
        for path in synced:
            disk.sync(path)

    tree: Tree = {"a": None, "a/d": None, "a/d/f": b"x", "b": None}
    same(left_by(tree, act), tree, {"a": None, "b": None, "b/d": None, "b/d/f": b"x"})


def test_a_rename_between_two_directories_that_were_both_synced_is_kept(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.rename("a/f", "b/f")
        disk.sync("b")
        disk.sync("a")

    same(left_by({"a": None, "a/f": b"x", "b": None}, act), {"a": None, "b": None, "b/f": b"x"})


def test_a_file_with_two_names_keeps_each_by_itself_and_its_bytes_under_both(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.create("f", b"xy")
        disk.sync("f")
        disk.link("f", "d/g")
        disk.unlink("f")
        disk.sync()

    same(left_by({"d": None}, act), {"d": None}, {"d": None, "d/g": b"xy"})


def test_a_rename_from_one_name_of_a_file_to_its_other_leaves_both(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.link("f", "g")
        disk.barrier()
        disk.rename("f", "g")

    same(left_by({"f": b"x"}, act), {"f": b"x", "g": b"x"})


def test_a_file_with_two_names_is_one_file_on_the_disk_after_a_crash_too(tmp_path: Path) -> None:
    def act(disk: ByPath) -> None:
        disk.link("f", "g")
        disk.overwrite("g", b"new")
        disk.sync("f")
        disk.sync()

    recorder = run({"f": b"old"}, act, tmp_path / "root")
    (last,) = [state for state in crash_states(recorder.start, [*recorder.log, Done("all")]) if state.done]
    write_image(last.image, str(tmp_path / "after"))
    assert read_tree(str(tmp_path / "after")) == last.tree == {"f": b"new", "g": b"new"}
    assert (tmp_path / "after" / "f").samefile(tmp_path / "after" / "g")
    again = RecordingDisk(str(tmp_path / "after"))
    ByPath(again, str(tmp_path / "after")).overwrite("f", b"NEW")
    again.assert_nothing_else_changed()
    assert read_tree(str(tmp_path / "after")) == {"f": b"NEW", "g": b"NEW"}


def test_what_is_synced_into_a_new_directory_is_lost_with_the_name_of_the_directory(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.mkdir("d/new")
        disk.rename("f", "d/new/f")
        disk.sync("d/new")
        disk.sync()

    kept: Tree = {"d": None, "d/new": None, "d/new/f": b"x"}
    same(left_by({"d": None, "f": b"x"}, act), {"d": None}, kept)


def test_a_barrier_makes_everything_durable(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.mkdir("d")
        disk.create("d/f", b"abcd")
        disk.rename("old", "d/moved")
        disk.unlink("gone")
        disk.barrier()

    expected: Tree = {"d": None, "d/f": b"abcd", "d/moved": b"1"}
    same(left_by({"old": b"1", "gone": b"2"}, act), expected)


def test_a_barrier_of_one_disk_leaves_the_other_pending(tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    write_tree({"one": None, "two": None}, root)
    recorder = RecordingDisk(root, ("one", "two"))
    disk = ByPath(recorder, root)
    disk.create("one/f")
    disk.create("two/f")
    disk.barrier("one")
    states = crash_states(recorder.start, [*recorder.log, Done("all")])
    same(
        [state.tree for state in states if state.done],
        {"one": None, "one/f": b"", "two": None},
        {"one": None, "one/f": b"", "two": None, "two/f": b""},
    )


def test_no_rename_and_no_link_leads_from_one_disk_to_another(tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    write_tree({"one": None, "one/f": b"x", "two": None}, root)
    by_path = ByPath(RecordingDisk(root, ("one", "two")), root)
    for step in (by_path.rename, by_path.link):
        with pytest.raises(OSError, match="cross-device"):
            step("one/f", "two/f")


def test_a_name_that_was_freed_and_taken_again_holds_the_old_file_the_new_one_or_nothing(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.unlink("f")
        disk.create("f")

    same(left_by({"f": b"old"}, act), {"f": b"old"}, {}, {"f": b""})


def test_a_directory_never_takes_the_place_of_one_that_came_back_with_something_in_it(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.rename("d", "e")
        disk.mkdir("d")
        disk.create("d/new")
        disk.sync("d")

    old: Tree = {"d": None, "d/f": b"x"}
    moved: Tree = {"e": None, "e/f": b"x"}
    same(left_by(old, act), old, moved, {**moved, "d": None, "d/new": b""})


def test_two_directories_never_end_up_inside_each_other(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.rename("a/b", "b")
        disk.rename("a", "b/a")

    start: Tree = {"a": None, "a/b": None}
    same(left_by(start, act), start, {"a": None, "b": None}, {"b": None, "b/a": None})


def test_the_order_of_pending_changes_binds_nothing(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        disk.create("first")
        disk.create("second")

    same(left_by({}, act), {}, {"first": b""}, {"second": b""}, {"first": b"", "second": b""})


def test_an_inode_that_is_used_again_is_not_taken_for_what_had_it_before(left_by: LeftBy) -> None:
    def act(disk: ByPath) -> None:
        for number in range(20):
            disk.create(f"f{number}", b"x")
            disk.unlink(f"f{number}")
        disk.create("last", b"y")
        disk.sync("last")
        disk.sync()

    same(left_by({}, act), {"last": b"y"})


def test_each_state_comes_with_what_was_done_by_the_crash(tmp_path: Path) -> None:
    disk = RecordingDisk(str(tmp_path))
    ByPath(disk, str(tmp_path)).mkdir("d")
    disk.done("d is there")
    states = list(crash_states(disk.start, disk.log))
    assert [(state.steps, sorted(state.tree), state.done) for state in states] == [
        (0, [], ()),
        (1, ["d"], ()),
        (2, ["d"], ("d is there",)),
        (2, [], ("d is there",)),
    ]


def test_no_state_is_given_twice(tmp_path: Path) -> None:
    def act(disk: ByPath) -> None:
        for name in "abc":
            disk.create(name, b"xy")
            disk.unlink(name)

    disk = run({}, act, tmp_path / "root")
    keys = [state.key for state in crash_states(disk.start, disk.log)]
    assert len(keys) == len(set(keys)) > 20


def test_what_a_log_that_begins_the_same_has_left_and_the_moments_after_that_are_all_states(tmp_path: Path) -> None:
    def act(disk: ByPath) -> None:
        for name in "abc":
            disk.create(name, b"xy")
            disk.sync(name)
            disk.unlink(name)
        disk.sync()

    disk = run({}, act, tmp_path / "root")
    log = [*disk.log[:5], Done("half"), *disk.log[5:]]
    every = {state.key for state in crash_states(disk.start, log)}
    for shared in range(len(log) + 1):
        known = {state.key for state in crash_states(disk.start, log[:shared])}
        assert known | {state.key for state in crash_states(disk.start, log, first=shared + 1)} == every
    assert not list(crash_states(disk.start, log, first=len(log) + 1))
