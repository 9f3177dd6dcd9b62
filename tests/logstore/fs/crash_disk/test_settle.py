"""Settling costs what was not synced, works in place, and leaves no orphan. test_crash_disk checks the states."""

from __future__ import annotations

import os
from random import Random

from logstore.fs.crash_disk import MachineDisks, Volume
from logstore.fs.crash_disk.settle import settle
from tests.crash.by_path import ByPath
from tests.crash.images import read_tree
from tests.reconciler.simulator.machine.disk_folders import Fresh


class LosesAll(Random):
    """Loses all that can be lost."""

    def random(self) -> float:
        return 0.0

    def choice(self, seq):  # type: ignore[no-untyped-def]
        return seq[1] if len(seq) > 1 else seq[0]


class KeepsAll(LosesAll):
    """Loses nothing."""

    def random(self) -> float:
        return 1.0

    def choice(self, seq):  # type: ignore[no-untyped-def]
        return seq[-1] if isinstance(seq[0], float) else seq[0]


def volume_of(disks: MachineDisks) -> Volume:
    with ByPath(disks.disk, disks.root).directory("disk-1") as mounted:
        return disks.disk._places[os.fstat(mounted.descriptor).st_ino][0]


def test_what_was_synced_stays_the_same_file(fresh: Fresh) -> None:
    disks = MachineDisks(fresh(), 1)
    disk = ByPath(disks.disk, f"{disks.root}/disk-1")
    disk.mkdir("d")
    disk.create("d/f", b"x")
    disk.barrier()
    inode = os.stat(f"{disks.root}/disk-1/d/f").st_ino
    disk.rename("d", "e")
    settle(volume_of(disks), LosesAll(1))
    assert read_tree(f"{disks.root}/disk-1") == {"d": None, "d/f": b"x"}
    assert os.stat(f"{disks.root}/disk-1/d/f").st_ino == inode
    disks.close()


def test_all_is_lost_or_all_is_kept(fresh: Fresh) -> None:
    for random, expected in (
        (LosesAll(1), {"d": None, "d/f": b"x"}),
        (KeepsAll(1), {"e": None, "e/g": b"new", "e/h": b"x"}),
    ):
        disks = MachineDisks(fresh(), 1)
        disk = ByPath(disks.disk, f"{disks.root}/disk-1")
        disk.mkdir("d")
        disk.create("d/f", b"x")
        disk.barrier()
        disk.mkdir("e")
        disk.create("e/g", b"new")
        disk.rename("d/f", "e/h")
        disk.rmdir("d")
        settle(volume_of(disks), random)
        assert read_tree(f"{disks.root}/disk-1") == expected
        assert os.listdir(f"{disks.root}/.unlinked/1") == []
        assert volume_of(disks).unsynced.is_all_durable
        disks.close()
