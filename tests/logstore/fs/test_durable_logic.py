"""What the primitives do when a disk is full, or is two disks: logic alone, on a file system that is made up.

Nothing here claims durability, of which a made-up file system knows nothing. Calls that would reach the real kernel
with a made-up descriptor (``openat2``, ``syncfs``) are put out of reach.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest
from pyfakefs.fake_filesystem import FakeFilesystem
from pyfakefs.fake_filesystem_unittest import Patcher

from logstore import UnsafePathError
from logstore.fs import (
    Directory,
    Disk,
    barrier,
    directory,
    durable,
    remove_tree,
    rename_exclusively,
    replace_file,
    write_new_file,
)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFilesystem]:
    monkeypatch.setattr(directory, "_SYSCALL", None)
    monkeypatch.setattr(durable, "_SYNCFS", None)
    with Patcher() as patcher:
        assert patcher.fs is not None
        patcher.fs.create_dir("/disk/kafka/orders-0")
        yield patcher.fs


def test_a_file_that_finds_no_room_leaves_the_old_one_and_nothing_else(fake: FakeFilesystem) -> None:
    fake.create_file("/disk/kafka/meta.properties", contents="old")
    fake.set_disk_usage(fake.get_disk_usage().used + 10)
    with Directory.open("/disk/kafka") as root, pytest.raises(OSError, match="No space") as refused:
        replace_file(Disk(), root, "meta.properties", b"x" * 1000)
    assert refused.value.errno == errno.ENOSPC
    assert sorted(fake.listdir("/disk/kafka")) == ["meta.properties", "orders-0"]
    assert fake.get_object("/disk/kafka/meta.properties").contents == "old"


def test_a_new_file_that_finds_no_room_is_gone_again(fake: FakeFilesystem) -> None:
    fake.set_disk_usage(fake.get_disk_usage().used + 10)
    with Directory.open("/disk/kafka/orders-0") as replica, pytest.raises(OSError, match="No space"):
        write_new_file(Disk(), replica, "move.json", b"x" * 1000, durable=True)
    assert fake.listdir("/disk/kafka/orders-0") == []


def test_nothing_is_renamed_into_another_file_system(fake: FakeFilesystem) -> None:
    fake.add_mount_point("/other")
    with Directory.open("/disk/kafka") as root, Directory.open("/other") as other:
        with pytest.raises(OSError, match="cross-device") as refused:
            rename_exclusively(Disk(), root, "orders-0", other, "orders-0")
        assert refused.value.errno == errno.EXDEV
    assert fake.exists("/disk/kafka/orders-0")


def test_another_file_system_is_never_entered(fake: FakeFilesystem) -> None:
    fake.add_mount_point("/disk/kafka/orders-0/mounted")
    fake.create_file("/disk/kafka/orders-0/mounted/theirs")
    with Directory.open("/disk/kafka") as root, pytest.raises(UnsafePathError, match="mounted"):
        remove_tree(Disk(), root, "orders-0")
    assert fake.exists("/disk/kafka/orders-0/mounted/theirs")


def test_without_a_barrier_each_file_is_synced_with_its_entry(fake: FakeFilesystem) -> None:
    class Counting(Disk):
        synced = 0

        def sync(self, descriptor: int) -> None:
            self.synced += 1
            super().sync(descriptor)

    disk = Counting()
    with Directory.open("/disk/kafka") as root, root.child("orders-0") as replica:
        for name in ("a", "b", "c"):
            write_new_file(disk, replica, name, b"x", durable=False)
        assert disk.synced == 0
        barrier(disk, root, iter([replica]))
    assert disk.synced == 4
