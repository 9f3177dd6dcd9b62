"""A batch opens directories once each; its files are written behind few syncs, or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore import UnsafePathError
from logstore.fs import Batch, Directory
from logstore.tunables import FILES_AT_ONCE, FILES_SYNCED_ALONE
from tests.logstore.engine import DiskThat, open_descriptors

MANY = 20


@pytest.fixture
def disk() -> DiskThat:
    return DiskThat()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Directory]:
    with Directory.open(str(tmp_path)) as opened:
        yield opened


def folders(root: Directory, number: int) -> list[str]:
    """So many directories, each with a file of old bytes."""
    names = [f"d{each}" for each in range(number)]
    for name in names:
        os.mkdir(f"{root.path}/{name}")
        Path(root.path, name, "f").write_bytes(b"old")
    return names


def held(root: Directory, names: list[str]) -> list[dict[str, bytes]]:
    return [{file.name: file.read_bytes() for file in Path(root.path, name).iterdir()} for name in names]


def test_no_more_than_some_stay_open_and_none_afterwards(root: Directory, disk: DiskThat) -> None:
    names = folders(root, FILES_AT_ONCE + 20)
    before = open_descriptors()
    with Batch(disk, root) as batch:
        for name in names:
            assert batch.at(name).path == root.path_of(name)
        assert open_descriptors() == before + FILES_AT_ONCE
    assert open_descriptors() == before


def test_it_says_what_is_there_on_any_level(root: Directory, disk: DiskThat) -> None:
    os.makedirs(root.path_of("org/apache"))
    Path(root.path_of("file")).touch()
    with Batch(disk, root) as batch:
        assert batch.holds("org/apache")
        assert batch.parent("org/apache").path == root.path_of("org")
        assert batch.holds("file")
        assert not batch.holds("org/kafka")
        assert not batch.holds("net/kafka")
        assert not batch.has("file/x")


def test_few_directories_are_synced_one_by_one_and_many_by_one_barrier(root: Directory, disk: DiskThat) -> None:
    names = folders(root, MANY)
    with Batch(disk, root) as batch:
        batch.sync([*names[:2], names[0], ""])
        assert disk.calls == {"sync": 3}
        disk.calls.clear()
        batch.sync(names)
        assert disk.calls == {"sync_file_system": 1}


def test_a_directory_is_renamed_to_a_free_path_on_any_level_and_nothing_is_replaced(
    root: Directory, disk: DiskThat
) -> None:
    folders(root, 3)
    os.mkdir(root.path_of("d2/below"))
    with Batch(disk, root) as batch:
        assert batch.holds("d0/f")
        batch.rename("d0", "d1/new")
        assert batch.holds("d1/new/f")
        assert not batch.has("d0")
        with pytest.raises(FileExistsError, match="the name is taken"):
            batch.rename("d1/new", "d2/below")
        assert disk.calls == {"rename": 1}
        os.symlink("d2", root.path_of("link"))
        with pytest.raises(UnsafePathError):
            batch.rename("d1/new", "link/new")
        assert batch.holds("d1/new/f")


@pytest.mark.parametrize("number", [0, 1, FILES_SYNCED_ALONE, FILES_SYNCED_ALONE + 1, MANY])
def test_files_are_replaced_removed_and_created_behind_few_syncs(root: Directory, disk: DiskThat, number: int) -> None:
    names = folders(root, number)
    with Batch(disk, root) as batch:
        disk.calls.clear()
        batch.replace([(f"{name}/f", None if each % 2 else b"new") for each, name in enumerate(names)])
        assert held(root, names) == [{} if each % 2 else {"f": b"new"} for each in range(number)]
        batch.create([(f"{name}/g", name.encode()) for name in names])
    assert [each["g"] for each in held(root, names)] == [name.encode() for name in names]
    if number == MANY:
        assert (disk.calls["sync_file_system"], "sync" in disk.calls) == (3, False)
    else:
        assert disk.calls.get("sync", 0) <= 4 * number


def test_a_few_new_files_are_synced_each_and_so_are_their_entries(root: Directory, disk: DiskThat) -> None:
    names = folders(root, 2)
    with Batch(disk, root) as batch:
        batch.create([(f"{name}/g", b"new") for name in names])
    assert disk.calls["sync"] == 2 + 2


def test_further_directories_are_made_durable_with_those_of_the_files(root: Directory, disk: DiskThat) -> None:
    names = folders(root, 3)
    with Batch(disk, root) as batch:
        batch.replace([(f"{names[0]}/f", b"new")], names)
        assert disk.calls["sync"] == 1 + 3  # the file, and each directory once
        disk.calls.clear()
        batch.replace([], names)
        assert disk.calls == {"sync": 3}


@pytest.mark.parametrize(
    ("number", "method"),
    [
        *((FILES_SYNCED_ALONE, method) for method in ("create", "write", "sync")),
        *((MANY, method) for method in ("create", "write", "sync_file_system")),
    ],
)
def test_where_one_file_cannot_be_written_none_changes_and_no_other_is_left(
    root: Directory, number: int, method: str
) -> None:
    names = folders(root, number)
    for act in (Batch.replace, Batch.create):
        disk = DiskThat(errno.ENOSPC)
        disk.fails, disk.after = {method}, 0 if method == "sync_file_system" else 2
        with Batch(disk, root) as batch, pytest.raises(OSError, match="No space"):
            act(batch, [(f"{name}/{'f' if act is Batch.replace else 'g'}", b"new") for name in names])
        assert held(root, names) == [{"f": b"old"}] * number


def test_a_rename_that_fails_leaves_no_temporary_file(root: Directory) -> None:
    names = folders(root, MANY)
    disk = DiskThat(errno.EACCES)
    disk.fails, disk.after = {"rename"}, 7
    with Batch(disk, root) as batch, pytest.raises(PermissionError):
        batch.replace([(f"{name}/f", b"new") for name in names])
    assert held(root, names) == [{"f": b"new"}] * 7 + [{"f": b"old"}] * (MANY - 7)


def test_no_file_is_written_along_a_link(root: Directory, disk: DiskThat, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "d").symlink_to("elsewhere")
    for act in (Batch.replace, Batch.create):
        with Batch(disk, root) as batch, pytest.raises(UnsafePathError):
            act(batch, [("d/f", b"new")])
    assert os.listdir(tmp_path / "elsewhere") == []
