"""Which staged directories may be purged: those that are due by their own record, and that the rules select."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from layout.ours import LedgerEvent
from layout.scheme import LEDGER_FILE
from logstore.log_dir import FallbackRecords, FileHolder
from logstore.purge import PurgeRules, eligibility
from logstore.purge.eligibility import DueDirectory
from logstore.purge.report import KeepReason, KeptDirectory
from logstore.staging import note_event
from tests.logstore.engine import NOW_MS, ledger_entries, write_ledger
from tests.logstore.purge.test_purge import damage_line_of
from tests.logstore.purge.test_purge_removal import DUE_MS, NAME, Case, case, segment

__all__ = ["case"]


@pytest.mark.parametrize("now_ms", [DUE_MS - 1, NOW_MS - 1, 0])
def test_before_its_time_nothing_goes_not_even_when_the_clock_went_backwards(case: Case, now_ms: int) -> None:
    kept = case.judge(PurgeRules(now_ms))
    assert isinstance(kept, KeptDirectory)
    assert (kept.why, kept.due_ms) == (KeepReason.NOT_DUE, DUE_MS)
    assert len(case.names()) == 3


def test_before_its_time_it_goes_only_when_that_is_said(case: Case) -> None:
    case.remove(PurgeRules(NOW_MS, before_due=True))
    assert not case.directory.exists()


def of_another_partition(ledger: Path) -> None:
    """A valid line that speaks of another partition than the name does."""
    record = ledger_entries(ledger.parent)[NAME].record
    assert record is not None
    write_ledger(ledger.parent, {NAME: record._replace(partition=1, path="orders-1")})


def of_a_later_release(ledger: Path) -> None:
    text = b'["logstore-ledger",2]'
    ledger.write_bytes(b"%08x %b\n" % (crc32(text), text))


def into_a_link(ledger: Path) -> None:
    ledger.unlink()
    ledger.symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda ledger: ledger.unlink(), KeepReason.NO_RECORD),
        (lambda ledger: ledger.write_bytes(b""), KeepReason.NO_RECORD),
        (lambda ledger: damage_line_of(ledger.parent, NAME), KeepReason.DAMAGED_RECORD),
        (of_another_partition, KeepReason.DAMAGED_RECORD),
        (of_a_later_release, KeepReason.DAMAGED_RECORD),
        (into_a_link, KeepReason.DAMAGED_RECORD),
    ],
)
def test_without_a_valid_line_nothing_goes(case: Case, spoil: Callable[[Path], object], why: KeepReason) -> None:
    spoil(case.directory.parent / LEDGER_FILE)
    kept = case.judge(PurgeRules(DUE_MS, before_due=True))
    assert isinstance(kept, KeptDirectory)
    assert kept.why is why
    assert (case.directory / "00000000000000000000.log").exists()


def say(case: Case, event: LedgerEvent) -> None:
    with case.staging().root as root:
        note_event(case.log_dir, root, FallbackRecords(None), event, [NAME], durable=True)
    case.log_dir.ledgers.close()  # its descriptors are counted


def test_what_was_restored_and_lies_there_again_is_not_purged_by_the_old_line(case: Case) -> None:
    say(case, LedgerEvent.RESTORED)
    kept = case.judge(PurgeRules(DUE_MS, before_due=True))
    assert isinstance(kept, KeptDirectory)
    assert kept.why is KeepReason.DAMAGED_RECORD


@pytest.mark.parametrize("event", [LedgerEvent.PURGING, LedgerEvent.PURGED])
def test_what_was_begun_before_its_time_and_cut_short_is_finished_by_the_next_purge(
    case: Case, event: LedgerEvent
) -> None:
    """It cannot come back any more, and a full disk needs its room now."""
    say(case, event)
    case.remove(PurgeRules(NOW_MS))
    assert not case.directory.exists()


def test_what_was_begun_before_its_time_and_then_kept_waits_as_before(case: Case) -> None:
    say(case, LedgerEvent.PURGING)
    say(case, LedgerEvent.KEPT)
    kept = case.judge(PurgeRules(NOW_MS))
    assert isinstance(kept, KeptDirectory)
    assert kept.why is KeepReason.NOT_DUE


@pytest.mark.parametrize(("event", "begun"), [(None, False), (LedgerEvent.PURGING, True), (LedgerEvent.PURGED, True)])
def test_what_a_purge_has_begun_is_due_as_before_and_known_to_be_begun(
    case: Case, event: LedgerEvent | None, begun: bool
) -> None:
    if event is not None:
        say(case, event)
    due = case.judge()
    assert isinstance(due, DueDirectory)
    assert due.was_begun is begun


def test_an_empty_directory_without_a_line_is_what_a_crash_left_and_goes(case: Case) -> None:
    shutil.rmtree(case.directory)
    case.directory.mkdir()
    (case.directory.parent / LEDGER_FILE).unlink()
    due = case.remove()
    assert due.record is None
    assert not case.directory.exists()


def test_only_what_is_meant_is_looked_at(case: Case) -> None:
    assert case.judge(PurgeRules(DUE_MS, only=lambda staged: staged.partition is None)) is None
    seen = []
    case.remove(PurgeRules(DUE_MS, only=lambda staged: bool(seen.append(staged.location)) or True))
    assert seen == [f"deleting/{NAME}"]


def test_nothing_is_said_of_what_has_no_record_where_only_some_are_meant(case: Case) -> None:
    damage_line_of(case.directory.parent, NAME)
    assert isinstance(case.judge(), KeptDirectory)
    assert case.judge(PurgeRules(DUE_MS, only=lambda _: True)) is None


def test_a_directory_that_a_process_holds_can_be_left_alone(case: Case) -> None:
    case.holders[segment(case).stat().st_ino] = (FileHolder(42, "java"),)
    kept = case.judge(PurgeRules(DUE_MS, keep_held=True))
    assert isinstance(kept, KeptDirectory)
    assert (kept.why, kept.reason) == (KeepReason.IN_USE, "held open by process 42 (java)")
    assert len(case.names()) == 4


def test_the_step_is_a_gibibyte_where_nothing_is_said() -> None:
    assert PurgeRules(0).step_bytes == eligibility.STEP_BYTES == 1 << 30
