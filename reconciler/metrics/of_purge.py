"""Readings of a purge, under way and at its end: what went, what is left, and from when on.

Pure, and loads nothing heavy, as a purge does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reconciler.metrics import families as of
from reconciler.metrics.families import Readings, broker_label

if TYPE_CHECKING:
    from logstore.purge import LogDirPurge


def read_purge(
    readings: Readings, reports: Iterable[LogDirPurge], brokers: Mapping[str, tuple[str, int]], *, dry_run: bool
) -> None:
    """Take in the result of a purge.

    Args:
        readings: to be added to.
        reports: one for each log dir.
        brokers: path of a log dir → cluster and node.id of its broker, where it has one.
        dry_run: nothing was deleted: what is due waits still.
    """
    readings.add(of.PURGE_RUNNING, 0)
    for report in reports:
        cluster, node = brokers.get(report.log_dir, ("", -1))
        place = (cluster, broker_label(node), report.log_dir)
        due = report.waiting + len(report.failures) + (len(report.purged) if dry_run else 0)
        outcomes = {
            "purged": 0 if dry_run else len(report.purged),
            "not_due": report.not_due,
            "waiting": report.waiting,
            "kept": len(report.kept),
            "failed": len(report.failures),
        }
        for outcome, number in outcomes.items():
            readings.add(of.PURGE_DIRECTORIES, number, *place, outcome)
        readings.add(of.STAGED, report.not_due, *place, "waiting")
        readings.add(of.STAGED, due, *place, "due")
        if report.next_due_ms is not None:
            readings.least(of.FIRST_DUE, report.next_due_ms / 1000, *place)
        readings.add(of.PURGE_COMPLETE, report.is_whole and not report.waiting, *place)
        readings.add(of.PURGE_EXPECTED_BYTES, report.expected_bytes, *place)
        readings.add(of.PURGE_HELD_BYTES, report.held_open_bytes, *place)
        if report.freed_bytes is not None:
            readings.add(of.PURGE_FREED_BYTES, report.freed_bytes, *place)


def read_purge_under_way(readings: Readings, directories: int, bytes_: int, now_s: float) -> None:
    """Take in what a purge has removed up to now, a time in seconds since 1970."""
    readings.add(of.PURGE_RUNNING, 1)
    readings.add(of.PURGE_REMOVED, directories)
    readings.add(of.PURGE_REMOVED_BYTES, bytes_)
    readings.add(of.PURGE_PROGRESS_TIME, now_s)
