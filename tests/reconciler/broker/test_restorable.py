"""Which staged replica a request brings back, and what prevents it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from layout import partition_metadata
from layout.topic import TopicPartition
from logstore import ChangeRefusedError, KafkaError
from logstore.log_dir import LogDirView
from logstore.staging import Restored, planned_restore
from logstore.store import LogStore
from reconciler.broker import restorable
from reconciler.broker.restorable import RestorableReplica, choose_restorable, find_restorable
from tests.logstore.conftest import LogDir
from tests.logstore.engine import opened
from tests.reconciler.broker.test_carry_out import UNIQUE, refuse_to_read
from tests.reconciler.protocol.control_requests import ORDERS, A, B, Sim

ORDER_0, ORDER_1, PAYMENT_3 = ("orders", 0), ("orders", 1), ("payments", 3)


def restored(store: LogStore, at: TopicPartition, found: Sequence[RestorableReplica]) -> None:
    chosen, remarks = choose_restorable(found, ())
    assert chosen is not None and chosen.problem is None and remarks == []
    back = store.restore(chosen.staged, at)
    assert (back.log_dir, back.path) == (chosen.staged.log_dir, chosen.path)


def test_a_broker_s_own_stray_is_brought_back_by_its_id(tmp_path: Path) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    log_dir.replica(f"orders-0.{UNIQUE}-stray", str(A), **{"00000000000000000000__log": 5})
    log_dir.replica(f"orders-1.{UNIQUE}-stray", None)
    with opened(log_dir.path) as store:
        found = find_restorable(store, dict.fromkeys((ORDER_0, ORDER_1, PAYMENT_3), A))
        assert {key: len(each) for key, each in found.items()} == {ORDER_0: 1, ORDER_1: 0, PAYMENT_3: 0}
        restored(store, ORDERS, found[ORDER_0])
        assert store.get(ORDERS).topic_id == A
    assert (log_dir.path / "orders-0" / "00000000000000000000.log").stat().st_size == 5


def test_a_stray_whose_name_was_cut_is_known_by_its_id_and_partition(tmp_path: Path) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    topic = "x" * 240
    cut = topic[: 255 - len(f"-7.{UNIQUE}-stray")]
    log_dir.replica(f"{cut}-7.{UNIQUE}-stray", str(A))
    whole = TopicPartition(topic, 7)
    with opened(log_dir.path) as store:
        restored(store, whole, find_restorable(store, {(topic, 7): A})[topic, 7])
        assert store.get(whole).topic_id == A


def test_what_cannot_come_back_lets_the_next_one_try(
    sim: Sim, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim.put("orders-0", A, disk=0)
    sim.start().store.stage([ORDERS], "TEST", "x")
    sim.put("orders-0", A, disk=1)
    sim.clock.advance(1)
    store = sim.start().store
    store.stage([ORDERS], "TEST", "x")

    def refused_on_second(log_dir: LogDirView, *more: Any) -> Restored:
        if log_dir.path == str(sim.paths[1]):
            raise ChangeRefusedError("a purge may have emptied it")
        return planned_restore(log_dir, *more)

    monkeypatch.setattr(restorable, "planned_restore", refused_on_second)
    (found,) = find_restorable(store, {ORDER_0: A})[ORDER_0]
    assert found.staged.log_dir == str(sim.paths[0])
    assert "is not brought back: a purge may have emptied it" in caplog.text
    restored(store, ORDERS, [found])
    assert choose_restorable([], ()) == (None, [])


def test_nothing_is_looked_for_where_nothing_is_wanted(sim: Sim) -> None:
    store = sim.start().store
    for log_dir in store.log_dirs:
        log_dir.go_offline("it failed")
    assert find_restorable(store, {}) == {}


def test_a_path_that_the_request_vacates_is_free(sim: Sim) -> None:
    sim.put("orders-0", A)
    store = sim.start().store
    store.stage([ORDERS], "TEST", "x")
    (staged,) = store.staged()
    Path(staged.log_dir, "orders-0").mkdir()
    (found,) = find_restorable(store, {ORDER_0: A})[ORDER_0]
    chosen, (remark,) = choose_restorable([found], ())
    assert chosen is None and "is not brought back" in remark and "is there already" in remark
    assert choose_restorable([found], {(staged.log_dir, "orders-0")}) == (found, [])
    assert (found.staged.log_dir, found.path) == (staged.log_dir, "orders-0")


def test_a_disk_that_cannot_be_listed_brings_nothing_back_and_nothing_is_known(
    sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim.put("orders-0", A)
    store = sim.start().store
    store.stage([ORDERS], "TEST", "x")

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr("logstore.staging.listing.find_staged", failing)
    assert find_restorable(store, {ORDER_0: A}) == {}
    assert store.offline


def test_a_stray_that_cannot_be_read_may_be_the_one_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    log_dir.replica(f"orders-0.{UNIQUE}-stray", str(A))
    with opened(log_dir.path) as store:
        refuse_to_read(monkeypatch, partition_metadata.FILE_NAME, errno.EIO)
        found = find_restorable(store, {ORDER_0: A, PAYMENT_3: B})
        assert found[PAYMENT_3] == ()
        chosen, _ = choose_restorable(found[ORDER_0], ())
        assert chosen is not None and chosen.problem is KafkaError.KAFKA_STORAGE_ERROR
        assert not (log_dir.path / "orders-0").exists()
