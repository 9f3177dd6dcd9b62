from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from layout.ours import STAGED_RECORD_LIMIT
from logstore import LogStoreError, UnreadableFileError
from logstore.log_dir import LogDir
from logstore.staging import FallbackRecords
from tests.logstore.engine import DiskThat, formatted, open_descriptors, picture


@pytest.fixture
def opened(our_log_dir: Path) -> Iterator[LogDir]:
    with LogDir.open(str(our_log_dir)) as log_dir:
        yield log_dir


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spare").mkdir()
    return tmp_path / "spare"


def test_without_a_folder_nothing_is_written_and_nothing_is_found(opened: LogDir) -> None:
    none = FallbackRecords(None)
    assert not none.write(opened, "x", b"1")
    assert none.read(opened, "x") is None
    none.remove(opened, "x")


def test_a_record_is_found_again_replaced_and_forgotten(opened: LogDir, folder: Path) -> None:
    fallback = FallbackRecords(str(folder))
    assert fallback.read(opened, "x") is None
    assert fallback.write(opened, "x", b"1")
    assert fallback.write(opened, "x", b"2")
    assert FallbackRecords(str(folder)).read(opened, "x") == b"2"
    fallback.remove(opened, "x")
    assert fallback.read(opened, "x") is None
    fallback.remove(opened, "x")


def test_two_disks_never_share_a_record(opened: LogDir, folder: Path, tmp_path: Path) -> None:
    fallback = FallbackRecords(str(folder))
    fallback.write(opened, "x", b"1")
    with LogDir.open(str(formatted(tmp_path / "other", 2))) as other:
        assert fallback.read(other, "x") is None
        fallback.write(other, "x", b"2")
    assert fallback.read(opened, "x") == b"1"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\0b"])
def test_a_name_that_leads_elsewhere_is_never_written(opened: LogDir, folder: Path, tmp_path: Path, name: str) -> None:
    before = picture(tmp_path)
    with pytest.raises((ValueError, OSError, LogStoreError)):
        FallbackRecords(str(folder)).write(opened, name, b"1")
    after = picture(tmp_path)
    assert {path.split("/")[0] for path in after.keys() ^ before.keys()} <= {"spare"}


def test_a_link_in_the_folder_is_not_followed(opened: LogDir, folder: Path, tmp_path: Path) -> None:
    fallback = FallbackRecords(str(folder))
    fallback.write(opened, "x", b"1")
    (top,) = folder.iterdir()
    (tmp_path / "elsewhere").mkdir()
    (top / "y").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LogStoreError, match="symbolic link"):
        fallback.write(opened, "y", b"1")
    fallback.remove(opened, "y")
    assert os.listdir(tmp_path / "elsewhere") == []
    file = top / "x" / "staged.json"
    file.unlink()
    file.symlink_to("/etc/passwd")
    with pytest.raises(UnreadableFileError):
        fallback.read(opened, "x")


def test_more_than_a_record_can_be_is_not_read(opened: LogDir, folder: Path) -> None:
    fallback = FallbackRecords(str(folder))
    fallback.write(opened, "x", b"1" * (STAGED_RECORD_LIMIT + 1))
    with pytest.raises(UnreadableFileError, match="larger"):
        fallback.read(opened, "x")


@pytest.mark.parametrize("method", ["mkdir", "create", "write", "sync", "rename"])
def test_what_cannot_be_written_is_an_error_and_no_half_record_stays(opened: LogDir, folder: Path, method: str) -> None:
    with pytest.raises(OSError, match="No space"):
        FallbackRecords(str(folder), DiskThat(errno.ENOSPC, {method})).write(opened, "x", b"1")
    assert FallbackRecords(str(folder)).read(opened, "x") is None


@pytest.mark.parametrize("method", ["unlink", "rmdir", "sync"])
def test_what_cannot_be_removed_is_reported_and_no_error(
    opened: LogDir, folder: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    FallbackRecords(str(folder)).write(opened, "x", b"1")
    FallbackRecords(str(folder), DiskThat(errno.EACCES, {method})).remove(opened, "x")
    assert "cannot be removed: [Errno 13]" in caplog.text


def test_a_folder_that_is_gone_has_no_records(opened: LogDir, folder: Path) -> None:
    fallback: Any = FallbackRecords(str(folder / "gone"))
    assert fallback.read(opened, "x") is None
    fallback.remove(opened, "x")
    with pytest.raises(FileNotFoundError):
        fallback.write(opened, "x", b"1")


def test_no_descriptor_is_left_behind(opened: LogDir, folder: Path) -> None:
    before = open_descriptors()
    fallback = FallbackRecords(str(folder))
    fallback.write(opened, "x", b"1")
    fallback.read(opened, "x")
    fallback.remove(opened, "x")
    fallback.remove(opened, "y")
    assert open_descriptors() == before
