"""Purging by the store itself: all at once, step by step, and by a thread. KIP516-6."""

from __future__ import annotations

import threading
from pathlib import Path

from layout.topic import TopicPartition
from logstore.clock import ManualClock
from logstore.settings import DELETE_DELAY
from logstore.staging import Placement
from logstore.store import LogStore, StoreOptions
from tests.logstore.engine import HOUR_MS, NOW_MS, ORDERS_ID, fill, formatted, opened
from tests.patience import PATIENCE_S


def stocked(tmp_path: Path, clock: ManualClock) -> LogStore:
    """Two disks, three replicas on each, those of partition 0 and 1 staged."""
    store = opened(formatted(tmp_path / "1", 1), formatted(tmp_path / "2", 2), clock=clock)
    partitions = [TopicPartition("orders", number) for number in range(6)]
    for partition in partitions:
        store.create(partition, ORDERS_ID)
    store.stage(partitions[:2], "STALE_ID", "re-created")
    return store


def test_nothing_goes_before_it_is_due_and_everything_after(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    with stocked(tmp_path, clock) as store:
        assert not any(part.purged for part in store.purge().log_dirs)
        clock.advance(4 * HOUR_MS)
        assert sum(len(part.purged) for part in store.purge().log_dirs) == 2
        assert store.staged() == []
        assert len(store) == 4


def test_a_clock_that_goes_backwards_purges_nothing(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    with stocked(tmp_path, clock) as store:
        clock.advance(-HOUR_MS)
        store.purge()
        assert len(store.staged()) == 2


def test_a_simulation_purges_step_by_step(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    with stocked(tmp_path, clock) as store:
        assert store.purge_step() is None
        clock.advance(4 * HOUR_MS)
        gone = {store.purge_step(), store.purge_step()}
        assert {step.partition for step in gone if step is not None} == {
            TopicPartition("orders", 0),
            TopicPartition("orders", 1),
        }
        assert store.purge_step() is None


def test_a_thread_purges_when_something_becomes_due_and_not_before(tmp_path: Path, monkeypatch) -> None:
    clock, purged = ManualClock(NOW_MS), threading.Semaphore(0)
    real = LogStore._purge_due

    def once(store: LogStore, cancel: threading.Event) -> int | None:
        due = real(store, cancel)
        purged.release()
        return due

    monkeypatch.setattr(LogStore, "_purge_due", once)
    with stocked(tmp_path, clock) as store:
        store.start_purger()
        store.start_purger()
        assert purged.acquire(timeout=PATIENCE_S)
        assert len(store.staged()) == 2
        clock.advance(4 * HOUR_MS)
        while store.staged():
            assert purged.acquire(timeout=PATIENCE_S)
        store.stage([TopicPartition("orders", 2)], "STALE_ID", "re-created")
        clock.advance(4 * HOUR_MS)
        while store.staged():
            assert purged.acquire(timeout=PATIENCE_S)
    assert "purger" not in [thread.name for thread in threading.enumerate()]


def test_the_thread_wakes_for_the_first_that_is_due_on_any_disk(tmp_path: Path) -> None:
    with stocked(tmp_path, ManualClock(NOW_MS)) as store:
        assert store._purge_due(threading.Event()) == NOW_MS + 4 * HOUR_MS
        store.stage([TopicPartition("orders", 2)], "DELETED", "stopped", setting=DELETE_DELAY)
        assert store._purge_due(threading.Event()) == NOW_MS + 60_000


def test_where_staged_replicas_go_can_be_set_for_a_whole_store(tmp_path: Path, new_log_dir: type) -> None:
    theirs = new_log_dir(tmp_path / "theirs").identity(directory_id="AAAAAAAAA-gAAAAAAAAAAg")
    fill(theirs.path / "orders-0")
    ours = formatted(tmp_path / "ours", 1)
    fill(ours / "clicks-0", f"version: 0\ntopic_id: {ORDERS_ID}".encode())
    options = StoreOptions(clock=ManualClock(NOW_MS), jobs=0, placement=Placement.IN_PLACE)
    with LogStore.open([str(theirs), str(ours)], options) as store:
        staged = store.stage([TopicPartition("orders", 0), TopicPartition("clicks", 0)], "STALE_ID", "x").staged
    assert [each.placement for each in staged] == [Placement.IN_PLACE, Placement.INSIDE]
