"""A disk that writes back pages in any order: what was synced stays, and each other page is lost or kept by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from logstore.fs import Directory
from reconciler.simulator.drills.log_dirs.page_cache import PageCache

NAME, PAGE = "file", 512


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Directory]:
    """An empty folder."""
    with Directory.open(str(tmp_path)) as opened:
        yield opened


def test_of_what_was_not_synced_each_page_is_lost_or_kept_by_itself(folder: Directory, tmp_path: Path) -> None:
    found = set[bytes]()
    for seed in range(60):
        disk = PageCache()
        descriptor = disk.create(folder.descriptor, NAME)
        disk.write(descriptor, b"a" * 2 * PAGE)
        disk.sync(descriptor)
        for offset in (0, PAGE):
            os.lseek(descriptor, offset, os.SEEK_SET)
            disk.write(descriptor, b"b" * PAGE)
        os.close(descriptor)
        disk.crash(folder, NAME, Random(seed))
        found.add((tmp_path / NAME).read_bytes())
        disk.unlink(folder.descriptor, NAME)
    assert found == {one * PAGE + other * PAGE for one in (b"a", b"b") for other in (b"a", b"b")}


def test_what_a_file_grew_by_is_zeros_where_a_page_is_lost_before_one_that_is_kept(
    folder: Directory, tmp_path: Path
) -> None:
    found = set[bytes]()
    for seed in range(60):
        disk = PageCache()
        descriptor = disk.create(folder.descriptor, NAME)
        disk.write(descriptor, b"a" * PAGE + b"b" * 10)
        os.close(descriptor)
        disk.crash(folder, NAME, Random(seed))
        found.add((tmp_path / NAME).read_bytes())
        disk.unlink(folder.descriptor, NAME)
    assert found == {b"", b"a" * PAGE, bytes(PAGE) + b"b" * 10, b"a" * PAGE + b"b" * 10}


def test_what_a_sync_failed_to_write_is_lost_though_a_later_sync_succeeds(folder: Directory, tmp_path: Path) -> None:
    disk = PageCache()
    descriptor = disk.create(folder.descriptor, NAME)
    disk.write(descriptor, b"a" * PAGE)
    disk.refuses_sync = True
    with pytest.raises(OSError, match="No space left"):
        disk.sync(descriptor)
    disk.write(descriptor, b"b" * PAGE)
    disk.sync(descriptor)
    os.close(descriptor)
    assert (tmp_path / NAME).read_bytes() == b"a" * PAGE + b"b" * PAGE
    disk.crash(folder, NAME, Random(1))
    assert (tmp_path / NAME).read_bytes() == bytes(PAGE) + b"b" * PAGE


def test_a_file_without_room_does_not_grow_and_is_written_over(folder: Directory, tmp_path: Path) -> None:
    disk = PageCache(4)
    descriptor = disk.create(folder.descriptor, NAME)
    disk.write(descriptor, b"abcd")
    with pytest.raises(OSError, match="No space left"):
        disk.write(descriptor, b"e")
    os.lseek(descriptor, 2, os.SEEK_SET)
    disk.write(descriptor, b"xy")
    os.close(descriptor)
    assert (tmp_path / NAME).read_bytes() == b"abxy"
