"""Copying a replica's files to another directory. KIP516-3."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore import ChangeRefusedError
from logstore.fs import Directory, Disk, copy_replica
from logstore.fs import copy as module
from tests.logstore.engine import DiskThat


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    path.mkdir()
    (path / "partition.metadata").write_bytes(b"version: 0\ntopic_id: UXyU9i5ARn6W00ON2taeWA")
    (path / f"{0:020}.log").write_bytes(os.urandom(3_000_000))
    (path / f"{0:020}.index").write_bytes(b"\0" * 2_500_000)
    (path / f"{0:020}.timeindex").write_bytes(b"\0" * 1_500_000 + b"entry" + b"\0" * 1_500_000)
    (path / "empty").write_bytes(b"")
    os.utime(path / f"{0:020}.log", ns=(1, 1_700_000_000_123_456_789))
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "copy"
    path.mkdir()
    return path


def copied(source: Path, target: Path, disk: Disk | None = None, progress: module.Progress | None = None) -> int:
    with Directory.open(str(source)) as here, Directory.open(str(target)) as there:
        return copy_replica(here, there, disk or Disk(), progress)


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_every_file_is_copied_byte_for_byte_with_its_modification_time(source: Path, target: Path) -> None:
    total = copied(source, target)
    assert contents(target) == contents(source)
    assert total == sum(map(len, contents(source).values()))
    for file in source.iterdir():
        assert (target / file.name).stat().st_mtime_ns == file.stat().st_mtime_ns


def test_every_file_of_a_copy_is_synced(source: Path, target: Path) -> None:
    disk = DiskThat()
    copied(source, target, disk)
    assert disk.calls["sync"] == len(contents(source))


def test_zeros_of_preallocated_indexes_become_holes(source: Path, target: Path) -> None:
    copied(source, target)
    assert (target / f"{0:020}.index").stat().st_blocks == 0
    assert (target / f"{0:020}.timeindex").stat().st_blocks < 3_000_000 // 512


def test_progress_is_called_with_all_the_bytes(source: Path, target: Path) -> None:
    reported: list[int] = []
    assert copied(source, target, progress=reported.append) == sum(reported)


@pytest.mark.parametrize("kind", ["directory", "link", "fifo"])
def test_what_no_replica_holds_is_a_reason_to_refuse(source: Path, target: Path, kind: str) -> None:
    odd = source / "odd"
    if kind == "directory":
        odd.mkdir()
    elif kind == "link":
        odd.symlink_to("/etc/passwd")
    else:
        os.mkfifo(odd)
    with pytest.raises((ChangeRefusedError, OSError)):
        copied(source, target)


def test_a_file_that_grows_while_it_is_copied_is_noticed(source: Path, target: Path) -> None:
    def append(_: int) -> None:
        with open(source / f"{0:020}.log", "ab") as log:
            log.write(b"more")

    with pytest.raises(ChangeRefusedError, match="changed while it was copied"):
        copied(source, target, progress=append)


def test_a_copy_that_does_not_read_back_is_noticed(source: Path, target: Path) -> None:
    class Lying(Disk):
        def write(self, descriptor: int, data: bytes) -> None:
            super().write(descriptor, bytes([data[0] ^ 1]) + data[1:])

    with pytest.raises(ChangeRefusedError, match="does not read back"):
        copied(source, target, Lying())
