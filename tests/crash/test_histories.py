"""The drivers themselves: a wrong history is found out, and reported so that a reader can see why."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from logstore import ChangeFailedError
from logstore.fs import Disk
from tests.crash.by_path import ByPath
from tests.crash.failing_disk import FailingDisk
from tests.crash.histories import NUMBERS, Done, Driver, History, Tried, WrongError
from tests.crash.images import read_tree
from tests.crash.recording_disk import RecordingDisk


def moves_between(root: str, disk: Disk, done: Done) -> None:
    by_path = ByPath(disk, root)
    by_path.rename("a/f", "b/f")
    by_path.sync("b")
    by_path.sync("a")
    done("moved")


def one_file(root: str, done: tuple[str, ...]) -> None:
    places = [path for path, what in read_tree(root).items() if what == b"x"]
    if places != ["b/f"] and (done or places != ["a/f"]):
        raise AssertionError(f"the file is in {places}")


def build(root: str) -> None:
    by_path = ByPath(Disk(), root)
    by_path.mkdir("a")
    by_path.mkdir("b")
    by_path.create("a/f", b"x")


RIGHT = History("a right one", build, moves_between, one_file)


def test_a_right_history_is_tried_in_all_its_states(crash: Driver, fail: Driver) -> None:
    assert crash(RIGHT) == Tried(steps=4, cases=3)
    assert fail(RIGHT) == Tried(steps=3, cases=4 * 2 * 3 + 2)


def test_every_primitive_of_a_disk_is_recorded_and_can_fail() -> None:
    # A name that is drawn changes nothing and cannot fail.
    primitives = {name for name, what in vars(Disk).items() if callable(what) and name[0] != "_"} - {"unique"}
    assert primitives - vars(FailingDisk).keys() == set()
    assert primitives - vars(RecordingDisk).keys() == {"open_to_change", "set_modified"}, "a tree has no times"


def test_the_story_of_a_crash_has_the_steps_the_loss_the_tree_and_the_reason(crash: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        by_path = ByPath(disk, root)
        by_path.rename("a/f", "b/f")
        by_path.sync("b")
        done("moved")

    with pytest.raises(WrongError) as raised:
        crash(replace(RIGHT, act=act))
    assert str(raised.value).splitlines() == [
        "",
        "crash of 'a right one' after 3 of 3 steps; 1 lost:",
        "    1 rename a/f -> b/f    <-- LOST",
        "    2 sync b",
        "    3 -- done: moved --",
        "what lay there then:",
        "  a/",
        "  a/f  1 bytes 'x'",
        "  b/",
        "",
        "AssertionError: the file is in ['a/f']",
    ]


def test_a_change_that_passes_by_the_disk_is_found_out(crash: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        os.unlink(f"{root}/a/f")

    with pytest.raises(AssertionError, match="changed without the disk"):
        crash(replace(RIGHT, act=act))


def test_a_file_that_was_made_without_the_disk_cannot_be_synced_in_secret(crash: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        with open(f"{root}/a/secret", "wb"):
            ByPath(disk, root).sync("a/secret")

    with pytest.raises(AssertionError, match="was made without the disk"):
        crash(replace(RIGHT, act=act))


def test_a_second_restart_that_changes_something_is_found_out(crash: Driver) -> None:
    def recover(root: str, disk: Disk) -> None:
        by_path = ByPath(disk, root)
        by_path.create(f"restart {len(os.listdir(root))}")
        by_path.sync()

    with pytest.raises(WrongError, match="a second restart, or the check, changed something"):
        crash(replace(RIGHT, recover=recover))


def restarts_in_two_steps(root: str, disk: Disk) -> None:
    """Bring ``b/f`` back to ``a/f`` by way of a name that another restart does not know."""
    by_path = ByPath(disk, root)
    if os.path.exists(f"{root}/b/f"):
        by_path.rename("b/f", "a/half")
        by_path.rename("a/half", "a/f")
        by_path.sync("a")
        by_path.sync("b")


def at_a(root: str, done: tuple[str, ...]) -> None:
    if "a/f" not in read_tree(root):
        raise AssertionError("the restart lost its way")


def test_a_crash_of_the_restart_is_tried_as_well(crash: Driver) -> None:
    history = replace(RIGHT, recover=restarts_in_two_steps, check=at_a)
    crash(history, crashes=1)
    with pytest.raises(WrongError, match=r"(?s)restarted, and crashed again after 1 of 4 steps.*a/half.*lost its way"):
        crash(history)


def test_a_restart_that_fails_is_reported_with_the_crash_before_it(crash: Driver) -> None:
    def recover(root: str, disk: Disk) -> None:
        if not os.path.exists(f"{root}/a/f"):
            raise OSError(errno.ENOENT, "nothing to restart from")

    with pytest.raises(WrongError, match=r"(?s)rename a/f -> b/f.*nothing to restart from"):
        crash(replace(RIGHT, recover=recover))


def writes_in_place(root: str, disk: Disk, done: Done) -> None:
    ByPath(disk, root).overwrite("a/f", b"longer", keep=0)
    done("written")


def test_what_is_half_done_after_a_failure_is_found_out(fail: Driver) -> None:
    with pytest.raises(
        WrongError, match=r"(?s)step 3 \(write\) failed with ENOSPC; done before: nothing.*3 bytes 'lon'"
    ):
        fail(replace(RIGHT, act=writes_in_place))


def test_a_restart_may_mend_what_a_failure_left(fail: Driver) -> None:
    def recover(root: str, disk: Disk) -> None:
        ByPath(disk, root).overwrite("a/f", b"x", keep=0)

    fail(replace(RIGHT, act=writes_in_place, recover=recover, check=at_a))


def test_where_there_are_many_right_ends_the_check_decides(fail: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        by_path = ByPath(disk, root)
        by_path.mkdir("a/new")
        moves_between(root, disk, done)

    with pytest.raises(WrongError, match=r"(?s)step 2 \(rename\).*neither what was before"):
        fail(replace(RIGHT, act=act))
    fail(replace(RIGHT, act=act, many_ends=True))
    with pytest.raises(WrongError, match=r"(?s)after a restart this is wrong.*the restart lost its way"):
        fail(replace(RIGHT, act=act, many_ends=True, check=at_a))


def test_a_restart_after_a_failure_is_checked_too(fail: Driver) -> None:
    def check(root: str, done: tuple[str, ...]) -> None:
        if not done:
            raise AssertionError("this was never done")

    with pytest.raises(WrongError, match=r"(?s)step 1 \(rename\).*after a restart this is wrong:.*never done"):
        fail(replace(RIGHT, check=check))


def test_what_is_not_counted_or_left_over_does_not_count(fail: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        by_path = ByPath(disk, root)
        by_path.mkdir("a/new")
        try:
            by_path.rename("a/f", "b/f")
        except OSError:
            by_path.rmdir("a/new")
            raise
        done("moved")

    history = replace(RIGHT, act=act)
    with pytest.raises(WrongError, match=r"(?s)step 2 \(rename\) failed with EIO, for good.*\+ a/new/"):
        fail(history)
    fail(replace(history, leftover=lambda path: path == "a/new"))
    fail(replace(history, counted=lambda tree: {path: tree[path] for path in tree if path != "a/new"}))


def test_an_error_that_the_history_does_not_allow_is_found_out(fail: Driver) -> None:
    errors = dict.fromkeys(NUMBERS, ChangeFailedError)
    with pytest.raises(WrongError, match=r"step 1 \(rename\) failed with ENOSPC.*(?s:.*)raised OSError\(28"):
        fail(replace(RIGHT, errors=errors))


def raising(text: str) -> Callable[[str, Disk, Done], None]:
    def act(root: str, disk: Disk, done: Done) -> None:
        try:
            moves_between(root, disk, done)
        except OSError as error:
            raise ChangeFailedError(text or str(error)) from error

    return act


def test_an_error_has_to_be_a_sentence_and_not_the_systems_number(fail: Driver) -> None:
    errors = dict.fromkeys(NUMBERS, ChangeFailedError)
    fail(replace(RIGHT, act=raising("the file could not be moved: no space"), errors=errors))
    for text in ("", "failed"):
        with pytest.raises(WrongError, match="that is no clear sentence"):
            fail(replace(RIGHT, act=raising(text), errors=errors))


def test_a_sync_that_failed_and_is_taken_for_done_is_found_out(crash: Driver, crash_after_failure: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        by_path = ByPath(disk, root)
        by_path.rename("a/f", "b/f")
        by_path.sync("b")
        with suppress(OSError):
            by_path.sync("a")
        done("moved")

    crash(replace(RIGHT, act=act))
    crash_after_failure(RIGHT)
    with pytest.raises(WrongError, match=r"(?s)failure of step 3 \(sync\).*and crash.*LOST.*the file is in"):
        crash_after_failure(replace(RIGHT, act=act))


def test_an_error_without_a_failure_is_found_out(fail: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        moves_between(root, disk, done)
        if isinstance(disk, FailingDisk):
            raise ChangeFailedError("the disk looked at me in a strange way")

    with pytest.raises(WrongError, match="no step failed"):
        fail(replace(RIGHT, act=act, errors=dict.fromkeys(NUMBERS, Exception)))


def test_an_error_that_was_not_reported_is_found_out(fail: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        try:
            moves_between(root, disk, done)
        except OSError:
            return

    with pytest.raises(WrongError, match=r"(?s)step 1 \(rename\).*raised None.*neither what was before"):
        fail(replace(RIGHT, act=act))


def test_a_descriptor_that_is_left_open_is_found_out(fail: Driver) -> None:
    left: list[int] = []

    def act(root: str, disk: Disk, done: Done) -> None:
        descriptor = os.open(root, os.O_RDONLY)
        left.append(descriptor)
        moves_between(root, disk, done)
        os.close(left.pop())

    with pytest.raises(WrongError, match=r"left open: \d+ /"):
        fail(replace(RIGHT, act=act))
    os.close(left.pop())


def test_a_disk_that_stays_full_still_removes_and_one_that_stays_broken_does_nothing(tmp_path: Path) -> None:
    build(str(tmp_path))
    for number, steps in ((errno.ENOSPC, ["unlink"]), (errno.EIO, [])):
        by_path = ByPath(FailingDisk(0, number, lasting=True), str(tmp_path))
        taken = []
        for step in ("mkdir", "create", "mkdir", "unlink"):
            try:
                getattr(by_path, step)("a/f" if step == "unlink" else "new")
                taken.append(step)
            except OSError as error:
                assert error.errno == number
        assert taken == steps


def test_only_a_rename_leads_to_another_device(tmp_path: Path) -> None:
    build(str(tmp_path))
    disk = FailingDisk(0, errno.EXDEV)
    by_path = ByPath(disk, str(tmp_path))
    by_path.create("new")
    assert disk.failed is None
    with pytest.raises(OSError, match="cross-device"):
        by_path.rename("new", "a/new")
    assert disk.failed == "rename"


def test_a_full_disk_takes_the_first_half_of_what_is_written(tmp_path: Path) -> None:
    by_path = ByPath(FailingDisk(1, errno.ENOSPC), str(tmp_path))
    with pytest.raises(OSError, match="No space"):
        by_path.create("f", b"abcdef")
    assert read_tree(str(tmp_path)) == {"f": b"abc"}
