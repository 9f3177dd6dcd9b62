"""Each durable change, and what it must leave alone; removing trees, the most dangerous one, last."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logstore import UnsafePathError
from logstore.fs import Directory, Disk, durable


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Directory]:
    before = os.listdir("/proc/self/fd")
    with Directory.open(str(tmp_path)) as opened:
        yield opened
    assert os.listdir("/proc/self/fd") == before, "a descriptor was left open"


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place that nothing done in ``top`` may touch; a file in it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "precious").write_bytes(b"precious")
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_what_root_makes_belongs_to_the_owner_of_its_directory_who_reads_it_whatever_the_umask(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    kafka, other = (4242, 4243), (4244, 4245)
    (tmp_path / "log-dir").mkdir()
    (tmp_path / "log-dir" / "checkpoint").write_bytes(b"old")
    os.chown(tmp_path / "log-dir", *kafka)
    former = os.umask(0o077)
    try:
        with top.child("log-dir") as log_dir:
            durable.replace_file(disk, log_dir, "checkpoint", b"new")
            os.close(disk.create(log_dir.descriptor, ".lock"))
            with durable.make_directory(disk, log_dir, "orders-0") as replica:
                durable.write_new_file(disk, replica, "partition.metadata", b"", durable=True)
            durable.make_directory(disk, top, "log-dir.deleting", owned_like=log_dir).close()
            os.chown(tmp_path / "log-dir.deleting", *other)
            durable.make_directory(disk, top, "log-dir.deleting", owned_like=log_dir).close()
        durable.make_directory(disk, top, "of-root").close()
    finally:
        os.umask(former)

    def owner(path: str) -> tuple[int, int]:
        status = os.stat(tmp_path / path)
        return status.st_uid, status.st_gid

    made = ("checkpoint", ".lock", "orders-0", "orders-0/partition.metadata")
    assert {owner(f"log-dir/{name}") for name in made} == {kafka}
    assert (tmp_path / "log-dir" / "checkpoint").read_bytes() == b"new"
    assert owner("log-dir.deleting") == other, "what is there already stays whose it is"
    assert owner("of-root")[0] == 0


BAD_NAMES = ["", ".", "..", "a/b", "/etc", "../x", "a/", "nul\0", "/"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_leads_elsewhere_never_reaches_the_disk(disk: Disk, top: Directory, name: str) -> None:
    changes: list[Callable[[], object]] = [
        lambda: disk.create(top.descriptor, name),
        lambda: disk.open_to_change(top.descriptor, name),
        lambda: disk.mkdir(top.descriptor, name),
        lambda: disk.rename(top.descriptor, name, top.descriptor, "fine"),
        lambda: disk.rename(top.descriptor, "fine", top.descriptor, name),
        lambda: disk.link(top.descriptor, name, top.descriptor, "fine"),
        lambda: disk.link(top.descriptor, "fine", top.descriptor, name),
        lambda: disk.unlink(top.descriptor, name),
        lambda: disk.rmdir(top.descriptor, name),
    ]
    for change in changes:
        with pytest.raises(ValueError, match="is no name of a directory entry"):
            change()


def test_create_never_takes_a_name_that_is_there(disk: Disk, top: Directory, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(outside / "precious")
    (tmp_path / "dangling").symlink_to(outside / "new")
    for name in ("file", "link", "dangling"):
        with pytest.raises(FileExistsError):
            disk.create(top.descriptor, name)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(outside) == ["precious"]


def test_no_link_is_opened_to_change_what_it_leads_to(
    disk: Disk, top: Directory, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "link").symlink_to(outside / "precious")
    with pytest.raises(OSError, match="symbolic link"):
        disk.open_to_change(top.descriptor, "link")


def test_a_fifo_is_refused_and_blocks_nobody(disk: Disk, top: Directory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="No such device") as refused:
        disk.open_to_change(top.descriptor, "fifo")
    assert refused.value.errno == errno.ENXIO


def test_opening_to_change_makes_nothing_and_cuts_nothing_off(disk: Disk, top: Directory, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open_to_change(top.descriptor, "none")
    (tmp_path / "file").write_bytes(b"abcd")
    descriptor = disk.open_to_change(top.descriptor, "file")
    assert (tmp_path / "file").read_bytes() == b"abcd"
    disk.truncate(descriptor, 2)
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"ab"


def test_no_descriptor_is_handed_to_a_program_that_is_started(disk: Disk, top: Directory) -> None:
    for open_it in (disk.create, disk.open_to_change):
        descriptor = open_it(top.descriptor, "file")
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)


def test_everything_is_written_in_as_many_pieces_as_the_system_takes(
    disk: Disk, top: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    durable.replace_file(disk, top, "file", bytes(range(100)))
    assert (tmp_path / "file").read_bytes() == bytes(range(100))


def test_a_file_that_is_a_copy_can_have_the_time_of_the_first(disk: Disk, top: Directory, tmp_path: Path) -> None:
    descriptor = disk.create(top.descriptor, "copy")
    disk.set_modified(descriptor, 1_500_000_000_123_456_789)
    os.close(descriptor)
    assert (tmp_path / "copy").stat().st_mtime_ns == 1_500_000_000_123_456_789


def test_a_barrier_that_fails_is_an_error_with_the_systems_number(
    disk: Disk, top: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OSError, match="Bad file descriptor") as refused:
        disk.sync_file_system(-1)
    assert refused.value.errno == errno.EBADF
    monkeypatch.setattr(durable, "_SYNCFS", None)
    assert disk.sync_file_system(top.descriptor) is False


def test_replacing_leaves_the_new_bytes_and_no_other_file(disk: Disk, top: Directory, tmp_path: Path) -> None:
    for data in (b"first", b"", b"the second is longer"):
        durable.replace_file(disk, top, "file", data)
        assert (tmp_path / "file").read_bytes() == data
        assert os.listdir(tmp_path) == ["file"]


def test_a_reader_that_has_the_old_file_open_keeps_reading_it(disk: Disk, top: Directory, tmp_path: Path) -> None:
    durable.replace_file(disk, top, "file", b"old")
    with (tmp_path / "file").open("rb") as reader:
        durable.replace_file(disk, top, "file", b"new")
        assert reader.read() == b"old"


def test_replacing_a_link_puts_a_file_in_its_place(disk: Disk, top: Directory, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "file").symlink_to(outside / "precious")
    durable.replace_file(disk, top, "file", b"new")
    assert not (tmp_path / "file").is_symlink()
    assert (outside / "precious").read_bytes() == b"precious"


def test_a_leftover_of_an_earlier_crash_goes_even_if_it_is_a_link(
    disk: Disk, top: Directory, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / f"file{durable.TEMPORARY}").write_bytes(b"half")
    durable.replace_file(disk, top, "file", b"new")
    (tmp_path / f"file{durable.TEMPORARY}").symlink_to(outside / "precious")
    durable.replace_file(disk, top, "file", b"newer")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"newer"
    assert (outside / "precious").read_bytes() == b"precious"


def test_a_directory_is_replaced_by_no_file_and_stands_in_the_way_of_none_but_its_own(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / f"other{durable.TEMPORARY}").mkdir()
    with pytest.raises(IsADirectoryError):
        durable.replace_file(disk, top, "taken", b"new")
    with pytest.raises(OSError, match="Is a directory"):
        durable.replace_file(disk, top, "other", b"new")
    assert sorted(os.listdir(tmp_path)) == [f"other{durable.TEMPORARY}", "taken"]


def test_a_name_too_long_for_its_temporary_file_is_the_systems_error_and_leaves_nothing(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="name too long"):
        durable.replace_file(disk, top, "x" * 253, b"new")
    assert os.listdir(tmp_path) == []


def test_files_and_directories_can_be_read_by_others_as_far_as_the_umask_lets_them(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    before = os.umask(0o022)
    try:
        durable.replace_file(disk, top, "file", b"")
        durable.make_directory(disk, top, "directory").close()
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "directory").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_new_file_takes_the_place_of_what_an_earlier_crash_left(
    disk: Disk, top: Directory, tmp_path: Path, is_durable: bool
) -> None:
    (tmp_path / "file").write_bytes(b"left over and longer")
    durable.write_new_file(disk, top, "file", b"new", durable=is_durable)
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_directory_that_is_there_is_opened_and_keeps_what_it_holds(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    for _ in range(2):
        with durable.make_directory(disk, top, "d") as made:
            durable.write_new_file(disk, made, "file", b"x", durable=True)
    assert os.listdir(tmp_path / "d") == ["file"]


def test_no_directory_is_made_where_something_else_stands(
    disk: Disk, top: Directory, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "dangling").symlink_to(outside / "new")
    with pytest.raises(NotADirectoryError):
        durable.make_directory(disk, top, "file")
    for name in ("link", "dangling"):
        with pytest.raises(UnsafePathError, match="symbolic link"):
            durable.make_directory(disk, top, name)
    assert os.listdir(outside) == ["precious"]


@pytest.mark.parametrize("taken_by", ["file", "directory", "link"])
def test_a_move_never_replaces_anything(
    disk: Disk, top: Directory, tmp_path: Path, outside: Path, taken_by: str
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(FileExistsError, match="the name is taken") as refused:
        durable.rename_exclusively(disk, top, "source", top, taken_by)
    assert refused.value.filename == f"{tmp_path}/{taken_by}"
    assert sorted(os.listdir(tmp_path)) == ["directory", "file", "link", "source"]


def test_a_move_takes_a_directory_whole_and_a_link_as_itself(
    disk: Disk, top: Directory, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(outside)
    with durable.make_directory(disk, top, "target") as target:
        durable.rename_exclusively(disk, top, "a", target, "moved")
        durable.rename_exclusively(disk, top, "link", target, "link")
        durable.sync_all(disk, [target, top])
    assert (tmp_path / "target" / "moved" / "b").is_dir()
    assert (tmp_path / "target" / "link").is_symlink()
    assert os.listdir(outside) == ["precious"]


def test_what_is_not_there_cannot_be_moved(disk: Disk, top: Directory) -> None:
    with pytest.raises(FileNotFoundError):
        durable.rename_exclusively(disk, top, "none", top, "new")


def test_a_move_goes_where_the_directory_is_and_not_where_its_name_leads(
    disk: Disk, top: Directory, tmp_path: Path, outside: Path
) -> None:
    """Between the look and the rename somebody puts a link in the place of the target."""
    (tmp_path / "source").mkdir()
    (tmp_path / "target").mkdir()
    with top.child("target") as target:
        os.rename(tmp_path / "target", tmp_path / "moved-away")
        (tmp_path / "target").symlink_to(outside)
        durable.rename_exclusively(disk, top, "source", target, "moved")
    assert os.listdir(tmp_path / "moved-away") == ["moved"]
    assert os.listdir(outside) == ["precious"]


def test_a_link_is_one_more_name_of_the_same_file_and_never_takes_one_that_is_there(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "taken").write_bytes(b"y")
    disk.link(top.descriptor, "file", top.descriptor, "name")
    assert (tmp_path / "file").samefile(tmp_path / "name")
    with pytest.raises(FileExistsError):
        disk.link(top.descriptor, "file", top.descriptor, "taken")
    assert (tmp_path / "taken").read_bytes() == b"y"


class Counting(Disk):
    """Counts what is synced, by inode."""

    def __init__(self) -> None:
        self.synced: list[int] = []

    def sync(self, descriptor: int) -> None:
        self.synced.append(os.fstat(descriptor).st_ino)

    def sync_file_system(self, descriptor: int) -> bool:
        return False


def test_each_directory_is_synced_once_in_the_order_given(top: Directory, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    counting = Counting()
    with top.child("a") as a, top.child("a") as again, top.below("") as same:
        durable.sync_all(counting, [a, top, again, same])
        assert counting.synced == [a.key[1], top.key[1]]


def test_the_new_bytes_of_a_file_are_durable_before_its_name_and_that_is_too(top: Directory, tmp_path: Path) -> None:
    counting = Counting()
    durable.replace_file(counting, top, "file", b"new")
    assert counting.synced == [(tmp_path / "file").stat().st_ino, top.key[1]]


def test_a_directory_that_is_made_is_durable_in_its_parent_also_where_it_was_there(top: Directory) -> None:
    counting = Counting()
    for _ in range(2):
        durable.make_directory(counting, top, "made").close()
    assert counting.synced == [top.key[1]] * 2


def test_without_a_barrier_plain_files_are_synced_and_links_and_sockets_are_passed_over(
    top: Directory, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(outside / "precious")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/socket")
    counting = Counting()
    durable.barrier(counting, top, [top])
    assert counting.synced == [(tmp_path / "file").stat().st_ino, top.key[1]]


def test_with_a_barrier_nothing_else_is_synced(top: Directory, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    class WithBarrier(Counting):
        def sync_file_system(self, descriptor: int) -> bool:
            return True

    counting = WithBarrier()
    durable.barrier(counting, top, [top])
    assert counting.synced == []


def test_removing_a_file_that_is_gone_is_no_error_and_still_makes_that_durable(top: Directory, tmp_path: Path) -> None:
    counting = Counting()
    (tmp_path / "file").touch()
    durable.remove_file(counting, top, "file")
    durable.remove_file(counting, top, "file")
    durable.remove_file(counting, top, "file", durable=False)
    assert counting.synced == [top.key[1]] * 2
    assert os.listdir(tmp_path) == []


def test_removing_a_link_leaves_what_it_leads_to(disk: Disk, top: Directory, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "link").symlink_to(outside / "precious")
    durable.remove_file(disk, top, "link")
    assert os.listdir(tmp_path) == []
    assert os.listdir(outside) == ["precious"]


def test_a_directory_is_not_removed_as_a_file(disk: Disk, top: Directory, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(OSError, match=r"directory|not permitted"):
        durable.remove_file(disk, top, "d")
    assert (tmp_path / "d").is_dir()


def test_a_tree_is_removed_with_all_kinds_of_files_and_along_no_link(
    disk: Disk, top: Directory, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "d" / "e" / "f").mkdir(parents=True)
    (tmp_path / "d" / "e" / "file").write_bytes(b"x")
    (tmp_path / "d" / "to a directory").symlink_to(outside)
    (tmp_path / "d" / "to a file").symlink_to(outside / "precious")
    (tmp_path / "d" / "up").symlink_to("..")
    os.mkfifo(tmp_path / "d" / "fifo")
    (tmp_path / "kept").touch()
    durable.remove_tree(disk, top, "d")
    assert os.listdir(tmp_path) == ["kept"]
    assert (outside / "precious").read_bytes() == b"precious"


def test_a_link_in_place_of_the_tree_is_refused(disk: Disk, top: Directory, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "d").symlink_to(outside)
    with pytest.raises(UnsafePathError, match="symbolic link"):
        durable.remove_tree(disk, top, "d")
    assert os.listdir(outside) == ["precious"]


def test_a_directory_that_is_swapped_for_a_link_while_its_tree_is_removed_saves_what_the_link_leads_to(
    top: Directory, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "d" / "a").mkdir(parents=True)
    (tmp_path / "d" / "a" / "file").touch()

    class Swapping(Disk):
        def unlink(self, parent: int, name: str) -> None:
            os.rename(tmp_path / "d" / "a", tmp_path / "moved-away")
            (tmp_path / "d" / "a").symlink_to(outside)
            super().unlink(parent, name)

    with pytest.raises(NotADirectoryError):
        durable.remove_tree(Swapping(), top, "d")
    assert os.listdir(outside) == ["precious"]
    assert os.listdir(tmp_path / "moved-away") == []


def nest(parent: Path, name: str, depth: int) -> None:
    """Make a directory in a directory, so many times."""
    descriptor = os.open(parent, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)


@pytest.mark.parametrize(("name", "depth"), [("x" * 200, 200), ("y", sys.getrecursionlimit())])
def test_a_tree_deeper_than_any_path_or_stack_is_removed(
    disk: Disk, top: Directory, tmp_path: Path, name: str, depth: int
) -> None:
    nest(tmp_path, name, depth)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(depth + 500, hard), hard))
    try:
        durable.remove_tree(disk, top, name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir(tmp_path) == []


def test_a_tree_deeper_than_descriptors_are_to_be_had_is_the_systems_error_and_leaves_none_open(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    nest(tmp_path, "x", 300)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            durable.remove_tree(disk, top, "x")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    durable.remove_tree(disk, top, "x")


@pytest.mark.root
def test_a_tree_in_which_another_file_system_is_mounted_is_not_removed(
    disk: Disk, top: Directory, tmp_path: Path
) -> None:
    mounted = tmp_path / "d" / "mounted"
    mounted.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "none", str(mounted)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        (mounted / "precious").touch()
        (tmp_path / "file").touch()
        with pytest.raises(UnsafePathError, match=r"mounted at .*/d/mounted; it is never entered"):
            durable.remove_tree(disk, top, "d")
        assert os.listdir(mounted) == ["precious"]
        with Directory.open(str(mounted)) as other, pytest.raises(OSError, match="cross-device") as refused:
            durable.rename_exclusively(disk, top, "file", other, "file")
        assert refused.value.errno == errno.EXDEV
        assert os.listdir(mounted) == ["precious"]
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_a_file_that_others_read_is_replaced_whole_and_readable_whatever_the_umask_says(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_bytes(b"old")
    former = os.umask(0o077)
    try:
        durable.publish_file(str(tmp_path / "a.prom"), b"new")
    finally:
        os.umask(former)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.prom", b"new")]
    assert (tmp_path / "a.prom").stat().st_mode & 0o777 == 0o644


def test_a_file_that_others_read_stays_as_it_was_where_nothing_can_take_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.prom").mkdir()
    with pytest.raises(IsADirectoryError):
        durable.publish_file(str(tmp_path / "a.prom"), b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.prom"]
