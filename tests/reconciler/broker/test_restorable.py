"""Which staged replica a request brings back, and what prevents it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.store import LogStore
from reconciler.broker.restorable import Found, candidates, first_restorable
from tests.logstore.conftest import LogDir
from tests.logstore.engine import opened
from tests.reconciler.broker.test_carry_out import PAYMENTS, UNIQUE, refuse_to_read
from tests.reconciler.protocol.control_requests import ORDERS, A, Sim


def restored(store: LogStore, at: TopicPartition, found: Found) -> None:
    assert found.staged is not None and found.back is not None
    back = store.restore(found.staged, at)
    assert (back.log_dir, back.path) == (found.back.log_dir, found.back.path)


def test_a_broker_s_own_stray_is_brought_back_by_its_id(tmp_path: Path) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    log_dir.replica(f"orders-0.{UNIQUE}-stray", str(A), **{"00000000000000000000__log": 5})
    log_dir.replica(f"orders-1.{UNIQUE}-stray", None)
    with opened(log_dir.path) as store:
        found = candidates(store, [(ORDERS, A), (TopicPartition("orders", 1), A), (PAYMENTS, A)])
        assert list(found) == [ORDERS]
        restored(store, ORDERS, first_restorable(store, ORDERS, found[ORDERS]))
        assert store.get(ORDERS).topic_id == A
    assert (log_dir.path / "orders-0" / "00000000000000000000.log").stat().st_size == 5


def test_a_stray_whose_name_was_cut_is_known_by_its_id_and_partition(tmp_path: Path) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    topic = "x" * 240
    cut = topic[: 255 - len(f"-7.{UNIQUE}-stray")]
    log_dir.replica(f"{cut}-7.{UNIQUE}-stray", str(A))
    whole = TopicPartition(topic, 7)
    with opened(log_dir.path) as store:
        found = candidates(store, [(whole, A)])
        restored(store, whole, first_restorable(store, whole, found[whole]))
        assert store.get(whole).topic_id == A


def test_what_cannot_come_back_lets_the_next_one_try(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    sim.put("orders-0", A)
    sim.put("payments-3", A)
    store = sim.start().store
    store.stage([ORDERS, PAYMENTS], "TEST", "x")
    mine, other = sorted(store.staged(), key=lambda each: str(each.partition))
    found = first_restorable(store, ORDERS, [other, mine])
    assert found.staged == mine
    assert "is not brought back" in caplog.text
    restored(store, ORDERS, found)
    assert first_restorable(store, PAYMENTS, []) == Found()


def test_nothing_is_looked_for_where_nothing_is_wanted(sim: Sim) -> None:
    store = sim.start().store
    for log_dir in store.log_dirs:
        log_dir.go_offline("it failed")
    assert candidates(store, []) == {}


def test_a_path_that_the_request_vacates_is_free(sim: Sim) -> None:
    sim.put("orders-0", A)
    store = sim.start().store
    store.stage([ORDERS], "TEST", "x")
    (staged,) = store.staged()
    Path(staged.log_dir, "orders-0").mkdir()
    assert first_restorable(store, ORDERS, [staged]) == Found()
    found = first_restorable(store, ORDERS, [staged], {(staged.log_dir, "orders-0")})
    assert found.back is not None and (found.back.log_dir, found.back.path) == (staged.log_dir, "orders-0")


def test_a_disk_that_cannot_be_listed_brings_nothing_back(sim: Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    sim.put("orders-0", A)
    store = sim.start().store
    store.stage([ORDERS], "TEST", "x")

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr("logstore.staging.listing.find_staged", failing)
    assert candidates(store, [(ORDERS, A)]) is None
    assert store.offline


def test_a_stray_that_cannot_be_read_may_be_the_one_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    log_dir.replica(f"orders-0.{UNIQUE}-stray", str(A))
    with opened(log_dir.path) as store:
        refuse_to_read(monkeypatch, partition_metadata.FILE_NAME, errno.EIO)
        found = candidates(store, [(ORDERS, A), (PAYMENTS, A)])
        assert list(found) == [ORDERS]
        assert first_restorable(store, ORDERS, found[ORDERS]) == Found(problem=KafkaError.KAFKA_STORAGE_ERROR)
        assert not (log_dir.path / "orders-0").exists()
