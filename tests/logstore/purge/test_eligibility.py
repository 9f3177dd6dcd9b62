"""Which staged directories may be purged: those that are due by their own record, and that the rules select."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from layout.ours import STAGED_RECORD
from logstore.log_dir import FileHolder
from logstore.purge import PurgeRules, eligibility
from logstore.purge.report import KeepReason, KeptDirectory
from tests.logstore.engine import NOW_MS
from tests.logstore.purge.test_purge_removal import DUE_MS, NAME, Case, case, segment

__all__ = ["case"]


@pytest.mark.parametrize("now_ms", [DUE_MS - 1, NOW_MS - 1, 0])
def test_before_its_time_nothing_goes_not_even_when_the_clock_went_backwards(case: Case, now_ms: int) -> None:
    kept = case.empty(PurgeRules(now_ms))
    assert isinstance(kept, KeptDirectory)
    assert (kept.why, kept.due_ms) == (KeepReason.NOT_DUE, DUE_MS)
    assert len(case.names()) == 4


def test_before_its_time_it_goes_only_when_that_is_said(case: Case) -> None:
    case.remove(PurgeRules(NOW_MS, before_due=True))
    assert not case.directory.exists()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda record: record.unlink(), KeepReason.NO_RECORD),
        (lambda record: record.write_bytes(b"{}"), KeepReason.DAMAGED_RECORD),
        (lambda record: record.write_bytes(record.read_bytes().replace(b'"partition": 0', b'"partition": 1')),
         KeepReason.DAMAGED_RECORD),
        (lambda record: (record.unlink(), record.symlink_to("/etc/hostname")), KeepReason.DAMAGED_RECORD),
    ],
)  # fmt: skip
def test_without_a_valid_record_nothing_goes(case: Case, spoil: Callable[[Path], object], why: KeepReason) -> None:
    spoil(case.directory / STAGED_RECORD)
    kept = case.empty(PurgeRules(DUE_MS, before_due=True))
    assert isinstance(kept, KeptDirectory)
    assert kept.why is why
    assert (case.directory / "00000000000000000000.log").exists()


def test_an_empty_directory_without_a_record_is_what_a_crash_left_and_goes(case: Case) -> None:
    shutil.rmtree(case.directory)
    case.directory.mkdir()
    due = case.remove()
    assert due.record is None
    assert not case.directory.exists()


def test_only_what_is_meant_is_looked_at(case: Case) -> None:
    assert case.empty(PurgeRules(DUE_MS, only=lambda staged: staged.partition is None)) is None
    seen = []
    case.remove(PurgeRules(DUE_MS, only=lambda staged: bool(seen.append(staged.location)) or True))
    assert seen == [f"deleting/{NAME}"]


def test_a_directory_that_a_process_holds_can_be_left_alone(case: Case) -> None:
    case.holders[segment(case).stat().st_ino] = (FileHolder(42, "java"),)
    kept = case.empty(PurgeRules(DUE_MS, keep_held=True))
    assert isinstance(kept, KeptDirectory)
    assert (kept.why, kept.reason) == (KeepReason.IN_USE, "held open by process 42 (java)")
    assert len(case.names()) == 5


def test_the_step_is_a_gibibyte_where_nothing_is_said() -> None:
    assert PurgeRules(0).step_bytes == eligibility.STEP_BYTES == 1 << 30
