"""The ledger of a log dir in a folder on another disk, for what the log dir's own has no room for."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from layout.ours import LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE
from logstore import ChangeRefusedError, UnreadableFileError
from logstore.log_dir import FallbackRecords, LogDir
from logstore.log_dir import ledger as ledger_module
from tests.logstore.engine import NOW_MS, ORDERS_ID, DiskThat, formatted, open_descriptors, picture

X, Y = f"{ORDERS_ID}_0", f"{ORDERS_ID}_1"


def record(partition: int = 0) -> StagedRecord:
    return StagedRecord("orders", partition, ORDERS_ID, f"orders-{partition}", "STALE_ID", "", NOW_MS, NOW_MS)


def write(fallback: FallbackRecords, log_dir: LogDir, *names: str) -> None:
    with fallback.ledger(log_dir.path, make=True) as ledger:
        assert ledger is not None
        ledger.stage({name: record() for name in names})


def note(fallback: FallbackRecords, log_dir: LogDir, event: LedgerEvent, *names: str) -> None:
    with fallback.ledger(log_dir.path) as ledger:
        assert ledger is not None
        ledger.note(event, names, durable=True)


def names_in(fallback: FallbackRecords, log_dir: LogDir) -> list[str]:
    found = fallback.read(log_dir.path)
    return [] if found is None else list(found.entries)


@pytest.fixture
def opened(our_log_dir: Path) -> Iterator[LogDir]:
    with LogDir.open(str(our_log_dir)) as log_dir:
        yield log_dir


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spare").mkdir()
    return tmp_path / "spare"


def test_two_log_dirs_of_one_last_name_have_folders_of_their_own(tmp_path: Path) -> None:
    fallback = FallbackRecords(str(tmp_path))
    assert fallback.path_of("/disk1/kafka") != fallback.path_of("/disk2/kafka")


def test_without_a_folder_nothing_is_written_and_nothing_is_found(opened: LogDir) -> None:
    none = FallbackRecords(None)
    for make in (True, False):
        with none.ledger(opened.path, make=make) as ledger:
            assert ledger is None
    assert none.read(opened.path) is None


def test_what_is_written_is_found_again_by_the_next_program(opened: LogDir, folder: Path) -> None:
    fallback = FallbackRecords(str(folder))
    assert fallback.read(opened.path) is None
    write(fallback, opened, X)
    write(fallback, opened, Y)
    assert names_in(FallbackRecords(str(folder)), opened) == [X, Y]
    assert list(folder.rglob(LEDGER_FILE)) == [Path(fallback.path_of(opened.path)) / LEDGER_FILE]


def test_looking_makes_nothing(opened: LogDir, folder: Path) -> None:
    before = picture(folder)
    with FallbackRecords(str(folder)).ledger(opened.path) as ledger:
        assert ledger is None
    assert picture(folder) == before


@pytest.mark.parametrize("event", [LedgerEvent.RESTORED, LedgerEvent.PURGED])
def test_it_goes_when_all_that_it_tells_is_over_and_not_before(
    opened: LogDir, folder: Path, event: LedgerEvent
) -> None:
    fallback = FallbackRecords(str(folder))
    write(fallback, opened, X, Y)
    note(fallback, opened, event, X)
    note(fallback, opened, LedgerEvent.PURGING, Y)
    assert names_in(fallback, opened) == [X, Y]
    note(fallback, opened, event, Y)
    assert fallback.read(opened.path) is None
    assert list(folder.rglob(LEDGER_FILE)) == []


def test_a_damaged_line_is_not_removed_with_what_is_over(opened: LogDir, folder: Path) -> None:
    fallback = FallbackRecords(str(folder))
    write(fallback, opened, X)
    write(fallback, opened, Y)
    (file,) = folder.rglob(LEDGER_FILE)
    file.write_bytes(file.read_bytes().replace(X.encode(), X.lower().encode(), 1))
    note(fallback, opened, LedgerEvent.RESTORED, Y)
    found = fallback.read(opened.path)
    assert found is not None
    assert len(found.damaged) == 1


def test_two_disks_never_share_a_ledger(opened: LogDir, folder: Path, tmp_path: Path) -> None:
    fallback = FallbackRecords(str(folder))
    write(fallback, opened, X)
    with LogDir.open(str(formatted(tmp_path / "other", 2))) as other:
        assert fallback.read(other.path) is None
        write(fallback, other, Y)
        assert names_in(fallback, other) == [Y]
    assert names_in(fallback, opened) == [X]


def test_a_link_in_the_folder_is_not_followed(
    opened: LogDir, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fallback = FallbackRecords(str(folder))
    write(fallback, opened, X)
    (file,) = folder.rglob(LEDGER_FILE)
    target = tmp_path / "elsewhere"
    file.rename(target)
    before = target.read_bytes()
    file.symlink_to(target)
    with pytest.raises(UnreadableFileError, match="symbolic link"):
        fallback.read(opened.path)
    with pytest.raises(ChangeRefusedError, match=f"{file} is a symbolic link"):
        write(fallback, opened, Y)
    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to(tmp_path)
    target.rename(tmp_path / LEDGER_FILE)
    assert fallback.read(opened.path) is None
    with fallback.ledger(opened.path, make=True) as ledger:
        assert ledger is None
    assert caplog.text.count(f"{file.parent} is a symbolic link") == 2
    assert (tmp_path / LEDGER_FILE).read_bytes() == before


def test_one_that_cannot_be_read_is_refused_and_left_as_it_is(
    opened: LogDir, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallback = FallbackRecords(str(folder))
    write(fallback, opened, X)
    (file,) = folder.rglob(LEDGER_FILE)
    text = b'["logstore-ledger",2]'
    file.write_bytes(b"%08x %b\n" % (crc32(text), text))
    before = file.read_bytes()
    for reason in ("schema version 1 only", "larger"):
        with pytest.raises(UnreadableFileError, match=reason):
            fallback.read(opened.path)
        with pytest.raises(ChangeRefusedError, match=reason):
            write(fallback, opened, Y)
        assert file.read_bytes() == before
        monkeypatch.setattr(ledger_module, "LEDGER_LIMIT", 5)


@pytest.mark.parametrize("method", ["mkdir", "create", "write", "sync", "rename"])
def test_what_cannot_be_written_is_an_error_and_nothing_is_staged_by_it(
    opened: LogDir, folder: Path, method: str
) -> None:
    with pytest.raises(OSError, match="No space"):
        write(FallbackRecords(str(folder), DiskThat(errno.ENOSPC, {method})), opened, X)
    assert names_in(FallbackRecords(str(folder)), opened) == []


def test_one_that_cannot_be_removed_says_that_all_is_over(opened: LogDir, folder: Path) -> None:
    write(FallbackRecords(str(folder)), opened, X)
    with pytest.raises(OSError, match="Permission denied"):
        note(FallbackRecords(str(folder), DiskThat(errno.EACCES, {"unlink"})), opened, LedgerEvent.RESTORED, X)
    found = FallbackRecords(str(folder)).read(opened.path)
    assert found is not None
    assert found.entries[X].event is LedgerEvent.RESTORED


def test_a_folder_that_is_gone_has_no_records(opened: LogDir, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    fallback = FallbackRecords(str(folder / "gone"))
    assert fallback.read(opened.path) is None
    assert f"the folder for spare records, {folder}/gone, cannot be used" in caplog.text
    with pytest.raises(FileNotFoundError):
        write(fallback, opened, X)


def test_no_descriptor_is_left_behind(opened: LogDir, folder: Path) -> None:
    before = open_descriptors()
    fallback = FallbackRecords(str(folder))
    write(fallback, opened, X)
    fallback.read(opened.path)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write(FallbackRecords(str(folder), DiskThat(errno.EIO, {"sync"})), opened, Y)
    note(fallback, opened, LedgerEvent.RESTORED, X)
    assert open_descriptors() == before
