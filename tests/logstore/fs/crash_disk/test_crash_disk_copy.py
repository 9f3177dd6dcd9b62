"""A copy of a disk holds the same under other inodes, and what waits aside goes with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from logstore.fs.crash_disk import inodes_below
from reconciler.simulator.machine import MachineDisks
from tests.crash.by_path import ByPath
from tests.crash.images import digest, read_image, read_tree
from tests.reconciler.simulator.machine.disk_folders import Fresh, fresh_folders


@pytest.fixture
def fresh() -> Iterator[Fresh]:
    yield from fresh_folders()


def test_a_disk_that_is_back_holds_what_it_held_in_other_files(fresh: Fresh) -> None:
    disks = MachineDisks(fresh(), 1)
    mounted = f"{disks.root}/disk-1"
    disk = ByPath(disks.disk, mounted)
    disk.mkdir("d")
    disk.create("d/f", b"x")
    disk.link("d/f", "g")
    disk.barrier()
    before, inodes = read_image(mounted)[0], inodes_below(mounted)
    assert len(inodes) == 3
    with open(f"{mounted}/g", "rb") as still_open:
        disks.fail(0, Random(1))
        disks.come_back(0)
        assert read_image(mounted)[0].tree() == before.tree()
        assert os.stat(f"{mounted}/g").st_ino == os.stat(f"{mounted}/d/f").st_ino
        assert not inodes & inodes_below(mounted)
        disk.overwrite("g", b"new")
        assert still_open.read() == b"x"
    assert read_tree(mounted)["d/f"] == b"new"
    disks.close()


def test_what_was_removed_and_not_synced_may_come_back_with_a_disk_that_failed(fresh: Fresh) -> None:
    found = set()
    for seed in range(20):
        disks = MachineDisks(fresh(), 1)
        disk = ByPath(disks.disk, f"{disks.root}/disk-1")
        disk.create("f", b"x")
        disk.barrier()
        disk.unlink("f")
        disks.fail(0, Random(seed))
        disks.come_back(0)
        found.add(digest(read_tree(f"{disks.root}/disk-1")))
        disks.close()
    assert found == {digest({}), digest({"f": b"x"})}
