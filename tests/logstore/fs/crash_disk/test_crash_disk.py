"""A disk that forgets what was not synced: what it draws, and restores in place, is what the crash tests try."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest

from logstore.fs import Directory
from logstore.fs.crash_disk import MachineDisks
from tests.crash.by_path import ByPath
from tests.crash.crash_states import crash_states
from tests.crash.images import Tree, digest, read_image, read_tree, write_image
from tests.crash.recording_disk import RecordingDisk
from tests.crash.steps import Done
from tests.logstore.fs.crash_disk.random_steps import Step, build, did, left, random_steps, random_tree
from tests.reconciler.simulator.machine.disk_folders import Fresh

BOUND = 1 << 14
BATCHES, PER_BATCH, STEPS = 8, 60, 14


def allowed(tree: Tree, steps: list[Step], root: str) -> tuple[set[bytes], list[str]]:
    """Every state that the model has after the last step, and how each step ended."""
    by_path = ByPath(RecordingDisk(root), root)
    for step in build(tree):
        step(by_path)
    return allowed_from(root, steps)


def allowed_from(root: str, steps: list[Step]) -> tuple[set[bytes], list[str]]:
    """The same for what lies in a folder."""
    disk = RecordingDisk(root)
    ended = [did(step, ByPath(disk, root)) for step in steps]
    disk.assert_nothing_else_changed()
    states = crash_states(disk.start, [*disk.log, Done("all")], BOUND)
    return {digest(state.tree) for state in states if state.done}, ended


def crashed(tree: Tree, steps: list[Step], root: str, random: Random) -> tuple[Tree, Tree, list[str], MachineDisks]:
    """What lies there before and after a crash, and how each step ended."""
    disks = MachineDisks(root, 1)
    mounted = os.path.dirname(disks.log_dirs[0])
    by_path = ByPath(disks.disk, mounted)
    for step in build(tree):
        step(by_path)
    ended = [did(step, by_path) for step in steps]
    before = left(mounted)
    disks.crash(random)
    return before, left(mounted), ended, disks


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_state_after_a_random_history_is_one_that_the_model_allows(batch: int, fresh: Fresh) -> None:
    lost = 0
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        random = Random(seed)
        tree, steps = random_tree(random), random_steps(random, STEPS)
        states, ended = allowed(tree, steps, fresh())
        for _ in range(4):
            before, after, ended_here, disks = crashed(tree, steps, fresh(), random)
            disks.close()
            assert ended_here == ended, f"seed {seed}"
            assert digest(after) in states, f"seed {seed}: {after}"
            lost += before != after
    assert lost > PER_BATCH / 2


@pytest.mark.parametrize("seed", range(5))
def test_a_disk_that_has_crashed_goes_on_and_crashes_again_as_the_model_allows(seed: int, fresh: Fresh) -> None:
    random = Random(f"again {seed}")
    for _ in range(20):
        first, second = random_steps(random, STEPS), random_steps(random, 6)
        _, _, _, disks = crashed(random_tree(random), first, fresh(), random)
        mounted, copy = os.path.dirname(disks.log_dirs[0]), f"{fresh()}/copy"
        write_image(read_image(mounted)[0], copy)
        states, ended = allowed_from(copy, second)
        assert [did(step, ByPath(disks.disk, mounted)) for step in second] == ended
        disks.crash(random)
        assert digest(left(mounted)) in states
        assert os.listdir(f"{disks.root}/.unlinked/1") == []
        disks.close()


def write_over(disk: ByPath) -> None:
    disk.overwrite("f", b"WXYZ", keep=3)


def replace(disk: ByPath) -> None:
    disk.create("f.tmp", b"new")
    disk.sync("f.tmp")
    disk.rename("f.tmp", "f")


def replace_unsynced(disk: ByPath) -> None:
    disk.create("f.tmp", b"new")
    disk.rename("f.tmp", "f")


def remove(disk: ByPath) -> None:
    disk.unlink("d/x")
    disk.unlink("d/y")
    disk.rmdir("d")


def move(disk: ByPath) -> None:
    disk.mkdir("e")
    disk.rename("d/x", "e/x")
    disk.sync("e")


def move_and_sync_one_side(disk: ByPath) -> None:
    disk.mkdir("e")
    disk.rename("d/x", "e/x")
    disk.sync("d")


def move_directory(disk: ByPath) -> None:
    disk.create("d/z", b"z")
    disk.mkdir("e")
    disk.rename("d", "e/d")


def remove_one_of_two_names(disk: ByPath) -> None:
    disk.link("f", "g")
    disk.unlink("f")


def remove_both_names(disk: ByPath) -> None:
    disk.link("f", "g")
    disk.sync()
    disk.unlink("f")
    disk.unlink("g")


def use_a_name_again(disk: ByPath) -> None:
    disk.unlink("f")
    disk.create("f", b"second")
    disk.unlink("d/x")
    disk.mkdir("d/x")


@pytest.mark.parametrize(
    "step",
    [
        *(write_over, replace, replace_unsynced, remove, move, move_and_sync_one_side, move_directory),
        *(remove_one_of_two_names, remove_both_names, use_a_name_again),
    ],
    ids=lambda step: step.__name__,
)
def test_every_state_that_the_model_allows_is_drawn_sooner_or_later(step: Step, fresh: Fresh) -> None:
    tree: Tree = {"f": b"abcdef", "d": None, "d/x": b"x", "d/y": b"y"}
    states, _ = allowed(tree, [step], fresh())
    assert len(states) > 1
    found = set()
    for seed in range(3000):
        _, after, _, disks = crashed(tree, [step], fresh(), Random(seed))
        disks.close()
        found.add(digest(after))
        if found == states:
            break
    assert found == states


def test_what_was_synced_is_never_lost(fresh: Fresh) -> None:
    def act(disk: ByPath) -> None:
        disk.create("f", b"abc")
        disk.sync("f")
        disk.sync()

    for seed in range(30):
        _, after, _, disks = crashed({}, [act], fresh(), Random(seed))
        disks.close()
        assert after == {"f": b"abc"}


def test_one_seed_leaves_one_state(fresh: Fresh) -> None:
    random = Random(5)
    steps = random_steps(random, 12)
    trees = [crashed({"a": b"x"}, steps, fresh(), Random(9))[1] for _ in range(3)]
    assert trees[0] == trees[1] == trees[2]


def test_no_orphan_is_kept_once_all_is_durable(fresh: Fresh) -> None:
    disks = MachineDisks(fresh(), 1)
    mounted = os.path.dirname(disks.log_dirs[0])
    disk = ByPath(disks.disk, mounted)
    disk.create("f", b"x")
    disk.unlink("f")
    assert os.listdir(f"{disks.root}/.unlinked/1") == ["1"]
    disk.sync()
    assert os.listdir(f"{disks.root}/.unlinked/1") == []
    disks.close()


def test_each_disk_is_a_file_system_of_its_own(fresh: Fresh) -> None:
    disks = MachineDisks(fresh(), 2)
    disk = ByPath(disks.disk, disks.root)
    disk.create("disk-1/f", b"x")
    for act in (disk.rename, disk.link):
        with pytest.raises(OSError) as caught:
            act("disk-1/f", "disk-2/f")
        assert caught.value.errno == errno.EXDEV
    # A barrier on one disk says nothing of the other.
    disk.create("disk-2/f", b"y")
    disk.barrier("disk-2")
    left_by = set()
    for seed in range(10):
        again = MachineDisks(fresh(), 2)
        both = ByPath(again.disk, again.root)
        both.create("disk-1/f", b"x")
        both.create("disk-2/f", b"y")
        both.barrier("disk-2")
        again.crash(Random(seed))
        assert left(f"{again.root}/disk-2") == {"f": b"y"}
        left_by.add(digest(read_tree(f"{again.root}/disk-1")))
        again.close()
    assert len(left_by) > 1
    disks.close()


def test_what_was_made_without_the_disk_is_a_mistake_of_the_program(fresh: Fresh) -> None:
    disks = MachineDisks(fresh(), 1)
    mounted = os.path.dirname(disks.log_dirs[0])
    Path(mounted, "stranger").mkdir()
    with pytest.raises(RuntimeError, match=r"stranger was made without the disks of this machine"):
        ByPath(disks.disk, mounted).create("stranger/f")
    Path(mounted, "file").touch()
    with pytest.raises(RuntimeError, match=r"'file' was made without"):
        ByPath(disks.disk, mounted).unlink("file")
    disks.close()


def test_each_change_is_counted_before_it_is_made(fresh: Fresh) -> None:
    class Stopped(BaseException):
        pass

    left_to_do = 2

    def passes() -> None:
        nonlocal left_to_do
        if left_to_do == 0:
            raise Stopped
        left_to_do -= 1

    disks = MachineDisks(fresh(), 1, passes)
    with Directory.open(f"{disks.root}/disk-1") as mounted:
        disks.disk.mkdir(mounted.descriptor, "a")
        disks.disk.sync(mounted.descriptor)
        for _ in range(2):
            with pytest.raises(Stopped):
                disks.disk.mkdir(mounted.descriptor, "b")
    assert os.listdir(f"{disks.root}/disk-1") == ["a"]
    disks.close()
