"""What the batches of one call share: free names in the staging root, and how a record is made."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from layout.ids import TopicId
from logstore.log_dir import LogDir
from logstore.staging import FallbackRecords, Placement
from logstore.staging.session import StagingMove, StagingSession
from tests.logstore.engine import NOW_MS, ORDERS, ORDERS_ID, DiskThat, candidate, fill


@pytest.fixture
def log_dir(our_log_dir: Path) -> Iterator[LogDir]:
    fill(our_log_dir / "orders-0")
    with LogDir.open(str(our_log_dir)) as opened:
        yield opened


@pytest.fixture
def session(log_dir: LogDir) -> Iterator[StagingSession]:
    with ExitStack() as opened:
        yield StagingSession(log_dir, Placement.INSIDE, FallbackRecords(None), NOW_MS, opened)


def test_no_two_batches_of_a_call_get_one_name(session: StagingSession) -> None:
    names = [session.free_name(ORDERS, TopicId.ZERO), session.free_name(ORDERS, TopicId.ZERO)]
    assert names == [f"{TopicId.ZERO}_0", f"{TopicId.ZERO}_0.2"]


def test_names_that_are_taken_are_listed_once_when_there_are_many(log_dir: LogDir) -> None:
    taken = Path(log_dir.path, "deleting", f"{ORDERS_ID}_0")
    taken.mkdir()
    with ExitStack() as opened:
        session = StagingSession(log_dir, Placement.INSIDE, FallbackRecords(None), NOW_MS, opened, many=True)
        taken.rename(taken.with_name("gone"))
        assert session.free_name(ORDERS, ORDERS_ID) == f"{ORDERS_ID}_0.2"
        assert session.free_name(ORDERS, TopicId.ZERO) == f"{TopicId.ZERO}_0"


def test_a_name_that_is_given_back_is_free_again(session: StagingSession) -> None:
    name = session.free_name(ORDERS, ORDERS_ID)
    move = StagingMove(candidate(), session.record(candidate(), {}), session.parent(""), "orders-0", 0, name)
    session.taken.add(move.candidate.path)
    session.give_back(move)
    assert (session.free_name(ORDERS, ORDERS_ID), session.taken) == (name, set())


def test_no_two_files_of_a_call_have_one_number(session: StagingSession) -> None:
    assert [session.next_number() for _ in range(3)] == [0, 1, 2]
    assert session.files == 3


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_files_that_may_come_back_are_left_to_recovery_unless_the_disk_fails(
    session: StagingSession, log_dir: LogDir, number: int
) -> None:
    log_dir.disk = DiskThat(number, {"sync"})
    with nullcontext() if number == errno.EACCES else pytest.raises(OSError, match="Input/output error"):
        session.forget_files()
    assert log_dir.leave_unclean == (number == errno.EACCES)


def test_offsets_of_the_checkpoints_come_before_those_that_were_kept(session: StagingSession, log_dir: LogDir) -> None:
    log_dir.checkpoints.give_back(ORDERS, {"recovery-point-offset-checkpoint": 7})
    kept = {"recovery-point-offset-checkpoint": 1, "log-start-offset-checkpoint": 3}
    record = session.record(candidate(), kept)
    assert record.checkpoints == {"recovery-point-offset-checkpoint": 7, "log-start-offset-checkpoint": 3}
    assert record.due_ms - record.staged_ms == candidate().delay_ms


def test_evidence_is_cut_so_that_a_reader_takes_the_record(session: StagingSession) -> None:
    record = session.record(replace(candidate(), evidence="x" * 10_000), {})
    assert len(record.evidence) == 4096
