"""The changes of requests: which replica is restored, and the error number of each failure."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.topic import TopicPartition
from logstore import STALE_DELAY, KafkaError, LogStoreError
from logstore.fs import directory
from logstore.store import LogStore
from reconciler.broker import Broker, Effect, carry_out, dry_run_request
from reconciler.protocol import LeaderAndIsrRequest
from tests.logstore.conftest import LogDir
from tests.logstore.engine import DiskThat, opened
from tests.reconciler.protocol.control_requests import FULL, ORDERS, A, B, C, Sim, answer, leader_and_isr, state, topic

PAYMENTS = TopicPartition("payments", 3)
UNIQUE = "0123456789abcdef0123456789abcdef"


def started(sim: Sim, disk: DiskThat | None = None) -> LogStore:
    return sim.start(disk).store


def test_replicas_of_all_disks_are_staged_each_with_its_own_reason(sim: Sim) -> None:
    sim.put("orders-0", A, disk=0)
    sim.put("payments-3", B, disk=1)
    store = started(sim)
    reasons = {("orders", 0): ("STALE_ID", "one"), ("payments", 3): ("UNKNOWN_TOPIC", "other")}
    assert carry_out.stage(store, reasons, store.entries(), STALE_DELAY) == set(reasons)
    found = {str(each.partition): each.record.evidence for each in store.staged() if each.record is not None}
    assert found == {"orders-0": "one", "payments-3": "other"}


def test_what_changed_behind_our_back_is_not_staged(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    path = sim.put("orders-0", A)
    store = started(sim)
    (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(B))
    assert carry_out.stage(store, {("orders", 0): ("STALE_ID", "x")}, store.entries(), STALE_DELAY) == set()
    assert "orders-0 is not staged" in caplog.text and path.exists()


def test_a_broker_s_own_stray_is_brought_back_by_its_id(tmp_path: Path) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    log_dir.replica(f"orders-0.{UNIQUE}-stray", str(A), **{"00000000000000000000__log": 5})
    log_dir.replica(f"orders-1.{UNIQUE}-stray", None)
    with opened(log_dir.path) as store:
        found = carry_out.candidates(store, [(ORDERS, A), (TopicPartition("orders", 1), A), (PAYMENTS, A)])
        assert list(found) == [ORDERS]
        assert carry_out.restore_first(store, ORDERS, found[ORDERS]) is KafkaError.NONE
        assert store.get(ORDERS).topic_id == A
    assert (log_dir.path / "orders-0" / "00000000000000000000.log").stat().st_size == 5


def test_a_stray_whose_name_was_cut_is_known_by_its_id_and_partition(tmp_path: Path) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    topic = "x" * 240
    cut = topic[: 255 - len(f"-7.{UNIQUE}-stray")]
    log_dir.replica(f"{cut}-7.{UNIQUE}-stray", str(A))
    whole = TopicPartition(topic, 7)
    with opened(log_dir.path) as store:
        found = carry_out.candidates(store, [(whole, A)])
        assert carry_out.restore_first(store, whole, found[whole]) is KafkaError.NONE
        assert store.get(whole).topic_id == A


def test_what_cannot_come_back_lets_the_next_one_try(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    sim.put("orders-0", A)
    store = started(sim)
    store.stage([ORDERS], "TEST", "x")
    store.create(ORDERS, A)
    store.stage([ORDERS], "TEST", "x")
    found = carry_out.candidates(store, [(ORDERS, A)])[ORDERS]
    assert len(found) == 2
    shutil.rmtree(
        sim.paths[0] / found[0].location if found[0].log_dir == str(sim.paths[0]) else sim.paths[1] / found[0].location
    )
    assert carry_out.restore_first(store, ORDERS, found) is KafkaError.NONE
    assert "is not brought back" in caplog.text
    assert carry_out.restore_first(store, PAYMENTS, []) is None


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_what_a_disk_keeps_back_now_is_answered_and_not_replaced(sim: Sim, number: int) -> None:
    sim.put("orders-0", A, data=b"precious")
    disk = DiskThat(number)
    broker = sim.start(disk)
    answer(broker, leader_and_isr(FULL))
    disk.fails.add("rename")
    request = leader_and_isr(FULL, topic("orders", A, state(0, new=True)))
    assert answer(broker, request) == {"orders-0": 56}
    assert not [path for root in sim.paths for path in root.glob("orders-*")]
    disk.fails.clear()
    broker = sim.start(disk)
    assert answer(broker, request) == {"orders-0": 0}
    assert sim.data_of("orders-0") == b"precious"


def test_nothing_is_looked_for_where_nothing_is_wanted(sim: Sim) -> None:
    store = started(sim)
    for log_dir in store.log_dirs:
        log_dir.go_offline("it failed")
    assert carry_out.candidates(store, []) == {}
    assert carry_out.create(store, {}) == {}


def test_a_disk_that_cannot_be_listed_brings_nothing_back(sim: Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    sim.put("orders-0", A)
    store = started(sim)
    store.stage([ORDERS], "TEST", "x")

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr("logstore.staging.listing.find_staged", failing)
    assert carry_out.candidates(store, [(ORDERS, A)]) is None
    assert store.offline


def without(sim: Sim, broker: Broker) -> bool:
    """Whether no log dir has a live directory of the partition, on disk or in the store."""
    return not [path for root in sim.paths for path in root.glob("orders-*")] and broker.store.find(ORDERS) is None


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
@pytest.mark.parametrize(
    "sector",
    ["staged.json", partition_metadata.FILE_NAME, ".logstore_purging", "deleting", f"{A}_0"],
    ids=["record", "metadata", "note", "staging directory", "staged replica"],
)
def test_no_empty_replica_is_made_where_a_disk_refuses_to_be_read(
    sim: Sim, monkeypatch: pytest.MonkeyPatch, sector: str, number: int, new: bool
) -> None:
    sim.put("orders-0", A, data=b"precious")
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    request = leader_and_isr(FULL, topic("orders", A, state(0, new=new)))
    with monkeypatch.context() as patched:
        refuse_to_read(patched, sector, number)
        listed = sector not in ("deleting", f"{A}_0")
        assert foreseen(broker, request) == (({"orders-0": 56}, []) if listed else "the disk cannot be listed")
    broker = sim.start()  # after a dry run that took a disk offline
    with monkeypatch.context() as patched:
        refuse_to_read(patched, sector, number)
        assert answer(broker, request) == {"orders-0": 56}
        assert answer(broker, request) == {"orders-0": 56}, "the same request again makes none either"
        assert without(sim, broker)
    broker = sim.start()
    assert answer(broker, request) == {"orders-0": 0}
    assert sim.data_of("orders-0") == b"precious"


def foreseen(broker: Broker, request: LeaderAndIsrRequest) -> tuple[dict[str, int], list[Effect]] | str:
    """Answers and effects of a dry run."""
    try:
        response, effects = dry_run_request(broker.store, request, broker.node_id)
    except LogStoreError:
        return "the disk cannot be listed"
    return {f"{each.topic}-{one.partition}": one.error for each in response.topics for one in each.partitions}, effects


def refuse_to_read(patched: pytest.MonkeyPatch, name: str, number: int) -> None:
    """Let the system refuse to open an entry of this name, wherever it lies."""
    open_file, open_beneath = os.open, directory._open_beneath

    def refuse(path: object) -> None:
        if os.path.basename(str(path)) == name:
            raise OSError(number, os.strerror(number))

    def opened_file(path: str, *args: int, **kwargs: int) -> int:
        refuse(path)
        return open_file(path, *args, **kwargs)

    def opened_beneath(parent: int, path: str) -> int:
        refuse(path)
        return open_beneath(parent, path)

    patched.setattr(os, "open", opened_file)
    patched.setattr(directory, "_open_beneath", opened_beneath)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("step", ["create", "write", "sync", "rename", "unlink"])
def test_no_empty_replica_is_made_where_a_disk_fails_at_any_step_of_bringing_the_staged_one_back(
    tmp_path: Path, step: str, new: bool
) -> None:
    for after in range(100):
        sim = Sim(tmp_path / str(after))
        sim.put("orders-0", A, data=b"precious")
        answer(sim.start(), leader_and_isr(FULL))
        disk = DiskThat(errno.EIO)
        broker = sim.start(disk)
        disk.fails.add(step)
        disk.after = after
        request = leader_and_isr(FULL, topic("orders", A, state(0, new=new)))
        if answer(broker, request) == {"orders-0": 0}:
            break
        disk.fails.clear()  # it was one bad moment; the log dir stays offline
        assert answer(broker, request) == {"orders-0": 56}
        assert broker.store.find(ORDERS) is None
        assert len([path for root in sim.paths for path in root.glob("orders-*")]) <= 1, "none but the staged one"
        assert answer(sim.start(), request) == {"orders-0": 0}
        assert sim.data_of("orders-0") == b"precious"
    assert 0 < after < 99 or (step, after) == ("write", 0)


def test_a_stray_that_cannot_be_read_may_be_the_one_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir = LogDir(tmp_path / "data").identity()
    log_dir.replica(f"orders-0.{UNIQUE}-stray", str(A))
    with opened(log_dir.path) as store:
        refuse_to_read(monkeypatch, partition_metadata.FILE_NAME, errno.EIO)
        found = carry_out.candidates(store, [(ORDERS, A), (PAYMENTS, A)])
        assert list(found) == [ORDERS]
        assert carry_out.restore_first(store, ORDERS, found[ORDERS]) is KafkaError.KAFKA_STORAGE_ERROR
        assert not (log_dir.path / "orders-0").exists()


def test_each_replica_that_is_made_is_answered_for_itself(sim: Sim) -> None:
    sim.put("orders-0", A)
    store = started(sim)
    wanted = {ORDERS: A, PAYMENTS: B, TopicPartition("..", 0): C, TopicPartition("x" * 249, 2147483647): C}
    found = carry_out.create(store, wanted)
    assert found[ORDERS] == KafkaError.UNKNOWN_SERVER_ERROR
    assert found[PAYMENTS] == KafkaError.NONE
    assert store.get(PAYMENTS).topic_id == B


def test_an_id_is_written_once_and_never_over_another(sim: Sim) -> None:
    sim.put("orders-0", None)
    store = started(sim)
    assert carry_out.write_topic_ids(store, {ORDERS: A})[ORDERS] is KafkaError.NONE
    assert carry_out.write_topic_ids(store, {ORDERS: A})[ORDERS] is KafkaError.NONE
    assert carry_out.write_topic_ids(store, {ORDERS: B})[ORDERS] is KafkaError.INCONSISTENT_TOPIC_ID
    assert carry_out.write_topic_ids(store, {PAYMENTS: B})[PAYMENTS] is KafkaError.UNKNOWN_TOPIC_OR_PARTITION
