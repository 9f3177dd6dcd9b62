"""Staging and restoring, crashed and failed at every step: each replica is live or staged, whole, and comes back."""

from __future__ import annotations

import errno
import importlib
import shutil
from collections.abc import Sequence
from dataclasses import replace

import pytest

from logstore.fs import Disk
from logstore.log_dir import LogDir, fallback_records
from logstore.purge import PurgeRules, purge
from logstore.staging import Staged, adopt_stray, forget_stray, list_staged
from logstore.store import LogStore
from tests.crash.broken_disks import NoDirectorySynced, NoFileSynced, NothingSynced
from tests.crash.engine_histories import (
    HOUR_MS,
    IN_PLACE,
    NOW_MS,
    ONE,
    OURS,
    SIBLING,
    STRAY,
    Broker,
    Kind,
    MarkNotingDisk,
    expected_offsets,
    history,
    is_live,
    noting,
    offsets_of,
    opened,
    orders,
    stray_name,
    using,
    wanted,
)
from tests.crash.failing_disk import FullBelow
from tests.crash.histories import NUMBERS, Done, Driver, History, WrongError
from tests.crash.images import Tree, read_tree, write_tree
from tests.crash.recording_disk import RecordingDisk
from tests.crash.replicas import FALLBACK, assert_each_is_told, begun, below, entries, records
from tests.crash.staging_acts import restore, said_is_so, stage

KINDS = pytest.mark.parametrize("kind", [OURS, SIBLING, IN_PLACE], ids=str)
OTHERS = [number for number in NUMBERS if number != errno.ENOSPC]
MANY = 5
"""Enough replicas that their lines do not fit into the space that a ledger keeps."""


def one(kind: Kind) -> History:
    broker = Broker(kind).live(orders(0)).live(orders(1))
    return history("stage one", broker, lambda store, done: stage(store, done, orders(0)), said_is_so)


def many(kind: Kind, count: int = MANY) -> History:
    broker = Broker(kind)
    for number in range(count):
        broker.live(orders(number))
    partitions = [orders(number) for number in range(count)]
    act = lambda store, done: stage(store, done, *partitions)  # noqa: E731 - it is nothing but that call
    return history(f"stage {count}", broker, act, said_is_so, many_ends=True)


def by_batches(kind: Kind) -> History:
    """Many replicas; each counts as staged as soon as its batch is reported."""
    broker = Broker(kind)
    for number in range(MANY):
        broker.live(orders(number))

    def act(store: LogStore, done: Done) -> None:
        def on_committed(batch: Sequence[Staged]) -> None:
            for staged in batch:
                done(f"staged {staged.partition}")

        reason = ("STALE_ID", "the cluster has it under another ID")
        wanted(store.stage_each(dict.fromkeys(map(orders, range(MANY)), reason), on_committed=on_committed), store)

    return history("stage by batches", broker, act, said_is_so, many_ends=True)


def and_back(kind: Kind) -> History:
    def act(store: LogStore, done: Done) -> None:
        stage(store, done, orders(0))
        (staged,) = [each for each in store.staged() if each.partition == orders(0)] or [None]
        if staged is None:
            store.get(orders(0))
            raise AssertionError("what was staged is not listed")
        done(f"about to restore {orders(0)}")
        store.restore(staged)
        done(f"restored {orders(0)}")

    return history("stage and restore", Broker(kind).live(orders(0)).live(orders(1)), act, said_is_so)


def there_and_back_and_there(kind: Kind) -> History:
    """Staged, restored and staged again by one process, and restored and staged by the next, which starts a new file.

    The next process finds nothing but lines that are over, so it begins with a ledger in which every name is free.
    """

    def act(store: LogStore, done: Done) -> None:
        stage(store, done, orders(0))
        restore(store, done, orders(0))
        done(f"about to stage {orders(0)}")
        stage(store, done, orders(0))

    first = history("stage again", Broker(kind).live(orders(0)).live(orders(1)), act, said_is_so, many_ends=True)

    def twice(root: str, disk: Disk, done: Done) -> None:
        first.act(root, disk, done)
        with using(root, disk) as store:
            restore(store, done, orders(0))
        with using(root, disk) as store:
            done(f"about to stage {orders(0)}")
            stage(store, done, orders(1), orders(0))

    return replace(first, act=twice)


def stray(kind: Kind) -> History:
    """A stray that the broker left gets a due time, loses it again, and gets another one."""

    def act(store: LogStore, done: Done) -> None:
        log_dir = store.log_dirs[0]
        for what in ("adopted", "forgotten", "adopted"):
            (found,) = list_staged(log_dir)
            if what == "adopted":
                adopt_stray(log_dir, found, (STRAY, "a broker set it aside"), NOW_MS, HOUR_MS)
            else:
                forget_stray(log_dir, found)
            done(what)

    path = f"{ONE}/{stray_name(orders(0))}"

    def with_its_due_time(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        record = records(after).get(path)
        assert path in after
        if done[-1:] == ("adopted",):
            assert record is not None or done == ("adopted",), "only what was begun then takes it away"
        if record is not None:
            assert (record.verdict, record.due_ms, record.path) == (STRAY, NOW_MS + HOUR_MS, "orders-0")

    return history("adopt a stray", Broker(kind).live(orders(1)).stray(orders(0)), act, with_its_due_time)


@pytest.mark.parametrize("kind", [SIBLING, IN_PLACE], ids=str)
def test_a_stray_is_whole_and_has_its_due_time_or_none_whatever_happens(
    kind: Kind, crash: Driver, fail: Driver, crash_after_failure: Driver
) -> None:
    assert crash(stray(kind)).cases >= 15
    assert fail(stray(kind)).steps >= 10
    assert crash_after_failure(noting(stray(kind))).cases >= 20


@KINDS
def test_what_is_staged_again_and_again_is_live_or_staged_while_ledgers_are_replaced(
    kind: Kind, crash: Driver, fail: Driver
) -> None:
    assert crash(there_and_back_and_there(kind), bound=64).cases >= 60
    assert fail(noting(there_and_back_and_there(kind)), numbers=[errno.ENOSPC, errno.EIO]).steps >= 40


@pytest.mark.parametrize("broken", [NothingSynced, NoFileSynced, NoDirectorySynced])
def test_without_its_syncs_staging_would_lose_what_it_says(broken: type[RecordingDisk], crash: Driver) -> None:
    with pytest.raises(WrongError, match="LOST"):
        crash(one(OURS), recorder=broken)


@KINDS
def test_one_replica_is_live_or_staged_whenever_it_crashes(kind: Kind, crash: Driver) -> None:
    assert crash(one(kind)).cases >= 20


@KINDS
def test_one_replica_is_staged_or_nothing_was_changed_whichever_step_fails(kind: Kind, fail: Driver) -> None:
    assert fail(one(kind), numbers=OTHERS).steps >= 20


@KINDS
def test_one_replica_is_staged_or_nothing_was_changed_on_a_full_disk(kind: Kind, fail: Driver) -> None:
    # Where a broker's disk has no room for a staging root beside the log dir, replicas are staged in place.
    assert fail(replace(one(kind), many_ends=kind is SIBLING), numbers=[errno.ENOSPC]).steps >= 20


@KINDS
def test_one_replica_is_live_or_staged_when_a_failure_is_followed_by_a_crash(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(one(kind))).cases >= 40


@KINDS
def test_each_of_many_is_live_or_staged_whenever_it_crashes(kind: Kind, crash: Driver) -> None:
    assert crash(many(kind)).cases >= 100


@KINDS
def test_each_of_many_is_live_or_staged_whichever_step_fails(kind: Kind, fail: Driver) -> None:
    assert fail(many(kind)).steps >= 30


@KINDS
def test_each_of_many_is_live_or_staged_when_a_failure_is_followed_by_a_crash(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(many(kind)), bound=32).cases >= 100


@KINDS
def test_batches_are_as_safe_as_one(kind: Kind, crash: Driver, fail: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("logstore.staging.run"), "STAGING_BATCH_SIZE", 2)
    assert crash(by_batches(kind), bound=64).cases >= 100
    assert fail(by_batches(kind)).steps >= 30


def test_batches_are_as_safe_when_a_failure_is_followed_by_a_crash(
    crash_after_failure: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("logstore.staging.run"), "STAGING_BATCH_SIZE", 2)
    assert crash_after_failure(noting(by_batches(OURS)), bound=16).cases >= 100


@KINDS
def test_what_is_staged_and_restored_has_its_offsets_whenever_it_crashes(kind: Kind, crash: Driver) -> None:
    assert crash(and_back(kind)).cases >= 30


@KINDS
def test_what_is_staged_and_restored_has_its_offsets_whichever_step_fails(kind: Kind, fail: Driver) -> None:
    assert fail(replace(and_back(kind), many_ends=kind is SIBLING), numbers=[errno.ENOSPC]).steps >= 30
    assert fail(and_back(kind), numbers=OTHERS).steps >= 30


@KINDS
def test_what_is_staged_and_restored_has_its_offsets_when_a_failure_is_followed_by_a_crash(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(and_back(kind))).cases >= 60


def on_full_disk(kind: Kind, *, names: bool, has_ledger: bool = False) -> History:
    """Stage two replicas of a disk that is full, with records on another disk, and bring one of them back.

    Where there is a ledger already, the space that it keeps has room for one of them.
    """

    def act(store: LogStore, done: Done) -> None:
        stage(store, done, orders(0), orders(1))
        restore(store, done, orders(0))

    def still_in_checkpoints(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        said_is_so(before, after, [text for text in done if "staged" not in text])

    broker = Broker(kind).live(orders(0)).live(orders(1))
    broker.tree[f"two/{FALLBACK}"] = None
    if has_ledger:
        broker.staged(orders(2), NOW_MS + HOUR_MS)
    scenario = history("on a full disk", broker, act, still_in_checkpoints, fallback=f"two/{FALLBACK}", many_ends=True)

    def full(root: str, disk: Disk, done: Done) -> None:
        is_full = FullBelow(disk, f"{root}/one", names=names)
        scenario.act(root, MarkNotingDisk(is_full, done), done)

    def each_comes_back(root: str, done: tuple[str, ...]) -> None:
        scenario.check(root, done)
        tree = read_tree(root)
        for number in (0, 1):
            if is_live(tree, kind.path(orders(number))):
                continue
            copy = f"{root}.spare"
            write_tree(tree, copy)
            with opened(copy, fallback=f"two/{FALLBACK}") as store:
                (staged,) = [each for each in store.staged() if each.partition == orders(number)]
                store.restore(staged)
            home, after = kind.path(orders(number)), read_tree(copy)
            assert below(after, home) == below(broker.done(), home)
            assert offsets_of(after, ONE, orders(number)) == expected_offsets(orders(number))
            shutil.rmtree(copy)

    return replace(scenario, act=full, check=each_comes_back)


@KINDS
@pytest.mark.parametrize("names", [True, False], ids=["a name fits", "no name fits"])
def test_on_a_full_disk_the_record_lies_elsewhere_and_a_replica_still_comes_back(
    kind: Kind, names: bool, crash: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A copy that is checked has another path, and the folder for fallback records goes by the path of a log dir.
    monkeypatch.setattr(fallback_records, "_key", lambda log_dir: log_dir.split("/")[-2])
    assert crash(on_full_disk(kind, names=names)).cases >= 10


@KINDS
def test_on_a_full_disk_with_a_ledger_its_space_is_used_first_and_a_replica_still_comes_back(
    kind: Kind, crash: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallback_records, "_key", lambda log_dir: log_dir.split("/")[-2])
    scenario = on_full_disk(kind, names=False, has_ledger=True)
    assert crash(scenario).cases >= 10


@KINDS
def test_what_is_staged_by_a_ledger_elsewhere_is_purged_or_whole(
    kind: Kind, crash: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallback_records, "_key", lambda log_dir: log_dir.split("/")[-2])
    scenario = on_full_disk(kind, names=False)

    def purges(root: str, disk: Disk, done: Done) -> None:
        scenario.act(root, disk, done)
        spares = fallback_records.FallbackRecords(f"{root}/two/{FALLBACK}", disk)
        full = FullBelow(disk, f"{root}/one", names=False)
        with LogDir.open(f"{root}/{ONE}", disk=full) as log_dir:
            rules = PurgeRules(NOW_MS + 2 * HOUR_MS)
            (report,) = purge([log_dir], rules, workers=1, fallback=spares, look_at_processes=False).log_dirs
            assert (len(report.purged), report.is_whole) == (1, True)
        done("purged")

    def whole_or_purged(root: str, done: tuple[str, ...]) -> None:
        tree, home = read_tree(root), kind.path(orders(1))
        whole = below(Broker(kind).live(orders(1)).done(), home)
        staged = [path for path, entry in entries(tree).items() if entry.record and entry.record.partition == 1]
        for path in [*staged, *({home} & tree.keys())]:
            assert "purged" not in done
            assert below(tree, path) == whole or path in begun(tree), f"{path} is neither whole nor being purged"
        assert is_live(tree, kind.path(orders(0))) or f"restored {orders(0)}" not in done
        assert_each_is_told({}, tree)

    assert crash(replace(scenario, act=purges, check=whole_or_purged), bound=32).cases >= 20
