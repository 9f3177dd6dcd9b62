"""What the ledgers say of the directories in one staging root, and how an event gets into the right one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from layout.directory_name import parse, parse_staged
from layout.ours import LedgerEvent, StagedRecord, encode_mark
from layout.scheme import LEDGER_FILE
from logstore import ChangeRefusedError, DamagedRecordError
from logstore.errors import FailedReadError
from logstore.fs import Directory
from logstore.log_dir import FallbackRecords, Ledgers, LogDir, ReadOnlyLogDir
from logstore.staging import Placement, RootLedger, find_staged, note_event, open_staging_root
from tests.logstore.engine import (
    NOW_MS,
    ORDERS_ID,
    OTHER_ID,
    DiskThat,
    formatted,
    ledger_events,
    open_descriptors,
    write_ledger,
)

STAGED, RESTORED, PURGING, PURGED, KEPT = LedgerEvent
NAMES = [f"{ORDERS_ID}_{number}" for number in range(8)]
STRAY = f"orders-0.{'0123456789abcdef' * 2}-stray"


def record(partition: int = 0, path: str | None = None) -> StagedRecord:
    return StagedRecord(
        "orders", partition, ORDERS_ID, path or f"orders-{partition}", "STALE_ID", "why", NOW_MS, NOW_MS
    )


def of_a_later_release(folder: Path) -> None:
    text = b'["logstore-ledger",2]'
    (folder / LEDGER_FILE).write_bytes(b"%08x %b\n" % (crc32(text), text))


@dataclass
class Case:
    """A log dir of ours, its staging root, and a folder on another disk."""

    log_dir: LogDir
    root: Directory
    spare: Path

    @property
    def folder(self) -> Path:
        return Path(self.root.path)

    @property
    def fallback(self) -> FallbackRecords:
        return FallbackRecords(str(self.spare))

    def elsewhere(self) -> Path:
        """The folder of this log dir in the folder on another disk."""
        with self.fallback.ledger(self.log_dir.path, make=True) as made:
            assert made is not None
        (found,) = self.spare.iterdir()
        return found

    def read(self) -> RootLedger:
        return RootLedger(self.log_dir, self.root, self.fallback)

    def note(self, event: LedgerEvent, *names: str) -> None:
        note_event(self.log_dir, self.root, self.fallback, event, names, durable=True)


@pytest.fixture
def case(our_log_dir: Path, tmp_path: Path) -> Iterator[Case]:
    before = open_descriptors()
    (tmp_path / "spare").mkdir()
    with LogDir.open(str(our_log_dir)) as log_dir:
        root = open_staging_root(log_dir, Placement.INSIDE)
        assert root is not None
        with root:
            yield Case(log_dir, root, tmp_path / "spare")
    assert open_descriptors() == before


def test_without_a_ledger_nothing_is_known_and_none_is_made(case: Case) -> None:
    ledger = case.read()
    assert (ledger.problem, ledger.damaged, list(ledger.staged())) == (None, [], [])
    assert NAMES[0] not in ledger
    case.note(RESTORED, NAMES[0])
    assert list(case.folder.iterdir()) == list(case.spare.iterdir()) == []


def test_an_event_in_the_ledger_on_another_disk_is_durable_at_once_for_nobody_syncs_it_later(case: Case) -> None:
    write_ledger(case.elsewhere(), {NAMES[0]: record()})
    file = case.elsewhere() / LEDGER_FILE
    data = file.read_bytes()
    file.write_bytes(data + encode_mark(len(data)))  # so that opening it syncs nothing
    disk = DiskThat()
    fallback = FallbackRecords(str(case.spare), disk)
    note_event(case.log_dir, case.root, fallback, PURGING, [NAMES[0]], durable=False)
    assert disk.synced[-1] == str(file)


def test_the_newest_line_of_either_ledger_counts(case: Case) -> None:
    events = (STAGED, RESTORED, PURGING, PURGED)
    for folder, first in ((case.folder, 0), (case.elsewhere(), 4)):
        records = {NAMES[first + place]: record(first + place) for place in range(4)}
        write_ledger(folder, records, *((event, NAMES[first + place]) for place, event in enumerate(events) if place))
    ledger = case.read()
    assert all(name in ledger for name in NAMES)
    entries = [ledger.entry_of(name) for name in NAMES]
    assert [entry and entry.event for entry in entries] == [STAGED, None, PURGING, PURGED] * 2
    assert sorted(name for name, _ in ledger.staged()) == [NAMES[0], NAMES[4]]
    assert [ledger.is_whole(name) for name in NAMES] == [True, False, False, False] * 2
    assert not ledger.is_whole("another")


def test_an_event_goes_to_the_ledger_that_speaks_of_the_directory(case: Case) -> None:
    elsewhere = case.elsewhere()
    write_ledger(case.folder, {NAMES[0]: record(0)})
    write_ledger(elsewhere, {NAMES[1]: record(1), NAMES[2]: record(2)})
    case.note(PURGING, *NAMES[:4])
    assert ledger_events(case.folder) == {NAMES[0]: PURGING}
    assert ledger_events(elsewhere) == {NAMES[1]: PURGING, NAMES[2]: PURGING}
    case.note(KEPT, NAMES[1])
    assert ledger_events(elsewhere) == {NAMES[1]: STAGED, NAMES[2]: PURGING}
    case.note(PURGED, NAMES[1], NAMES[2])
    assert list(elsewhere.iterdir()) == [], "what is over is removed"


@pytest.mark.parametrize("further", ["own", "elsewhere"])
@pytest.mark.parametrize("event", [PURGING, RESTORED, PURGED])
def test_of_two_ledgers_that_speak_of_one_directory_the_one_that_lets_less_be_done_counts(
    case: Case, further: str, event: LedgerEvent
) -> None:
    # A disk that ran full while lines were written, or synced, may keep some that went to the other ledger then.
    for folder in (case.folder, case.elsewhere()):
        said = [(event, NAMES[0])] if (folder == case.folder) is (further == "own") else []
        write_ledger(folder, {NAMES[0]: record(0), NAMES[1]: record(1)}, *said)
    ledger = case.read()
    assert [name for name, _ in ledger.staged()] == [NAMES[1]]
    assert not ledger.is_whole(NAMES[0])
    case.note(PURGING, NAMES[1])
    assert ledger_events(case.folder)[NAMES[1]] == ledger_events(case.elsewhere())[NAMES[1]] == PURGING


@pytest.mark.parametrize("event", [PURGING, RESTORED, PURGED])
def test_of_two_stagings_under_one_name_the_later_one_counts_whatever_became_of_the_first(
    case: Case, event: LedgerEvent
) -> None:
    # The fallback folder was not given, or not mounted, when the name was used again.
    later = record(0)._replace(staged_ms=NOW_MS + 5000, due_ms=NOW_MS + 9000)
    write_ledger(case.elsewhere(), {NAMES[0]: record(0)}, (event, NAMES[0]))
    write_ledger(case.folder, {NAMES[0]: later})
    ledger = case.read()
    assert list(ledger.staged()) == [(NAMES[0], later)]
    assert ledger.is_whole(NAMES[0])


def test_where_one_of_two_ledgers_has_no_record_of_a_directory_it_is_in_doubt(case: Case) -> None:
    with case.fallback.ledger(case.log_dir.path, make=True) as other:
        assert other is not None
        other.note(PURGING, [NAMES[0]], durable=True)
    write_ledger(case.folder, {NAMES[0]: record(0)})
    entry = case.read().entry_of(NAMES[0])
    assert entry is not None
    assert (entry.event, entry.record, entry.in_doubt) == (STAGED, record(0), True)


def test_that_a_purge_left_a_directory_is_said_by_both_ledgers_or_by_none(case: Case) -> None:
    for folder in (case.folder, case.elsewhere()):
        write_ledger(folder, {NAMES[0]: record(0)}, (PURGING, NAMES[0]))
    refusing = FallbackRecords(str(case.spare), DiskThat(errno.EROFS, {"write"}))
    note_event(case.log_dir, case.root, refusing, KEPT, [NAMES[0]], durable=True)
    assert ledger_events(case.folder) == ledger_events(case.elsewhere()) == {NAMES[0]: PURGING}
    note_event(case.log_dir, case.root, refusing, RESTORED, [NAMES[0]], durable=True)
    assert ledger_events(case.folder) == {NAMES[0]: RESTORED}


def test_a_ledger_that_does_not_speak_of_a_directory_is_not_even_synced(case: Case) -> None:
    write_ledger(case.folder, {NAMES[0]: record(0)})
    write_ledger(case.elsewhere(), {NAMES[1]: record(1)})
    disk = DiskThat()
    case.log_dir.ledgers = Ledgers(disk)
    case.log_dir.ledgers.find(case.root)
    disk.calls.clear()
    case.note(PURGING, NAMES[1])
    assert disk.calls == {}
    case.log_dir.ledgers.close()
    assert ledger_events(case.elsewhere()) == {NAMES[1]: PURGING}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_an_event_that_cannot_be_written_is_an_error_and_leaves_what_was_said_before(case: Case, number: int) -> None:
    write_ledger(case.folder, {NAMES[0]: record(0)})  # without the space that is kept
    case.log_dir.ledgers = Ledgers(DiskThat(number, {"write"}))
    with pytest.raises(OSError, match=os.strerror(number)):
        case.note(PURGING, NAMES[0])
    opened = case.log_dir.ledgers.find(case.root)
    assert opened is not None
    assert opened.ledger.entries[NAMES[0]].event is STAGED
    assert ledger_events(case.folder) == {NAMES[0]: STAGED}


def test_a_ledger_that_cannot_be_used_is_an_error_that_names_it(case: Case) -> None:
    of_a_later_release(case.folder)
    before = (case.folder / LEDGER_FILE).read_bytes()
    with pytest.raises(ChangeRefusedError, match=f"{case.folder}/{LEDGER_FILE} is of another release"):
        case.note(PURGING, NAMES[0])
    assert (case.folder / LEDGER_FILE).read_bytes() == before


@pytest.mark.parametrize("where", ["own", "elsewhere", "both"])
def test_a_ledger_that_cannot_be_read_costs_its_own_entries_alone(case: Case, where: str) -> None:
    elsewhere = case.elsewhere()
    write_ledger(case.folder, {NAMES[0]: record(0)})
    write_ledger(elsewhere, {NAMES[1]: record(1)})
    if where != "elsewhere":
        of_a_later_release(case.folder)
    if where != "own":
        of_a_later_release(elsewhere)
    ledger = case.read()
    assert [ledger.is_whole(NAMES[0]), ledger.is_whole(NAMES[1])] == [where == "elsewhere", where == "own"]
    assert ledger.problem is not None
    with pytest.raises(DamagedRecordError, match="of another release"):
        ledger.record_of(parse_staged(NAMES[2]))


def test_a_stray_of_which_no_ledger_speaks_is_a_brokers_and_one_beside_an_unreadable_ledger_may_be_ours(
    case: Case,
) -> None:
    assert case.read().record_of(parse(STRAY)) is None
    of_a_later_release(case.folder)
    with pytest.raises(DamagedRecordError, match="so nothing says what it was"):
        case.read().record_of(parse(STRAY))


@pytest.mark.parametrize(
    "wrong", [record(1), record()._replace(topic_id=OTHER_ID), record(1)._replace(path="orders-0")]
)
def test_a_record_that_speaks_of_another_replica_is_not_believed(case: Case, wrong: StagedRecord) -> None:
    write_ledger(case.folder, {NAMES[0]: wrong})
    with pytest.raises(DamagedRecordError, match="its record speaks of"):
        case.read().record_of(parse_staged(NAMES[0]))


def test_a_record_that_leads_to_another_replica_of_a_broker_is_not_believed(log_dir: Any) -> None:
    folder = Path(f"{log_dir.path}.deleting")
    (folder / NAMES[0]).mkdir(parents=True)
    write_ledger(folder, {NAMES[0]: record(path="payments-0")})
    with ReadOnlyLogDir.open(str(log_dir.path)) as view:
        (found,) = find_staged(view)
    assert found.record is None
    assert "another replica's place" in (found.problem or "")


@pytest.mark.parametrize("name", ["../t-0", "..", ".", "t-0", "nothing/t-0", LEDGER_FILE])
def test_a_name_in_a_ledger_leads_nowhere(case: Case, name: str) -> None:
    write_ledger(case.folder, {name: record(), NAMES[0]: record()})
    ledger = case.read()
    assert ledger.record_of(parse_staged(NAMES[0])) == record()
    case.note(PURGING, name)
    assert [path.name for path in case.folder.iterdir()] == [LEDGER_FILE]


def test_damaged_lines_of_both_ledgers_are_told_by_file_and_number(case: Case) -> None:
    elsewhere = case.elsewhere()
    for folder in (case.folder, elsewhere):
        write_ledger(folder, {NAMES[0]: record(0), NAMES[1]: record(1)})
        data = (folder / LEDGER_FILE).read_bytes().replace(b"orders-0", b"orders-9")
        (folder / LEDGER_FILE).write_bytes(data + encode_mark(len(data)))
    ledger = case.read()
    reason = "cannot be read: it does not match its checksum"
    assert ledger.damaged == [
        f"line 2 of {case.folder}/{LEDGER_FILE} {reason}",
        f"line 2 of {elsewhere}/{LEDGER_FILE} {reason}",
    ]
    with pytest.raises(DamagedRecordError, match=r"no line in .* that can be read \(line 2 of"):
        ledger.record_of(parse_staged(NAMES[0]))


@pytest.mark.parametrize(("scheme", "is_sure"), [("flat", True), ("namespaced", False), ("by-topic-id", False)])
def test_a_record_surely_is_its_own_only_where_the_scheme_is_that_of_its_former_path(
    tmp_path: Path, scheme: str, is_sure: bool
) -> None:
    with LogDir.open(str(formatted(tmp_path / "disk", scheme=scheme))) as log_dir:
        root = open_staging_root(log_dir, Placement.INSIDE)
        assert root is not None
        with root:
            write_ledger(Path(root.path), {name: record(number) for number, name in enumerate(NAMES)})
            ledger = RootLedger(log_dir, root, FallbackRecords(None))
            assert (ledger.regular_record(NAMES[7]) == record(7)) is is_sure


def test_where_the_system_refuses_the_ledger_in_the_other_folder_that_is_the_cause(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise FailedReadError("cannot be read (Input/output error)")

    monkeypatch.setattr(FallbackRecords, "read", fails)
    with pytest.raises(DamagedRecordError, match="Input/output error") as error:
        case.read().record_of(parse(STRAY))
    assert isinstance(error.value.__cause__, FailedReadError)
