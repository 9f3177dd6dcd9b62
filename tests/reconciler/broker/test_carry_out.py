"""What was decided is carried out; what cannot be done is answered with its error number, and not replaced."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.scheme import LEDGER_FILE
from layout.topic import TopicPartition
from logstore import STALE_DELAY, KafkaError, LogStoreError
from logstore.fs import directory
from logstore.store import LogStore
from reconciler.broker import Broker, Effect, carry_out, dry_run_request
from reconciler.broker.broker import decide
from reconciler.broker.decision import Decision, NamelessReplica, Outcome, StaleReplica, WantedReplica
from reconciler.broker.memory import BrokerMemory
from reconciler.protocol import LeaderAndIsrRequest
from tests.logstore.engine import DiskThat
from tests.reconciler.protocol.control_requests import FULL, ORDERS, A, B, C, Sim, answer, leader_and_isr, state, topic

PAYMENTS = TopicPartition("payments", 3)
UNIQUE = "0123456789abcdef0123456789abcdef"


def started(sim: Sim, disk: DiskThat | None = None) -> LogStore:
    return sim.start(disk).store


def test_replicas_of_all_disks_are_staged_each_with_its_own_reason(sim: Sim) -> None:
    sim.put("orders-0", A, disk=0)
    sim.put("payments-3", B, disk=1)
    store = started(sim)
    entries, outcome = store.entries(), Outcome()
    stale = {
        ("orders", 0): StaleReplica(entries["orders", 0], "STALE_ID", "one"),
        ("payments", 3): StaleReplica(entries["payments", 3], "UNKNOWN_TOPIC", "other"),
    }
    assert carry_out.stage(store, stale, STALE_DELAY, outcome) == set(stale)
    assert [(each.kind, each.evidence) for each in outcome.effects] == [("staged", "one"), ("staged", "other")]
    found = {str(each.partition): each.record.evidence for each in store.staged() if each.record is not None}
    assert found == {"orders-0": "one", "payments-3": "other"}


def test_what_changed_behind_our_back_is_not_staged(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    path = sim.put("orders-0", A)
    store = started(sim)
    (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(B))
    stale, outcome = {("orders", 0): StaleReplica(store.entries()["orders", 0], "STALE_ID", "x")}, Outcome()
    assert (carry_out.stage(store, stale, STALE_DELAY, outcome), outcome.effects) == (set(), [])
    assert "orders-0 is not staged" in caplog.text and path.exists()


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


def without(sim: Sim, broker: Broker) -> bool:
    """Whether no log dir has a live directory of the partition, on disk or in the store."""
    return not [path for root in sim.paths for path in root.glob("orders-*")] and broker.store.find(ORDERS) is None


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
@pytest.mark.parametrize(
    "sector",
    [LEDGER_FILE, "deleting"],
    ids=["ledger", "staging directory"],
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
        listed = sector != "deleting"
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
@pytest.mark.parametrize("step", ["create", "write", "sync", "rename"])
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


def wanted(place: int, at: TopicPartition, topic_id: TopicId) -> WantedReplica:
    return WantedReplica(place, at, topic_id, leader_epoch=0, may_be_elsewhere=False)


def test_each_replica_that_is_made_is_answered_for_itself(sim: Sim) -> None:
    sim.put("orders-0", A)
    store, outcome = started(sim), Outcome()
    places = [(ORDERS, A), (PAYMENTS, B), (TopicPartition("..", 0), C), (TopicPartition("x" * 249, 2147483647), C)]
    carry_out.create(store, [wanted(place, *each) for place, each in enumerate(places)], outcome)
    assert outcome.answers[0] == KafkaError.UNKNOWN_SERVER_ERROR
    assert set(outcome.answers) == {0, 2, 3}
    assert [(each.kind, each.key) for each in outcome.effects] == [("created", ("payments", 3))]
    assert store.get(PAYMENTS).topic_id == B


def test_an_id_is_written_once_and_never_over_another(sim: Sim) -> None:
    sim.put("orders-0", None)
    store = started(sim)

    def answer_to(at: TopicPartition, topic_id: TopicId) -> tuple[dict[int, int], int]:
        outcome = Outcome()
        carry_out.write_topic_ids(store, [NamelessReplica(0, at, topic_id, leader_epoch=0)], outcome)
        return outcome.answers, len(outcome.effects)

    assert answer_to(ORDERS, A) == ({}, 1)
    assert answer_to(ORDERS, A) == ({}, 1)
    assert answer_to(ORDERS, B) == ({0: KafkaError.INCONSISTENT_TOPIC_ID}, 0)
    assert answer_to(PAYMENTS, B) == ({0: KafkaError.UNKNOWN_TOPIC_OR_PARTITION}, 0)


def test_a_staged_replica_that_is_gone_when_its_turn_comes_is_not_replaced_by_an_empty_one(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    decision = decide(broker.store, leader_and_isr(FULL, topic("orders", A, 0)), 1, BrokerMemory())
    assert isinstance(decision, Decision)
    (staged,) = broker.store.staged()
    shutil.rmtree(Path(staged.log_dir, staged.location))
    outcome = carry_out.carry_out(broker.store, decision)
    assert (outcome.answers, outcome.effects) == ({0: 56}, [])
    assert without(sim, broker)


def test_a_partition_whose_stale_replica_stays_is_answered_56_and_gets_no_second_replica(sim: Sim) -> None:
    path = sim.put("orders-0", B)
    broker = sim.start()
    decision = decide(broker.store, leader_and_isr(FULL, topic("orders", A, 0)), 1, BrokerMemory())
    assert isinstance(decision, Decision)
    (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(C))  # it is not what was judged
    outcome = carry_out.carry_out(broker.store, decision)
    assert (outcome.answers, outcome.effects) == ({0: 56}, [])
    assert [each for root in sim.paths for each in root.glob("orders-*")] == [path]
