"""The ledger of a staging folder as a file: its space, its recovery, its compaction, and what it refuses."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest

from layout.errors import DamagedFileError
from layout.ours import LedgerEntry, LedgerEvent, StagedRecord, encode_header, encode_mark, encode_staged
from layout.scheme import LEDGER_FILE
from logstore import ChangeRefusedError, UnreadableFileError
from logstore.fs import TEMPORARY, Directory, Disk
from logstore.log_dir import NO_SPACE, LedgerFile, Ledgers, read_ledger
from logstore.log_dir import ledger as engine
from logstore.log_dir.ledger import RESERVED_BYTES
from tests.logstore.engine import ORDERS_ID, DiskThat, open_descriptors

STAGED, RESTORED, PURGING, PURGED, KEPT = LedgerEvent
NAMES = [f"{ORDERS_ID}_{number}" for number in range(2000)]


def record(number: int) -> StagedRecord:
    return StagedRecord("orders", number, ORDERS_ID, f"orders-{number}", "STALE_ID", "", 1000, 2000)


def records(*numbers: int) -> dict[str, StagedRecord]:
    return {NAMES[number]: record(number) for number in numbers}


@dataclass
class Case:
    """A folder, and the ledger in it."""

    path: Path
    folder: Directory

    @property
    def file(self) -> Path:
        return self.path / LEDGER_FILE

    def open(self, disk: Disk | None = None) -> LedgerFile:
        return LedgerFile.open(disk or Disk(), self.folder)

    def events(self) -> dict[str, LedgerEvent]:
        found = read_ledger(self.folder)
        assert found is not None
        assert not found.damaged
        return {name: entry.event for name, entry in found.entries.items()}


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    before = open_descriptors()
    with Directory.open(str(tmp_path)) as folder:
        yield Case(tmp_path, folder)
    assert open_descriptors() == before


class Full(Disk):
    """Has no space for anything that is larger than the files are."""

    def __init__(self, most: int = 0) -> None:
        self.most = most

    def create(self, parent: int, name: str) -> int:
        if not self.most:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().create(parent, name)

    def write(self, descriptor: int, data: bytes) -> None:
        end = os.lseek(descriptor, 0, os.SEEK_CUR) + len(data)
        if end > max(self.most, os.fstat(descriptor).st_size):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(descriptor, data)


def test_a_folder_without_a_ledger_has_none_and_looking_makes_none(case: Case) -> None:
    assert read_ledger(case.folder) is None
    assert not case.file.exists()


def test_a_new_ledger_has_space_for_later_lines(case: Case) -> None:
    case.open().close()
    assert case.events() == {}
    assert case.file.stat().st_size >= RESERVED_BYTES
    assert case.file.stat().st_blocks * 512 >= RESERVED_BYTES, "a hole is no space"


def test_what_is_appended_is_read_by_the_next_who_opens_it(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0, 1, 2, 3))
        file.note(PURGING, NAMES[1:3], durable=True)
        file.note(PURGED, NAMES[1:2], durable=False)
        file.note(RESTORED, NAMES[3:4], durable=False)
        here = {name: entry.event for name, entry in file.ledger.entries.items()}
    assert case.events() == here == dict(zip(NAMES, (STAGED, PURGED, PURGING, RESTORED), strict=False))
    with case.open() as file:
        assert file.recovered == 0
        assert file.ledger.entries[NAMES[2]].record == record(2)
        file.stage(records(4))
    assert case.events() == {**here, NAMES[4]: STAGED}


def test_the_name_of_a_ledger_is_durable_once_it_is_open_whoever_made_it(case: Case) -> None:
    class Noting(Disk):
        def __init__(self) -> None:
            self.synced: set[int] = set()

        def sync(self, descriptor: int) -> None:
            super().sync(descriptor)
            self.synced.add(os.fstat(descriptor).st_ino)

    for _ in ("it is made", "it is there"):
        disk = Noting()
        case.open(disk).close()
        assert case.path.stat().st_ino in disk.synced


def test_a_sync_is_marked_with_the_offset_up_to_which_the_file_is_durable(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0, 1))
        file.note(PURGING, NAMES[:1], durable=True)
    data = case.file.read_bytes().rstrip(b"\0")
    marks = [match.start() for match in re.finditer(rb'[0-9a-f]{8} \["mark",', data)]
    assert len(marks) == 2
    assert all(data[mark:].startswith(encode_mark(mark)) for mark in marks)


@pytest.mark.parametrize("events", [(), (PURGING,), (PURGING, PURGED), (PURGING, KEPT)])
def test_a_name_is_used_once(case: Case, events: tuple[LedgerEvent, ...]) -> None:
    with case.open() as file:
        file.stage(records(0))
        for event in events:
            file.note(event, NAMES[:1], durable=True)
        before = case.file.read_bytes()
        with pytest.raises(ValueError, match=f"'{NAMES[0]}' was used before"):
            file.stage(records(0, 1))
    assert case.file.read_bytes() == before


def test_the_name_of_a_stray_whose_record_was_taken_back_may_get_another_record(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0))
        file.note(RESTORED, NAMES[:1], durable=True)
        file.stage({NAMES[0]: record(7)})
    with case.open() as file:
        assert file.ledger.entries[NAMES[0]] == LedgerEntry(STAGED, record(7))


def test_a_record_that_nobody_would_believe_is_not_written(case: Case) -> None:
    with case.open() as file:
        before = case.file.read_bytes()
        with pytest.raises(DamagedFileError, match="due_ms"):
            file.stage({NAMES[0]: StagedRecord("orders", 0, ORDERS_ID, "orders-0", "STALE_ID", "", 2, 1)})
    assert case.file.read_bytes() == before


def test_it_grows_before_its_space_is_used_up(case: Case) -> None:
    with case.open() as file:
        file.stage(records(*range(1500)))
    assert case.file.stat().st_size >= len(case.file.read_bytes().rstrip(b"\0")) + RESERVED_BYTES // 2
    assert len(case.events()) == 1500


def test_on_a_full_disk_it_takes_some_hundred_replicas_and_then_only_what_a_purge_needs(case: Case) -> None:
    case.open().close()
    size = case.file.stat().st_size
    staged: list[str] = []
    with case.open(Full()) as file:
        with pytest.raises(OSError, match="No space left"):
            for number in range(2000):
                file.stage(records(number))
                staged.append(NAMES[number])
        assert len(staged) > 300
        before = case.events()
        file.note(PURGING, staged[:30], durable=True)
    assert list(before) == staged
    assert case.events() == {**before, **dict.fromkeys(staged[:30], PURGING)}
    assert case.file.stat().st_size == size


class CutShort(Disk):
    """Writes all but the last bytes of staged lines, and has no space for these."""

    def write(self, descriptor: int, data: bytes) -> None:
        if data.count(b'["staged"') < 2:
            super().write(descriptor, data)
            return
        super().write(descriptor, data[:-5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_of_lines_that_are_cut_short_none_is_left_to_be_read(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0))
    before = case.file.read_bytes()
    with case.open(CutShort()) as file:
        with pytest.raises(OSError, match="No space left"):
            file.stage(records(1, 2, 3))
        assert case.file.read_bytes() == before
        file.stage(records(4))
    assert case.events() == {NAMES[0]: STAGED, NAMES[4]: STAGED}


def test_where_there_is_little_space_a_new_ledger_has_room_for_a_purge(case: Case) -> None:
    with case.open(Full(engine.PURGE_BYTES)) as file:
        with pytest.raises(OSError, match="No space left"):
            file.stage(records(0))
        file.note(PURGING, NAMES[:1], durable=True)
    assert case.file.stat().st_size == engine.PURGE_BYTES
    assert case.events() == {NAMES[0]: PURGING}


def test_where_there_is_no_space_for_a_new_one_none_is_left(case: Case) -> None:
    with pytest.raises(OSError, match="No space left") as raised:
        case.open(Full())
    assert raised.value.errno in NO_SPACE
    assert list(case.path.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 9, 40, 100])
def test_what_a_crash_tore_is_overwritten_and_later_lines_are_sound(case: Case, cut: int) -> None:
    with case.open() as file:
        file.stage(records(0))
    data = case.file.read_bytes()
    end = len(data.rstrip(b"\0"))
    torn = (encode_mark(end) + encode_staged(NAMES[1], record(1)))[: len(encode_mark(end)) + cut]
    case.file.write_bytes(data[:end] + torn + data[end + len(torn) :])
    assert read_ledger(case.folder) is not None
    assert case.file.read_bytes()[end : end + len(torn)] == torn, "looking changes nothing"
    with case.open() as file:
        assert file.recovered == cut
        file.stage(records(2))
        file.stage(records(3))
    assert case.events() == dict.fromkeys([NAMES[0], NAMES[2], NAMES[3]], STAGED)
    assert case.file.stat().st_size == len(data)


class Noted(Disk):
    """Writes down what it writes and syncs, in order, by the name of the file or folder."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def write(self, descriptor: int, data: bytes) -> None:
        super().write(descriptor, data)
        self.steps.append(f"{'mark' if b'mark' in data else 'write'} {_name_of(descriptor)}")

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self.steps.append(f"sync {_name_of(descriptor)}")


def _name_of(descriptor: int) -> str:
    return os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))


def tear(case: Case) -> None:
    """Leave a ledger of one staged directory whose next line a crash has torn."""
    with case.open() as file:
        file.stage(records(0))
    data = case.file.read_bytes()
    end = len(data.rstrip(b"\0"))
    torn = (encode_mark(end) + encode_staged(NAMES[1], record(1)))[:-9]
    case.file.write_bytes(data[:end] + torn + data[end + len(torn) :])


def test_what_a_crash_tore_is_overwritten_durably_before_anything_is_appended(case: Case) -> None:
    tear(case)
    disk = Noted()
    case.open(disk).close()
    overwritten = disk.steps.index(f"write {LEDGER_FILE}")
    assert disk.steps[overwritten + 1 :] == [f"sync {LEDGER_FILE}", f"mark {LEDGER_FILE}"]


@pytest.mark.parametrize("written", [0, 1, 60])
def test_a_full_disk_that_never_writes_in_place_keeps_what_is_torn_until_it_has_space(case: Case, written: int) -> None:
    class Copying(Disk):
        """Needs space for every byte."""

        is_full = True

        def write(self, descriptor: int, data: bytes) -> None:
            super().write(descriptor, data[:written] if self.is_full else data)
            if self.is_full and written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    tear(case)
    disk = Copying()
    with case.open(disk) as file:
        assert file.ledger.entries.keys() == {NAMES[0]}
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                file.stage(records(2))
        assert case.events() == {NAMES[0]: STAGED}
        disk.is_full = False
        file.stage(records(2))
        file.stage(records(3))
    assert case.events() == dict.fromkeys([NAMES[0], NAMES[2], NAMES[3]], STAGED)


def test_after_a_compaction_that_may_be_undone_by_a_crash_nothing_is_appended_to_the_new_file(case: Case) -> None:
    class Refusing(Noted):
        """Refuses to sync a folder, once."""

        refuses = False

        def sync(self, descriptor: int) -> None:
            if self.refuses and os.path.isdir(f"/proc/self/fd/{descriptor}"):
                self.refuses = False
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().sync(descriptor)

    disk = Refusing()
    with case.open(disk) as file:
        file.stage(records(*range(8)))
        disk.refuses = True
        with pytest.raises(OSError, match="Input/output error"):
            file.compact([NAMES[5]], 3)
        disk.steps.clear()
        file.note(RESTORED, [NAMES[5]], durable=False)
    assert disk.steps == [f"sync {case.path.name}", f"write {LEDGER_FILE}"], "the folder, and then the line"


def test_lines_after_a_gap_that_a_crash_left_are_kept(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0))
    data = bytearray(case.file.read_bytes())
    end = len(bytes(data).rstrip(b"\0"))
    lost, kept = encode_staged(NAMES[1], record(1)), encode_staged(NAMES[2], record(2))
    new = encode_mark(end) + bytes(len(lost) - 1) + b"\n" + kept
    data[end : end + len(new)] = new
    case.file.write_bytes(data)
    with case.open() as file:
        assert file.recovered == len(lost) - 1
        file.stage(records(3))
    assert set(case.events()) == {NAMES[0], NAMES[2], NAMES[3]}


def test_lines_that_a_killed_process_did_not_sync_are_durable_before_anything_is_done_by_them(case: Case) -> None:
    with case.open() as ledger:
        ledger.stage(records(0))
    opened = Noted()
    case.open(opened).close()
    assert f"sync {LEDGER_FILE}" not in opened.steps, "all of them are"
    with case.open() as ledger:
        ledger.note(PURGING, [NAMES[0]], durable=False)
    opened = Noted()
    case.open(opened).close()
    assert f"sync {LEDGER_FILE}" in opened.steps


def test_a_second_staged_line_gives_a_replica_another_name_durably_and_once(case: Case) -> None:
    with case.open() as ledger:
        ledger.stage(records(0, 1))
    new, disk = record(0)._replace(topic="sales", path="sales-0"), Noted()
    with case.open(disk) as ledger:
        ledger.rename(NAMES[0], new)
        assert disk.steps[-2:] == [f"sync {LEDGER_FILE}", f"mark {LEDGER_FILE}"]
        written = len(disk.steps)
        ledger.rename(NAMES[0], new)
        assert (len(disk.steps), ledger.ledger.lines) == (written, 3)
    found = read_ledger(case.folder)
    assert found is not None
    assert [found.entries[name] for name in NAMES[:2]] == [LedgerEntry(STAGED, new), LedgerEntry(STAGED, record(1))]


def test_after_a_sync_that_failed_the_same_is_written_again(case: Case) -> None:
    class Forgetful(Disk):
        """Its first sync of the ledger fails, and what was written since the one before is lost, as in a page cache."""

        fails = False

        def sync(self, descriptor: int) -> None:
            if self.fails:
                self.fails = False
                case.file.write_bytes(durable)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().sync(descriptor)

    disk = Forgetful()
    with case.open(disk) as file:
        file.stage(records(0))
        durable = case.file.read_bytes()
        disk.fails = True
        with pytest.raises(OSError, match="Input/output error"):
            file.stage(records(1))
        file.stage(records(2))
    assert case.events() == dict.fromkeys([NAMES[0], NAMES[1], NAMES[2]], STAGED)


def test_it_is_compacted_to_what_is_there_and_can_be_appended_to(case: Case) -> None:
    with case.open() as file:
        file.stage(records(*range(8)))
        file.note(PURGING, NAMES[:1], durable=True)
        assert not file.compact(NAMES[:8], 3)
        inode = case.file.stat().st_ino
        assert file.compact([NAMES[0], NAMES[5]], 3)
        assert case.file.stat().st_ino != inode
        file.stage(records(9))
    assert case.events() == {NAMES[0]: PURGING, NAMES[5]: STAGED, NAMES[9]: STAGED}
    assert case.file.stat().st_size >= RESERVED_BYTES
    assert [path.name for path in case.path.iterdir()] == [LEDGER_FILE]


def test_a_compacted_one_has_room_from_the_beginning(case: Case) -> None:
    with case.open() as file:
        file.stage(records(*range(8)))
        assert file.compact([NAMES[5]], 3)
        assert case.file.stat().st_size == file.ledger.end + RESERVED_BYTES


def test_on_a_full_disk_it_stays_as_it_is(case: Case) -> None:
    with case.open() as file:
        file.stage(records(*range(8)))
        file.close()
    with case.open(DiskThat(errno.ENOSPC, {"create"})) as file:
        assert not file.compact([], 3)
        file.stage(records(9))
    assert len(case.events()) == 9


@pytest.mark.parametrize("fails", [{"create"}, {"rename"}, {"sync"}])
def test_when_the_disk_fails_in_a_compaction_one_of_the_two_files_is_there(case: Case, fails: Collection[str]) -> None:
    disk = DiskThat(errno.EIO, set())
    with case.open(disk) as file:
        file.stage(records(*range(8)))
        disk.fails = set(fails)
        with pytest.raises(OSError, match="Input/output error"):
            file.compact([NAMES[5]], 3)
        disk.fails = set()
        file.stage(records(9))
    assert {NAMES[5], NAMES[9]} <= set(case.events())


def test_what_is_damaged_is_reported_and_the_rest_can_be_used(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0, 1))
        file.stage(records(2))
    data = bytearray(case.file.read_bytes())
    data[data.index(NAMES[1].encode())] ^= 1
    case.file.write_bytes(data)
    with case.open() as file:
        assert file.recovered == 0
        assert [bad.number for bad in file.ledger.damaged] == [3]
        assert set(file.ledger.entries) == {NAMES[0], NAMES[2]}
        file.stage(records(3))
    found = read_ledger(case.folder)
    assert found is not None
    assert [bad.number for bad in found.damaged] == [3]
    assert set(found.entries) == {NAMES[0], NAMES[2], NAMES[3]}


@pytest.mark.parametrize("programs", [1, 3])
def test_the_last_line_that_was_synced_is_damaged_and_not_torn_if_it_is_bad(case: Case, programs: int) -> None:
    for number in range(programs):
        with case.open() as file:
            file.stage(records(number))
    with case.open() as file:
        file.note(PURGING, [NAMES[0]], durable=True)
    data = bytearray(case.file.read_bytes())
    data[data.index(b"purging")] ^= 1
    case.file.write_bytes(data)
    with case.open() as file:
        assert (file.recovered, len(file.ledger.damaged)) == (0, 1)
        assert file.ledger.entries[NAMES[0]].in_doubt, "it may have been half emptied"
    assert case.file.read_bytes() == data


def test_what_was_never_synced_is_torn_if_it_is_bad(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0))
        file.note(RESTORED, NAMES[:1], durable=False)
    data = bytearray(case.file.read_bytes())
    data[data.index(b"restored")] ^= 1
    case.file.write_bytes(data)
    with case.open() as file:
        assert (file.recovered > 0, file.ledger.damaged) == (True, [])
    assert case.events() == {NAMES[0]: STAGED}


def test_a_purge_that_ended_before_it_touched_it_leaves_it_as_it_was(case: Case) -> None:
    with case.open() as file:
        file.stage(records(0, 1))
        file.note(PURGING, NAMES[:2], durable=True)
        file.note(KEPT, NAMES[1:2], durable=False)
        assert [entry.may_be_partly_purged for entry in file.ledger.entries.values()] == [True, False]
    assert case.events() == {NAMES[0]: PURGING, NAMES[1]: STAGED}


def test_a_copy_of_the_folder_by_hard_links_does_not_change_with_it(case: Case, tmp_path: Path) -> None:
    with case.open() as file:
        file.stage(records(0))
    (tmp_path / "copy").mkdir()
    os.link(case.file, tmp_path / "copy" / LEDGER_FILE)
    before = case.file.read_bytes()
    with case.open() as file:
        file.stage(records(1))
        file.note(PURGING, NAMES[:1], durable=True)
    assert (tmp_path / "copy" / LEDGER_FILE).read_bytes() == before
    assert case.events() == {NAMES[0]: PURGING, NAMES[1]: STAGED}
    assert case.file.stat().st_nlink == 1


def test_a_compaction_that_was_killed_leaves_the_former_file_and_the_next_one_makes_it_anew(case: Case) -> None:
    class Killed(Disk):
        def rename(self, source: int, name: str, target: int, new_name: str) -> None:
            raise KeyboardInterrupt

    with case.open() as file:
        file.stage(records(*range(8)))
    with case.open(Killed()) as file, pytest.raises(KeyboardInterrupt):
        file.compact([NAMES[5]], 3)
    assert sorted(path.name for path in case.path.iterdir()) == [LEDGER_FILE, LEDGER_FILE + TEMPORARY]
    assert len(case.events()) == 8
    with case.open() as file:
        assert file.compact([NAMES[5]], 3)
        file.stage(records(9))
    assert [path.name for path in case.path.iterdir()] == [LEDGER_FILE]
    assert case.events() == {NAMES[5]: STAGED, NAMES[9]: STAGED}


def test_what_is_damaged_stays_reported_after_a_compaction(case: Case) -> None:
    with case.open() as file:
        file.stage(records(*range(8)))
    data = bytearray(case.file.read_bytes())
    data[data.index(NAMES[1].encode())] ^= 1
    case.file.write_bytes(data)
    with case.open() as file:
        assert file.compact([NAMES[0], NAMES[5]], 3)
        assert len(file.ledger.damaged) == 1
        assert [entry.in_doubt for entry in file.ledger.entries.values()] == [True, False]


@pytest.fixture
def ledgers(case: Case) -> Iterator[Ledgers]:
    made = Ledgers(Disk())
    yield made
    made.close()
    made.close()


def test_each_ledger_is_opened_once_and_made_only_on_demand(case: Case, ledgers: Ledgers) -> None:
    assert ledgers.find(case.folder) is None
    assert not case.file.exists()
    opened = ledgers.of(case.folder)
    assert ledgers.find(case.folder) is opened
    with Directory.open(str(case.path)) as again:
        assert ledgers.of(again) is opened


def test_where_all_is_over_every_name_is_free_again(case: Case, ledgers: Ledgers) -> None:
    with case.open() as file:
        file.stage(records(0, 1))
        file.note(RESTORED, NAMES[:1], durable=False)
        file.note(PURGED, NAMES[1:2], durable=False)
    assert ledgers.of(case.folder).ledger.entries == {}
    ledgers.of(case.folder).stage(records(0, 1))


def test_where_something_is_left_a_few_lines_that_are_over_stay(case: Case, ledgers: Ledgers) -> None:
    with case.open() as file:
        file.stage(records(0, 1, 2))
        file.note(PURGED, NAMES[:2], durable=False)
    assert set(ledgers.of(case.folder).ledger.entries) == set(NAMES[:3])


def test_what_was_not_synced_is_synced_once_when_all_are(case: Case) -> None:
    disk = DiskThat()
    ledgers = Ledgers(disk)
    file = ledgers.of(case.folder)
    file.stage(records(0))
    assert file.is_durable
    file.note(PURGED, NAMES[:1], durable=False)
    assert not file.is_durable
    before = disk.calls["sync"]
    ledgers.sync()
    assert file.is_durable
    ledgers.sync()
    assert disk.calls["sync"] == before + 1
    ledgers.close()


@pytest.mark.parametrize("events", [[RESTORED], [PURGED], [PURGING, PURGED]])
def test_where_most_is_over_it_is_compacted_when_it_is_opened(
    case: Case, ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch, events: list[LedgerEvent]
) -> None:
    monkeypatch.setattr(engine, "LEAST_DEAD_LINES", 3)
    (case.path / NAMES[7]).mkdir()
    with case.open() as file:
        file.stage(records(*range(8)))
        for event in events:
            file.note(event, NAMES[:7], durable=False)
    assert ledgers.of(case.folder).ledger.entries == {NAMES[7]: LedgerEntry(STAGED, record(7))}


def test_what_a_crash_has_brought_back_stays_in_it_when_all_is_over(case: Case, ledgers: Ledgers) -> None:
    (case.path / NAMES[0]).mkdir()
    with case.open() as file:
        file.stage(records(0, 1, 2))
        file.note(PURGED, NAMES[:3], durable=False)
    assert ledgers.of(case.folder).ledger.entries == {NAMES[0]: LedgerEntry(PURGED, record(0))}


def test_one_that_cannot_be_used_leaves_nothing_open(case: Case, ledgers: Ledgers) -> None:
    case.file.mkdir()
    before = open_descriptors()
    for use in (ledgers.of, ledgers.find):
        with pytest.raises(ChangeRefusedError, match=f"{case.file} is a directory"):
            use(case.folder)
    assert open_descriptors() == before


def test_a_link_or_a_ledger_of_a_later_release_is_not_used(case: Case, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(encode_header())
    case.file.symlink_to(target)
    later = b'["logstore-ledger",2]'
    for reason in (
        "is a symbolic link",
        r"is of another release: it says \[2\]; this release reads schema version 1 only",
    ):
        before = case.file.read_bytes()
        with pytest.raises(ChangeRefusedError, match=f"^{case.file} {reason}"):
            case.open()
        with pytest.raises(UnreadableFileError, match=f"^{reason}"):
            read_ledger(case.folder)
        assert case.file.read_bytes() == before
        case.file.unlink()
        case.file.write_bytes(b"%08x %b\n" % (crc32(later), later))


def test_the_folder_can_be_moved_with_its_ledger(case: Case, tmp_path: Path) -> None:
    with case.open() as file:
        file.stage(records(0))
    other = tmp_path / "other"
    other.mkdir()
    (other / LEDGER_FILE).write_bytes(case.file.read_bytes())
    with Directory.open(str(other)) as folder, LedgerFile.open(Disk(), folder) as file:
        assert file.ledger.entries[NAMES[0]].record == record(0)
        file.stage(records(1))
    assert TEMPORARY not in "".join(path.name for path in other.iterdir())
