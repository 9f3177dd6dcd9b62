"""A purge, crashed and failed at every step: what is not due stays, and what is due is whole, announced, or gone."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import ExitStack
from dataclasses import replace

import pytest

from logstore import ChangeFailedError, ChangeRefusedError, OfflineLogDirError
from logstore.fs import Directory, Disk
from logstore.log_dir import ReadOnlyLogDir, StagingBeside
from logstore.log_dir.lock import Lock
from logstore.purge import PurgeRules, purge
from logstore.staging import find_staged, planned_restore
from logstore.store import LogStore
from tests.crash.broken_disks import NoFileSynced
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
    MarkNotingDisk,
    history,
    noting,
    orders,
)
from tests.crash.failing_disk import FullBelow
from tests.crash.histories import NUMBERS, Done, Driver, History, WrongError
from tests.crash.images import Tree, read_tree
from tests.crash.replicas import assert_nothing_staged_is_lost, begun, below, entries, records

KINDS = pytest.mark.parametrize("kind", [OURS, SIBLING, IN_PLACE], ids=str)
OTHERS = [number for number in NUMBERS if number != errno.ENOSPC]
"""A disk without room for any line has none for what a purge that is cut short would have to say."""

MANY = 5
"""So many that their lines are cut short in several ways."""

BOUND = 24
"""On combinations at one moment: the order of removals before the sync does not matter, and they are many."""


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


def some_due(kind: Kind, count: int) -> Broker:
    """Some are due, one is not, and one is live."""
    broker = Broker(kind).live(orders(count)).staged(orders(count + 1), NOW_MS + HOUR_MS, CLICKS_ID)
    for number in range(count):
        broker.staged(orders(number), NOW_MS - number)
    return broker


def due_in(tree: Tree) -> list[str]:
    """What is staged and due, by path."""
    return [path for path, record in records(tree).items() if record.is_due(NOW_MS)]


def whole_or_announced(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
    """What was due is staged, whole; or the ledger says that a purge has begun; or it is gone."""
    assert_nothing_staged_is_lost(before, after, NOW_MS)
    for path in due_in(before):
        if path in after:
            assert "purged" not in done
            entry = entries(after).get(path)
            assert entry is not None, f"{path} is there, and nothing says any more when it may go"
            assert entry.record == records(before)[path]
            assert below(after, path).items() <= below(before, path).items()
            if below(after, path) != below(before, path):
                assert entry.may_be_partly_purged, f"half of {path} could be restored"


def never_restored(root: str) -> None:
    """No half of a replica comes back: what a purge has begun can only be purged."""
    for log_dir in (ONE, TWO):
        with ReadOnlyLogDir.open(f"{root}/{log_dir}") as view:
            for staged in find_staged(view):
                if staged.may_be_partly_purged:
                    with pytest.raises(ChangeRefusedError, match="can only be purged"):
                        planned_restore(view, staged)


def purging(kind: Kind, count: int) -> History:
    """Purge what is due."""
    broker = some_due(kind, count)
    due = due_in(broker.done())
    assert len(due) == count
    made = history(f"purge {count}", broker, purge_due, whole_or_announced, due=due, many_ends=True)

    def check(root: str, done: tuple[str, ...]) -> None:
        made.check(root, done)
        never_restored(root)

    return replace(made, check=check)


def cut_short(kind: Kind) -> History:
    """A purge of many that somebody stops after its first file. What it did not touch is staged as before."""

    def act(store: LogStore, done: Done) -> None:
        cancel = threading.Event()
        rules = PurgeRules(NOW_MS, cancel=cancel, progress=lambda directories, size: cancel.set())
        report = purge(store.log_dirs, rules, workers=1, look_at_processes=False)
        for each in report.log_dirs:
            if each.error is not None:
                raise (OfflineLogDirError if store.offline else ChangeFailedError)(each.error)
            if each.failures:
                raise ChangeFailedError("; ".join(each.failures))
        assert any(each.cancelled for each in report.log_dirs)
        done("cut short")

    broker = some_due(kind, MANY)
    due = due_in(broker.done())

    def only_one_is_touched(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        whole_or_announced(before, after, done)
        touched = [path for path in due if below(after, path) != below(before, path)]
        assert len(touched) <= 1
        assert all(path in after for path in due)
        if "closed" in done:
            assert set(touched) <= set(begun(after))
            assert len(begun(after)) <= 1, "what was not touched cannot be restored any more"

    made = history("purge, cut short", broker, act, only_one_is_touched, due=due, many_ends=True)

    def closed(root: str, disk: Disk, done: Done) -> None:
        made.act(root, disk, done)
        done("closed")

    return replace(made, act=closed)


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


def purging_beside(count: int) -> History:
    """The same while the broker runs, which is stopped before the disks are recovered."""
    scenario = purging(SIBLING, count)
    return replace(scenario, name=f"{scenario.name}, which runs", act=purge_beside)


@pytest.mark.parametrize("count", [1, MANY])
def test_beside_a_running_broker_it_is_as_safe_and_its_log_dirs_are_not_touched(count: int, crash: Driver) -> None:
    assert crash(purging_beside(count), bound=BOUND).cases >= 15


@pytest.mark.parametrize("count", [1, MANY])
def test_after_a_crash_beside_a_broker_that_still_runs_the_next_purge_ends_it(count: int, crash: Driver) -> None:
    scenario = purging_beside(count)
    due = due_in(some_due(SIBLING, count).done())

    def gone(root: str, done: tuple[str, ...]) -> None:
        scenario.check(root, done)
        tree = read_tree(root)
        assert [path for path in due if path in tree] == []

    assert crash(replace(scenario, recover=purge_beside, check=gone), bound=BOUND).cases >= 15


def test_whichever_step_fails_beside_a_running_broker_what_is_due_is_whole_or_announced_or_gone(
    fail: Driver, crash_after_failure: Driver
) -> None:
    assert fail(purging_beside(1)).steps >= 8
    assert fail(purging_beside(MANY)).steps >= 15
    assert crash_after_failure(purging_beside(1)).cases >= 20


@KINDS
@pytest.mark.parametrize("count", [1, MANY])
def test_whenever_it_crashes_what_is_due_is_whole_or_announced_or_gone(kind: Kind, count: int, crash: Driver) -> None:
    assert crash(purging(kind, count), bound=BOUND).cases >= 20


@KINDS
def test_whichever_step_fails_what_is_due_is_whole_or_announced_or_gone(kind: Kind, fail: Driver) -> None:
    assert fail(purging(kind, 1)).steps >= 8
    assert fail(purging(kind, MANY)).steps >= 20


@KINDS
def test_when_a_failure_is_followed_by_a_crash_what_is_due_is_whole_or_announced_or_gone(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(purging(kind, 1))).cases >= 40


@KINDS
def test_without_the_sync_that_announces_it_half_a_replica_could_be_restored(kind: Kind, crash: Driver) -> None:
    with pytest.raises(WrongError, match="LOST"):
        crash(purging(kind, 1), recorder=NoFileSynced, bound=BOUND)


@KINDS
def test_what_a_purge_that_is_cut_short_did_not_touch_is_restored_unless_it_crashed(
    kind: Kind, crash: Driver, fail: Driver
) -> None:
    assert crash(cut_short(kind), bound=BOUND).cases >= 20
    assert fail(cut_short(kind), numbers=OTHERS).steps >= 8


@KINDS
def test_on_a_full_disk_the_space_that_is_kept_for_it_announces_a_purge(kind: Kind, crash: Driver) -> None:
    scenario = purging(kind, 2)

    def full(root: str, disk: Disk, done: Done) -> None:
        scenario.act(root, MarkNotingDisk(FullBelow(disk, root, names=False), done), done)

    assert crash(replace(scenario, act=full), bound=BOUND).cases >= 20


@KINDS
def test_a_purge_needs_no_room_at_all(kind: Kind, scratch: str) -> None:
    """Every step that takes space fails, so that neither the mark nor a line can be written."""
    root, done = f"{scratch}/root", list[str]()
    os.mkdir(root)
    scenario = purging(kind, MANY)
    scenario.build(root)
    scenario.act(root, FullBelow(Disk(), root, names=False, in_place=False), done.append)
    assert done == ["purged"]
    scenario.check(root, (*done, NO_MARK))
