"""A purge, crashed and failed at every step: what is not due stays, and what is due has its record until it is gone."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from dataclasses import replace

import pytest

from layout.scheme import PURGE_NOTE_FILE, STAGING_DIR
from logstore import ChangeFailedError, OfflineLogDirError
from logstore.fs import Directory, Disk
from logstore.log_dir import StagingBeside
from logstore.log_dir.lock import Lock
from logstore.purge import PurgeRules, purge
from logstore.purge import batches as purge_batches
from logstore.purge import workers as purge_workers
from logstore.store import LogStore
from tests.crash.barriers import BARRIERS, AtOnce
from tests.crash.engine_histories import (
    CLICKS_ID,
    HOUR_MS,
    IN_PLACE,
    NO_MARK,
    NOW_MS,
    ONE,
    OURS,
    SIBLING,
    TWO,
    Broker,
    Kind,
    NoBarrier,
    history,
    noting,
    orders,
)
from tests.crash.failing_disk import FailingDisk
from tests.crash.histories import Done, Driver, History
from tests.crash.images import Tree, read_tree
from tests.crash.replicas import assert_nothing_staged_is_lost, below, records

KINDS = pytest.mark.parametrize("kind", [OURS, SIBLING, IN_PLACE], ids=str)
MANY = 5
"""So many are no few any more: one barrier serves them all."""

BOUND = 24
"""On combinations at one moment: the order of removals before the barrier does not matter, and they are many."""


def purge_due(store: LogStore, done: Done) -> None:
    """Purge, in one thread; what goes wrong stands in the report, and is raised here."""
    report = purge(store.log_dirs, PurgeRules(NOW_MS), workers=1, look_at_processes=False)
    for each in report.log_dirs:
        if each.error is not None:
            raise (OfflineLogDirError if store.offline else ChangeFailedError)(each.error)
    failures = [failure for each in report.log_dirs for failure in each.failures]
    if failures:
        raise ChangeFailedError("; ".join(failures))
    done("purged")


def purging(kind: Kind, count: int, *, noted: bool = False) -> History:
    """Some are due, one is not, and one is live. Where there was room, a note says what may be partly gone."""
    broker = Broker(kind).live(orders(count)).staged(orders(count + 1), NOW_MS + HOUR_MS, CLICKS_ID)
    for number in range(count):
        broker.staged(orders(number), NOW_MS - number)
    before = broker.done()
    due = [path for path, record in records(before).items() if record.is_due(NOW_MS)]
    assert len(due) == count

    def whole_or_with_its_record(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        assert_nothing_staged_is_lost(before, after, NOW_MS)
        for path in due:
            if path in after:
                assert "purged" not in done
                if not below(after, path):
                    continue  # the next purge takes it, for it is empty
                assert path in records(after), f"{path} is there, and nothing says any more when it may go"
                assert records(after)[path] == records(before)[path]
                assert below(after, path).items() <= below(before, path).items()
                if noted and below(after, path) != below(before, path):
                    home = ONE if kind is not SIBLING else f"{ONE}.{STAGING_DIR}"
                    assert f"{home}/{PURGE_NOTE_FILE}" in after, "half of it could be restored"

    return history(f"purge {count}", broker, purge_due, whole_or_with_its_record, due=due, many_ends=True)


def purge_beside(root: str, disk: Disk, done: Done = lambda text: None) -> None:
    """Purge as :func:`purge_due`, while a broker holds its log dirs, and see to it that nothing in them is touched."""
    paths = [f"{root}/{log_dir}" for log_dir in (ONE, TWO)]
    before = [read_tree(path) for path in paths]
    with ExitStack() as stack:
        for path in paths:
            stack.callback(Lock.take(stack.enter_context(Directory.open(path)), Disk()).release)
        opened = [stack.enter_context(StagingBeside.open(path, disk=disk)) for path in paths]
        report = purge(opened, PurgeRules(NOW_MS), workers=1, look_at_processes=False)
        for each in report.log_dirs:
            if each.error is not None:
                offline = any(log_dir.offline for log_dir in opened)
                raise (OfflineLogDirError if offline else ChangeFailedError)(each.error)
            if each.failures:
                raise ChangeFailedError("; ".join(each.failures))
    done("purged")
    assert [read_tree(path) for path in paths] == before


def purging_beside(count: int, *, noted: bool = False) -> History:
    """The same while the broker runs, which is stopped before the disks are recovered."""
    scenario = purging(SIBLING, count, noted=noted)
    return replace(scenario, name=f"{scenario.name}, which runs", act=purge_beside)


@pytest.mark.parametrize("count", [1, MANY])
def test_beside_a_running_broker_it_is_as_safe_and_its_log_dirs_are_not_touched(count: int, crash: Driver) -> None:
    assert crash(purging_beside(count, noted=True), bound=BOUND).cases >= 15


@pytest.mark.parametrize("count", [1, MANY])
def test_after_a_crash_beside_a_broker_that_still_runs_the_next_purge_ends_it(count: int, crash: Driver) -> None:
    scenario = purging_beside(count, noted=True)

    def gone(root: str, done: tuple[str, ...]) -> None:
        scenario.check(root, done)
        tree = read_tree(root)
        assert [path for path, record in records(tree).items() if record.is_due(NOW_MS)] == []

    assert crash(replace(scenario, recover=purge_beside, check=gone), bound=BOUND).cases >= 15


def test_whichever_step_fails_beside_a_running_broker_what_is_due_has_its_record_or_is_gone(
    fail: Driver, crash_after_failure: Driver
) -> None:
    assert fail(purging_beside(1)).steps >= 8
    assert fail(purging_beside(MANY)).steps >= 15
    assert crash_after_failure(purging_beside(1)).cases >= 20


@KINDS
@pytest.mark.parametrize("count", [1, MANY])
def test_whenever_it_crashes_what_is_due_has_its_record_or_is_gone(kind: Kind, count: int, crash: Driver) -> None:
    assert crash(purging(kind, count, noted=True), bound=BOUND).cases >= 20


@KINDS
def test_whichever_step_fails_what_is_due_has_its_record_or_is_gone(kind: Kind, fail: Driver) -> None:
    assert fail(purging(kind, 1)).steps >= 8
    assert fail(purging(kind, MANY)).steps >= 20


@KINDS
def test_when_a_failure_is_followed_by_a_crash_what_is_due_has_its_record_or_is_gone(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(purging(kind, 1))).cases >= 40


def test_where_no_call_syncs_a_file_system_a_purge_is_as_safe(crash: Driver) -> None:
    assert crash(purging(OURS, MANY), recorder=NoBarrier, bound=BOUND).cases >= 20


@BARRIERS
def test_batches_that_overlap_are_as_safe_as_one(
    barriers: type[AtOnce], crash: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_batches, "ThreadPoolExecutor", barriers)
    for size in ("PURGE_BATCH_SIZE", "_SMALLEST_BATCH"):
        monkeypatch.setattr(purge_workers, size, MANY)
    assert crash(purging(OURS, 2 * MANY, noted=True), bound=BOUND // 3).cases >= 100


@KINDS
def test_a_purge_needs_no_room_at_all(kind: Kind, scratch: str) -> None:
    """Every step that takes space fails from the first on, so that not even the mark can be made."""
    root, done = f"{scratch}/root", list[str]()
    os.mkdir(root)
    scenario = purging(kind, MANY)
    scenario.build(root)
    scenario.act(root, FailingDisk(2, errno.ENOSPC, lasting=True), done.append)
    assert done == ["purged"]
    scenario.check(root, (*done, NO_MARK))
