"""The archives of disks: the same bytes for the same disks, and holes where there were holes."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tools.real_broker.fixtures.archive import LEAST_HOLE, MODIFIED, pack, unpack

MEGABYTE = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A log dir with a preallocated index, an empty lock, and an empty partition dir."""
    disk = tmp_path / "disk1"
    (disk / "orders-0").mkdir(parents=True)
    (disk / "orders-1").mkdir()
    (disk / ".lock").touch()
    (disk / "meta.properties").write_bytes(b"node.id=1\n")
    with open(disk / "orders-0" / "00000000000000000000.index", "wb") as index:
        index.write(b"\1\0\2")
        index.truncate(10 * MEGABYTE)
    (disk / "orders-0" / "short.timeindex").write_bytes(b"\1" + bytes(LEAST_HOLE - 1))
    (disk / "orders-0" / "all-zeros.index").write_bytes(bytes(MEGABYTE))
    return disk


def contents(folder: Path) -> dict[str, bytes | None]:
    """Each file with its bytes, each directory with None."""
    found = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}


def test_what_was_packed_is_unpacked(disk: Path, tmp_path: Path) -> None:
    pack(tmp_path / "a.tar.xz", {"broker-1/disk1": disk})
    unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    assert contents(tmp_path / "out" / "broker-1" / "disk1") == contents(disk)


def test_preallocated_zeros_are_neither_stored_nor_written(disk: Path, tmp_path: Path) -> None:
    pack(tmp_path / "a.tar.xz", {"disk1": disk})
    with tarfile.open(tmp_path / "a.tar.xz") as tar:
        stored = {entry.name: entry.sparse is not None for entry in tar if entry.isreg()}
    assert {name for name, is_sparse in stored.items() if is_sparse} == {
        "disk1/orders-0/00000000000000000000.index",
        "disk1/orders-0/all-zeros.index",
    }
    unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    index = (tmp_path / "out" / "disk1" / "orders-0" / "00000000000000000000.index").stat()
    assert index.st_size == 10 * MEGABYTE
    assert index.st_blocks * 512 < MEGABYTE


def test_the_same_disks_give_the_same_bytes_whatever_their_times(disk: Path, tmp_path: Path) -> None:
    pack(tmp_path / "a.tar.xz", {"disk1": disk, "disk0": disk / "orders-0"})
    for path in (disk, disk / "meta.properties"):
        path.touch()
    (disk / ".lock").chmod(0o600)
    pack(tmp_path / "b.tar.xz", {"disk0": disk / "orders-0", "disk1": disk})
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.xz") as tar:
        assert {(entry.mtime, entry.uid, entry.uname) for entry in tar} == {(MODIFIED, 0, "")}


def test_what_no_broker_makes_is_refused(disk: Path, tmp_path: Path) -> None:
    (disk / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="link is neither a file nor a directory"):
        pack(tmp_path / "a.tar.xz", {"disk1": disk})


@pytest.mark.parametrize("has_filters", [True, False])
@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("/tmp/out", tarfile.REGTYPE, "would leave the folder"),
        ("disk1/../../out", tarfile.REGTYPE, "would leave the folder"),
        ("disk1/link", tarfile.SYMTYPE, "neither a file nor a directory"),
        ("disk1/device", tarfile.CHRTYPE, "neither a file nor a directory"),
    ],
)
def test_an_archive_that_no_pack_wrote_is_refused_before_anything_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_filters: bool, name: str, kind: bytes, said: str
) -> None:
    if not has_filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as tar:
        tar.addfile(tarfile.TarInfo("first"))
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, "/etc/passwd"
        tar.addfile(entry)
    with pytest.raises(tarfile.TarError, match=said):
        unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_was_packed_is_unpacked_by_a_python_without_filters(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    pack(tmp_path / "a.tar.xz", {"disk1": disk})
    unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    assert contents(tmp_path / "out" / "disk1") == contents(disk)
