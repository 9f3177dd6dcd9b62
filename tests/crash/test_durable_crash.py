"""Every promise of ``logstore.fs.durable`` at every crash; and that each sync in it is needed for one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from logstore.fs import Batch, Directory, Disk, durable
from logstore.tunables import FILES_SYNCED_ALONE
from tests.crash.broken_disks import NoDirectorySynced, NoFileSynced, NothingSynced, OneSyncLeftOut, without_sync
from tests.crash.by_path import ByPath
from tests.crash.histories import Done, Driver, History, WrongError
from tests.crash.images import Tree, read_tree, write_tree

OLD, NEW = b"old bytes", b"new and longer bytes"
DRAFT = f"f{durable.TEMPORARY}"


def built(tree: Tree) -> Callable[[str], None]:
    def build(root: str) -> None:
        os.rmdir(root)
        write_tree(tree, root)

    return build


def content(root: str, path: str) -> bytes | None:
    found = read_tree(root).get(path)
    assert found is None or isinstance(found, bytes)
    return found


def replaces(root: str, disk: Disk, done: Done) -> None:
    with Directory.open(root) as parent:
        durable.replace_file(disk, parent, "f", NEW)
    done("replaced")


def removes_the_leftover(root: str, disk: Disk) -> None:
    with Directory.open(root) as parent:
        durable.remove_file(disk, parent, DRAFT)


def old_or_new(root: str, done: tuple[str, ...]) -> None:
    assert content(root, "f") in ([NEW] if done else [OLD, NEW])


def creates(root: str, disk: Disk, done: Done) -> None:
    with Directory.open(root) as parent:
        durable.write_new_file(disk, parent, "f", NEW, durable=True)
    done("written")


def there_once_done(root: str, done: tuple[str, ...]) -> None:
    if done:
        assert content(root, "f") == NEW


def makes_directories(root: str, disk: Disk, done: Done) -> None:
    with Directory.open(root) as top, durable.make_directory(disk, top, "a") as a:
        done("a")
        with durable.make_directory(disk, a, "a") as b:
            done("a/a")
            durable.write_new_file(disk, b, "f", NEW, durable=True)
            done("a/a/f")


def what_was_made_is_there(root: str, done: tuple[str, ...]) -> None:
    tree = read_tree(root)
    assert set(done) <= tree.keys()
    assert "a/a/f" not in done or tree["a/a/f"] == NEW


def moves(root: str, disk: Disk, done: Done) -> None:
    with Directory.open(root) as top, top.child("here") as here, top.child("there") as there:
        durable.rename_exclusively(disk, here, "d", there, "e")
        durable.sync_all(disk, [there, here])
    done("moved")


def in_one_of_two_places(root: str, done: tuple[str, ...]) -> None:
    places = [path for path in ("here/d/f", "there/e/f") if content(root, path) == OLD]
    assert places == ["there/e/f"] if done else len(places) == 1


def removes_a_tree(root: str, disk: Disk, done: Done) -> None:
    with Directory.open(root) as top:
        durable.remove_tree(disk, top, "d")
        disk.sync(top.descriptor)
    done("removed")


def gone_once_done(root: str, done: tuple[str, ...]) -> None:
    tree = read_tree(root)
    assert tree["kept"] == OLD
    assert "d" not in tree or not done


def removes_it_again(root: str, disk: Disk) -> None:
    if os.path.lexists(f"{root}/d"):
        removes_a_tree(root, disk, lambda text: None)


def is_f(path: str) -> bool:
    return path.endswith("f")


def removes_a_file(root: str, disk: Disk, done: Done) -> None:
    with Directory.open(root) as top:
        durable.remove_file(disk, top, "d")
    done("removed")


def writes_many(root: str, disk: Disk, done: Done) -> None:
    with Directory.open(root) as top, top.child("a") as a, top.child("b") as b:
        for parent in (a, b):
            durable.write_new_file(disk, parent, "f", NEW, durable=False)
            done("one more is written")
        durable.barrier(disk, top, [a, b])
        done("all are durable")


def all_are_durable(root: str, done: tuple[str, ...]) -> None:
    if "all are durable" in done:
        assert content(root, "a/f") == content(root, "b/f") == NEW


def replaces_together(number: int) -> Callable[[str, Disk, Done], None]:
    """All files but the last are replaced, and the last is removed."""

    def act(root: str, disk: Disk, done: Done) -> None:
        with Directory.open(root) as top, Batch(disk, top) as batch:
            batch.replace([*((path, NEW) for path in files(number)[:-1]), (files(number)[-1], None)])
        done("replaced")

    return act


def files(number: int) -> list[str]:
    return [f"{'ab'[each % 2]}/{each}" for each in range(number)]


def each_old_or_new(number: int) -> Callable[[str, tuple[str, ...]], None]:
    def check(root: str, done: tuple[str, ...]) -> None:
        for path, new in zip(files(number), [NEW] * (number - 1) + [None], strict=True):
            assert content(root, path) in ([new] if done else [OLD, new])

    return check


def together(number: int) -> History:
    return History(
        f"replace {number} files together",
        built({"a": None, "b": None, **dict.fromkeys(files(number), OLD)}),
        replaces_together(number),
        each_old_or_new(number),
        many_ends=True,
    )


TREE: Tree = {"d": None, "d/e": None, "d/e/f": OLD, "d/g": OLD, "kept": OLD}

REPLACE = History("replace a file", built({"f": OLD}), replaces, old_or_new, leftover=lambda path: path == DRAFT)
REPLACE_WITH_LEFTOVER = replace(
    REPLACE, name="replace, with a leftover", build=built({"f": OLD, DRAFT: b"half"}), recover=removes_the_leftover
)
WRITE_NEW = History("write a new file", built({}), creates, there_once_done, leftover=is_f)
MAKE = History("make directories", built({}), makes_directories, what_was_made_is_there, leftover=is_f)
MOVE = History(
    "move", built({"here": None, "here/d": None, "here/d/f": OLD, "there": None}), moves, in_one_of_two_places
)
REMOVE_TREE = History("remove a tree", built(TREE), removes_a_tree, gone_once_done)
REMOVE_FILE = History("remove a file", built({"d": NEW, "kept": OLD}), removes_a_file, gone_once_done)
MANY = History("write many files", built({"a": None, "b": None}), writes_many, all_are_durable, leftover=is_f)

FEW_TOGETHER, MANY_TOGETHER = together(3), together(FILES_SYNCED_ALONE + 2)

HISTORIES = [
    *(REPLACE, REPLACE_WITH_LEFTOVER, WRITE_NEW, MAKE, MOVE, REMOVE_TREE, REMOVE_FILE, MANY),
    *(FEW_TOGETHER, MANY_TOGETHER),
]


by_name = pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)


@by_name
def test_whatever_a_crash_leaves_every_promise_is_kept(history: History, crash: Driver) -> None:
    assert crash(history).cases > 1


@by_name
def test_whatever_a_crash_leaves_after_a_step_has_failed_every_promise_is_kept(
    history: History, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(history).cases > 1


@by_name
def test_a_disk_that_syncs_nothing_is_found_out(history: History, crash: Driver) -> None:
    with pytest.raises(WrongError, match="LOST"):
        crash(history, recorder=NothingSynced)


@pytest.mark.parametrize(
    ("history", "count"),
    [
        *((REPLACE, 2), (WRITE_NEW, 2), (MAKE, 4), (MOVE, 2), (REMOVE_FILE, 1), (MANY, 1)),
        *((FEW_TOGETHER, 4), (MANY_TOGETHER, 3)),
    ],
)
def test_each_sync_is_needed_for_a_promise(history: History, count: int, crash: Driver) -> None:
    """Leave out one after the other; the one after the last is not there, so leaving it out harms nothing."""
    for number in range(count):
        with pytest.raises(WrongError, match="LOST"):
            crash(history, recorder=without_sync(number))
    crash(history, recorder=without_sync(count))


def test_without_a_barrier_each_file_and_each_directory_is_synced_by_itself(crash: Driver) -> None:
    class WithoutBarrier(OneSyncLeftOut):
        left_out = -1

        def sync_file_system(self, descriptor: int) -> bool:
            return False

    crash(MANY, recorder=WithoutBarrier)
    for number in range(4):
        broken = type("Broken", (WithoutBarrier,), {"left_out": number})
        with pytest.raises(WrongError, match="LOST"):
            crash(MANY, recorder=broken)


def test_a_file_that_is_renamed_before_its_bytes_are_synced_is_found_to_be_empty(crash: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        by_path = ByPath(disk, root)
        by_path.create(DRAFT, NEW)
        by_path.rename(DRAFT, "f")
        by_path.sync("f")
        by_path.sync()
        done("replaced")

    with pytest.raises(WrongError, match=r"f  0 bytes ''"):
        crash(replace(REPLACE, act=act))
    with pytest.raises(WrongError, match=r"f  0 bytes ''"):
        crash(REPLACE, recorder=NoFileSynced)


def test_a_replaced_file_whose_directory_is_not_synced_is_found_to_be_the_old_one(crash: Driver) -> None:
    with pytest.raises(WrongError, match=r"rename f.logstore.tmp -> f +<-- LOST"):
        crash(REPLACE, recorder=NoDirectorySynced)


def test_a_file_that_is_removed_without_a_sync_is_found_to_come_back(crash: Driver) -> None:
    def act(root: str, disk: Disk, done: Done) -> None:
        with Directory.open(root) as top:
            durable.remove_file(disk, top, "d", durable=False)
        done("removed")

    with pytest.raises(WrongError, match=r"unlink d +<-- LOST"):
        crash(replace(REMOVE_FILE, act=act))


@by_name
def test_whichever_step_fails_nothing_is_half_done_once_a_tree_was_removed_again(
    history: History, fail: Driver
) -> None:
    if history is REMOVE_TREE:
        history = replace(REMOVE_TREE, recover=removes_it_again)
    tried = fail(history)
    assert tried.cases > 4 * tried.steps
