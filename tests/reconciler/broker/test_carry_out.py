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
from reconciler.broker import Broker, dry_run_request
from reconciler.broker.broker import decide
from reconciler.broker.carry_out import StoreExecutor, carry_out
from reconciler.broker.decision import ActionResult, DecidedAction, Decision, action_on
from reconciler.broker.memory import BrokerMemory
from reconciler.plan import Action, ActionKind
from reconciler.protocol import LeaderAndIsrRequest
from tests.logstore.engine import DiskThat
from tests.reconciler.protocol.control_requests import FULL, ORDERS, A, B, C, Sim, answer, leader_and_isr, state, topic

PAYMENTS = TopicPartition("payments", 3)
UNIQUE = "0123456789abcdef0123456789abcdef"


def staging(store: LogStore, at: TopicPartition, verdict: str, evidence: str) -> DecidedAction:
    key = (at.topic, at.partition)
    return DecidedAction(action_on(ActionKind.STAGE, key, store.entries()[key], None, (verdict, evidence)))


def making(kind: ActionKind, place: int, at: TopicPartition, topic_id: TopicId) -> DecidedAction:
    action = Action(kind, "", "", at.topic, at.partition, None, str(topic_id), "MISSING", "a test")
    return DecidedAction(action, place, leader_epoch=0)


def test_replicas_of_all_disks_are_staged_each_with_its_own_reason_and_result(sim: Sim) -> None:
    sim.put("orders-0", A, disk=0)
    sim.put("payments-3", B, disk=1)
    store = sim.start().store
    actions = [staging(store, ORDERS, "STALE_ID", "one"), staging(store, PAYMENTS, "UNKNOWN_TOPIC", "other")]
    results = StoreExecutor(store).stage(actions, STALE_DELAY)
    due_ms = sim.clock.now_ms() + store.settings.of("orders", STALE_DELAY)
    assert results == [
        ActionResult(each.action, str(path), f"deleting/{topic_id}_{each.action.partition}", due_ms)
        for each, path, topic_id in zip(actions, sim.paths, (A, B), strict=True)
    ]
    found = {str(each.partition): each.record.evidence for each in store.staged() if each.record is not None}
    assert found == {"orders-0": "one", "payments-3": "other"}


def test_a_healthy_replica_of_a_disk_that_fails_while_another_is_staged_is_answered_with_that(sim: Sim) -> None:
    sim.put("orders-0", A)
    sim.put("payments-3", B)
    failing = DiskThat(errno.EIO, below=sim.paths[0])
    broker = sim.start(failing)
    failing.fails.add("rename")
    asked = leader_and_isr(FULL, topic("orders", C, 0), topic("payments", B, 3))
    assert answer(broker, asked) == {"orders-0": 56, "payments-3": 56}


def test_what_is_not_new_is_not_made_anew_when_a_disk_fails_in_the_same_request(sim: Sim) -> None:
    sim.put("orders-0", A)
    failing = DiskThat(errno.EIO, below=sim.paths[0])
    broker = sim.start(failing)
    failing.fails.add("rename")
    asked = leader_and_isr(FULL, topic("orders", C, 0), topic("payments", B, 3))
    assert answer(broker, asked) == {"orders-0": 56, "payments-3": 56}
    assert not (sim.paths[1] / "payments-3").exists()


def test_what_changed_behind_our_back_is_not_staged_and_the_result_says_why(
    sim: Sim, caplog: pytest.LogCaptureFixture
) -> None:
    path = sim.put("orders-0", A)
    store = sim.start().store
    (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(B))
    (result,) = StoreExecutor(store).stage([staging(store, ORDERS, "STALE_ID", "x")], STALE_DELAY)
    assert (result.answer, result.location) == (56, "")
    assert f"orders-0 is not staged: {result.why_not}" in caplog.text and str(B) in result.why_not
    assert path.exists()


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


def foreseen(broker: Broker, request: LeaderAndIsrRequest) -> tuple[dict[str, int], list[ActionResult]] | str:
    """Answers and results of a dry run."""
    try:
        response, results = dry_run_request(broker.store, request, broker.node_id)
    except LogStoreError:
        return "the disk cannot be listed"
    return {f"{each.topic}-{one.partition}": one.error for each in response.topics for one in each.partitions}, results


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


def test_each_replica_that_is_made_is_answered_for_itself(sim: Sim) -> None:
    sim.put("orders-0", A)
    store = sim.start().store
    places = [(ORDERS, A), (PAYMENTS, B), (TopicPartition("..", 0), C), (TopicPartition("x" * 249, 2147483647), C)]
    results = StoreExecutor(store).create([making(ActionKind.CREATE, 0, *each) for each in places])
    assert results[0].answer == KafkaError.UNKNOWN_SERVER_ERROR
    assert [each.answer is None for each in results] == [False, True, False, False]
    assert [each.location for each in results] == ["", "payments-3", "", ""]
    assert all(each.why_not for each in results if each.answer is not None)
    assert store.get(PAYMENTS).topic_id == B


def test_an_id_is_written_once_and_never_over_another(sim: Sim) -> None:
    sim.put("orders-0", None)
    store = sim.start().store

    def answer_to(at: TopicPartition, topic_id: TopicId) -> int | None:
        (result,) = StoreExecutor(store).write_topic_ids([making(ActionKind.WRITE_TOPIC_ID, 0, at, topic_id)])
        return result.answer

    assert answer_to(ORDERS, A) is None
    assert answer_to(ORDERS, A) is None
    assert answer_to(ORDERS, B) == KafkaError.INCONSISTENT_TOPIC_ID
    assert answer_to(PAYMENTS, B) == KafkaError.UNKNOWN_TOPIC_OR_PARTITION


def test_a_staged_replica_that_is_gone_when_its_turn_comes_is_not_replaced_by_an_empty_one(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    decision = decide(broker.store, leader_and_isr(FULL, topic("orders", A, 0)), 1, BrokerMemory())
    assert isinstance(decision, Decision)
    (staged,) = broker.store.staged()
    shutil.rmtree(Path(staged.log_dir, staged.location))
    outcome = carry_out(broker.store, decision)
    assert (outcome.answers, [each.answer for each in outcome.results]) == ({0: 56}, [56])
    assert without(sim, broker)


def test_a_partition_whose_stale_replica_stays_is_answered_56_and_gets_no_second_replica(sim: Sim) -> None:
    path = sim.put("orders-0", B)
    broker = sim.start()
    decision = decide(broker.store, leader_and_isr(FULL, topic("orders", A, 0)), 1, BrokerMemory())
    assert isinstance(decision, Decision)
    (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(C))  # it is not what was judged
    outcome = carry_out(broker.store, decision)
    assert outcome.answers == {0: 56}
    assert [(each.action.kind, each.answer) for each in outcome.results] == [("stage", 56), ("create", 56)]
    assert [each for root in sim.paths for each in root.glob("orders-*")] == [path]
