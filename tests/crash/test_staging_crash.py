"""Staging and restoring, crashed and failed at every step: each replica is live or staged, whole, and comes back."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace

import pytest

from layout.topic import TopicPartition
from logstore.fs import Disk
from logstore.staging import Staged, fallback_records, pipeline, records
from logstore.store import LogStore
from tests.crash.barriers import BARRIERS, AtOnce, AtTheEnd
from tests.crash.engine_histories import (
    IN_PLACE,
    ONE,
    OURS,
    SIBLING,
    Broker,
    Kind,
    MarkNotingDisk,
    NoBarrier,
    NoBarrierDisk,
    expected_offsets,
    history,
    is_live,
    noting,
    offsets_of,
    opened,
    orders,
    staged_of,
    wanted,
)
from tests.crash.failing_disk import DiskAround
from tests.crash.histories import NUMBERS, Done, Driver, History
from tests.crash.images import Tree, read_tree
from tests.crash.replicas import below

KINDS = pytest.mark.parametrize("kind", [OURS, SIBLING, IN_PLACE], ids=str)
OTHERS = [number for number in NUMBERS if number != errno.ENOSPC]
MANY = 5
"""Enough replicas to share a file of records, and a barrier."""


def stage(store: LogStore, done: Done, *partitions: TopicPartition) -> None:
    wanted(store.stage(partitions, "STALE_ID", "the cluster has it under another ID"), store)
    for partition in partitions:
        done(f"staged {partition}")


def said_is_so(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
    """What the engine said it had done lasts, unless it said the opposite later."""
    for number in range(MANY + 1):
        said = [text.removesuffix(f" {orders(number)}") for text in done if text.endswith(f" {orders(number)}")]
        if said and said[-1] == "staged":
            assert len(staged_of(after, orders(number))) == 1, f"{orders(number)} is not staged, as was said"
        if said and said[-1] == "restored":
            assert not staged_of(after, orders(number)), f"{orders(number)} is staged, and was said to be back"


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


def test_many_are_staged_as_safely_where_no_call_syncs_a_file_system(crash: Driver, fail: Driver) -> None:
    assert crash(many(OURS), recorder=NoBarrier, bound=64).cases >= 100
    assert fail(many(OURS), inner=NoBarrierDisk).steps >= 40


def test_batches_that_overlap_are_as_safe_where_no_call_syncs_a_file_system(
    crash: Driver, fail: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ThreadPoolExecutor", AtTheEnd)
    monkeypatch.setattr(pipeline, "STAGING_BATCH_SIZE", 2)
    assert crash(by_batches(OURS), recorder=NoBarrier, bound=64).cases >= 100
    assert fail(by_batches(OURS), inner=NoBarrierDisk).steps >= 40


def test_records_in_several_files_are_as_safe(crash: Driver, fail: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "REPLICAS_PER_FILE", 3)
    assert crash(many(OURS)).cases >= 100
    assert fail(many(OURS)).steps >= 30


@BARRIERS
@pytest.mark.parametrize("kind", [OURS, SIBLING], ids=str)
def test_batches_that_overlap_are_as_safe_as_one(
    kind: Kind, barriers: type[AtOnce], crash: Driver, fail: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ThreadPoolExecutor", barriers)
    monkeypatch.setattr(pipeline, "STAGING_BATCH_SIZE", 2)
    assert crash(by_batches(kind), bound=64).cases >= 200
    assert fail(by_batches(kind)).steps >= 40


@BARRIERS
def test_batches_that_overlap_are_as_safe_when_a_failure_is_followed_by_a_crash(
    barriers: type[AtOnce], crash_after_failure: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ThreadPoolExecutor", barriers)
    monkeypatch.setattr(pipeline, "STAGING_BATCH_SIZE", 2)
    assert crash_after_failure(noting(by_batches(OURS)), bound=16).cases >= 200


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


class FullBelow(DiskAround):
    """Not one byte more fits below a directory, and no directory either; without ``names`` no new name at all."""

    def __init__(self, inner: Disk, path: str, *, names: bool) -> None:
        super().__init__(inner)
        self._path, self._names = path, names

    def _check(self, descriptor: int) -> None:
        if f"{os.readlink(f'/proc/self/fd/{descriptor}')}/".startswith(f"{self._path}/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def create(self, parent: int, name: str) -> int:
        if not self._names:
            self._check(parent)
        return self.inner.create(parent, name)

    def write(self, descriptor: int, data: bytes) -> None:
        if data:
            self._check(descriptor)
        self.inner.write(descriptor, data)

    def mkdir(self, parent: int, name: str) -> None:
        if name not in os.listdir(parent):
            self._check(parent)
        self.inner.mkdir(parent, name)


def on_full_disk(kind: Kind, *, names: bool) -> History:
    """Stage two replicas of a disk that is full, with records on another disk, and bring one of them back."""

    def act(store: LogStore, done: Done) -> None:
        stage(store, done, orders(0), orders(1))
        (staged,) = [each for each in store.staged() if each.partition == orders(0)]
        done(f"about to restore {orders(0)}")
        store.restore(staged)
        done(f"restored {orders(0)}")

    def still_in_checkpoints(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        said_is_so(before, after, [text for text in done if "staged" not in text])

    broker = Broker(kind).live(orders(0)).live(orders(1))
    broker.tree["two/spare"] = None
    scenario = history("on a full disk", broker, act, still_in_checkpoints, fallback="two/spare", many_ends=True)

    def full(root: str, disk: Disk, done: Done) -> None:
        is_full = FullBelow(disk, f"{root}/one", names=names)
        scenario.act(root, MarkNotingDisk(is_full, done), done)

    def each_comes_back(root: str, done: tuple[str, ...]) -> None:
        scenario.check(root, done)
        lost = [number for number in (0, 1) if not is_live(read_tree(root), kind.path(orders(number)))]
        for number in lost:
            copy = f"{root}.spare"
            shutil.copytree(root, copy)
            with opened(copy, fallback="two/spare") as store:
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
    # Each restart has another path here, and the folder for fallback records goes by the path of a log dir.
    monkeypatch.setattr(fallback_records, "_key", lambda log_dir: log_dir.path.split("/")[-2])
    assert crash(on_full_disk(kind, names=names)).cases >= 10
