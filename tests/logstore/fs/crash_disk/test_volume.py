"""Orphans of a disk: files without a name wait in a folder, and go when they can never come back.

A copy of a disk holds the same files under other inodes, and keeps the orphans.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from logstore.fs import Directory
from logstore.fs.crash_disk import PLAIN, CrashDisk, MachineDisks, Volume, copy_volume, inodes_below
from logstore.fs.crash_disk.volume import parent_of, read, rewrite
from tests.crash.by_path import ByPath
from tests.crash.images import digest, read_image, read_tree
from tests.reconciler.simulator.machine.disk_folders import Fresh


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    for name in ("disk", "orphans"):
        (tmp_path / name).mkdir()
    made = Volume(1, str(tmp_path / "disk"), str(tmp_path / "orphans"))
    yield made
    made.close()


def make_orphan(volume: Volume, name: str, node: int) -> int:
    with parent_of(volume.path, name) as (parent, last):
        inode = os.stat(last, dir_fd=parent).st_ino
        PLAIN.rename(parent, last, volume.orphans.descriptor, volume.new_orphan(node))
    return inode


def test_a_file_without_a_name_is_gone_for_good_when_orphans_are_dropped(volume: Volume, tmp_path: Path) -> None:
    (tmp_path / "disk" / "f").write_bytes(b"x")
    node = volume.new_node((tmp_path / "disk" / "f").stat().st_ino)
    inode = make_orphan(volume, "f", node)
    assert volume.drop_orphans() == [inode]
    assert os.listdir(tmp_path / "orphans") == []
    assert (volume.orphan_names, node in volume.inodes) == ({}, False)


def test_a_file_that_has_another_name_is_not_gone(volume: Volume, tmp_path: Path) -> None:
    (tmp_path / "disk" / "f").write_bytes(b"x")
    (tmp_path / "disk" / "g").hardlink_to(tmp_path / "disk" / "f")
    node = volume.new_node((tmp_path / "disk" / "f").stat().st_ino)
    make_orphan(volume, "f", node)
    assert volume.drop_orphans() == []
    assert node in volume.inodes


def test_the_name_of_an_orphan_can_be_given_back(volume: Volume) -> None:
    name, other = volume.new_orphan(1), volume.new_orphan(1)
    assert name != other
    volume.forget_orphan(1, name)
    assert volume.orphan_names == {1: [other]}
    volume.forget_orphan(1, other)
    assert volume.orphan_names == {}


@pytest.mark.parametrize("wanted", [b"", b"abc", b"abcd", b"ab\0\0", b"other and longer"])
def test_a_file_is_rewritten_in_place(tmp_path: Path, wanted: bytes) -> None:
    (tmp_path / "d").mkdir()
    file = tmp_path / "d" / "f"
    file.write_bytes(b"abcd")
    inode = file.stat().st_ino
    rewrite(str(tmp_path), "d/f", b"abcd", wanted)
    assert (read(str(file)), file.stat().st_ino) == (wanted, inode)


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


def test_a_copy_is_the_disk_from_then_on(volume: Volume, tmp_path: Path) -> None:
    disk, first = CrashDisk(), volume.path
    disk.mounted(volume)
    with Directory.open(first) as root:
        file = disk.create(root.descriptor, "f")
        disk.write(file, b"x")
        os.close(file)
        disk.link(root.descriptor, "f", root.descriptor, "g")
    copy_volume(volume, first, f"{tmp_path}/copy")
    assert volume.path == f"{tmp_path}/copy"
    assert set(volume.inodes.values()) == inodes_below(volume.path)
    assert read_tree(volume.path) == read_tree(first) == {"f": b"x", "g": b"x"}
