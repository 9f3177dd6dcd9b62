"""A disk's folder aside: what lost its name waits there, and goes when it can never come back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.fs.crash_disk import PLAIN, Volume
from logstore.fs.crash_disk.volume import parent_of, read, rewrite


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    for name in ("disk", "aside"):
        (tmp_path / name).mkdir()
    made = Volume(1, str(tmp_path / "disk"), str(tmp_path / "aside"))
    yield made
    made.close()


def put_aside(volume: Volume, name: str, node: int) -> int:
    with parent_of(volume.path, name) as (parent, last):
        inode = os.stat(last, dir_fd=parent).st_ino
        PLAIN.rename(parent, last, volume.aside.descriptor, volume.name_aside(node))
    return inode


def test_a_file_without_a_name_is_gone_for_good_when_what_is_aside_is_given_up(volume: Volume, tmp_path: Path) -> None:
    (tmp_path / "disk" / "f").write_bytes(b"x")
    node = volume.new_node((tmp_path / "disk" / "f").stat().st_ino)
    inode = put_aside(volume, "f", node)
    assert volume.empty_aside() == [inode]
    assert os.listdir(tmp_path / "aside") == []
    assert (volume.kept, node in volume.inodes) == ({}, False)


def test_a_file_that_has_another_name_is_not_gone(volume: Volume, tmp_path: Path) -> None:
    (tmp_path / "disk" / "f").write_bytes(b"x")
    (tmp_path / "disk" / "g").hardlink_to(tmp_path / "disk" / "f")
    node = volume.new_node((tmp_path / "disk" / "f").stat().st_ino)
    put_aside(volume, "f", node)
    assert volume.empty_aside() == []
    assert node in volume.inodes


def test_a_name_aside_can_be_taken_back(volume: Volume) -> None:
    name, other = volume.name_aside(1), volume.name_aside(1)
    assert name != other
    volume.forget_aside(1, name)
    assert volume.kept == {1: [other]}
    volume.forget_aside(1, other)
    assert volume.kept == {}


@pytest.mark.parametrize("wanted", [b"", b"abc", b"abcd", b"ab\0\0", b"other and longer"])
def test_a_file_is_rewritten_in_place(tmp_path: Path, wanted: bytes) -> None:
    (tmp_path / "d").mkdir()
    file = tmp_path / "d" / "f"
    file.write_bytes(b"abcd")
    inode = file.stat().st_ino
    rewrite(str(tmp_path), "d/f", b"abcd", wanted)
    assert (read(str(file)), file.stat().st_ino) == (wanted, inode)
