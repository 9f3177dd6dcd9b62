"""The report of a purge: its sums."""

from __future__ import annotations

from logstore.log_dir import FileHolder
from logstore.purge import LogDirPurge, Purged, PurgeReport
from logstore.purge.report import HeldFile, KeepReason, KeptDirectory


def test_only_what_is_not_due_is_counted_the_rest_is_listed() -> None:
    report = LogDirPurge("/disk")
    for due_ms in (30, 10, 20):
        report.keep(KeptDirectory("deleting/x", KeepReason.NOT_DUE, "its time has not come", due_ms))
    report.keep(KeptDirectory("deleting/y", KeepReason.NO_RECORD, "nothing says when it may go"))
    assert (report.not_due, report.next_due_ms) == (3, 10)
    assert [kept.location for kept in report.kept] == ["deleting/y"]


def test_expected_bytes_count_what_is_partly_gone_too() -> None:
    report = LogDirPurge("/disk", purged=[Purged("deleting/x", None, 2, 100)], partly_bytes=11)
    assert report.expected_bytes == 111


def test_a_file_that_two_processes_hold_counts_once() -> None:
    held = [HeldFile(FileHolder(pid, "java"), "deleting/x/0.log", 131, 7) for pid in (1, 2)]
    assert LogDirPurge("/disk", held=held).held_open_bytes == 7


def test_a_purge_is_whole_when_nothing_that_was_due_is_left() -> None:
    whole, stuck = LogDirPurge("/a", next_due_ms=5), LogDirPurge("/b", failures=["stuck"], next_due_ms=3)
    assert PurgeReport((whole,)).is_whole
    assert not PurgeReport((whole, stuck)).is_whole
    assert not LogDirPurge("/c", cancelled=True).is_whole
    assert not LogDirPurge("/d", error="offline").is_whole
    assert PurgeReport((whole, stuck)).next_due_ms == 3
    assert PurgeReport(()).next_due_ms is None


def test_what_was_empty_already_was_no_partition_that_anybody_knows() -> None:
    assert Purged("deleting/x", None, 0, 0).partition is None
