"""Removing trees: the most dangerous thing that ``durable`` does, and what it must leave alone."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
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
            os.rename(tmp_path / "d" / "a", tmp_path / "aside")
            (tmp_path / "d" / "a").symlink_to(outside)
            super().unlink(parent, name)

    with pytest.raises(NotADirectoryError):
        durable.remove_tree(Swapping(), top, "d")
    assert os.listdir(outside) == ["precious"]
    assert os.listdir(tmp_path / "aside") == []


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
