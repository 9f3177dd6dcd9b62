"""A cluster at rest: each complaint about its final state, caused by something that is broken on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.ours import MoveRecord, encode_move_record
from layout.topic import TopicPartition
from logstore import ChangeFailedError, KafkaError
from logstore.journal import log_dir_key
from logstore.store import LogStore
from reconciler.broker.carry_out import StoreExecutor
from reconciler.broker.decision import ActionResult, DecidedAction
from reconciler.simulator.admin import NOT_GIVEN, AlterTopic, DeletePartitions
from reconciler.simulator.checks import (
    BrokenInvariantError,
    Invariants,
    check_audit,
    check_converged,
    check_full_changes_nothing,
    converge,
    convergence,
    expected_verdicts,
    let_delays_pass,
)
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.controller.requests import Channels
from reconciler.simulator.controller.states import AssignedReplica
from reconciler.simulator.kernel import Record
from reconciler.simulator.machine import SEGMENT_FILE
from reconciler.simulator.machine.control import ControlRequests
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.text import moment
from tests.logstore.engine import write_ledger
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)
B = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    """At rest, with a topic whose replicas are on brokers 1 and 2, and three records in it."""
    made = new_cluster(flush_records=1)
    made.create_topic("orders", assignment={0: [1, 2]})
    made.produce("orders", 3)
    made.run(for_ms=10_000)
    return made


def place(cluster: Cluster, node_id: int) -> Path:
    found = cluster.members[node_id].broker.store.get(ORDERS)
    return Path(found.log_dir, found.path)


def rest_of(cluster: Cluster, *, durable: bool = False) -> str:
    """What is said of a cluster at rest."""
    with pytest.raises(BrokenInvariantError) as broken:
        check_converged(cluster, durable=durable)
    return str(broken.value)


def test_a_cluster_in_which_nothing_is_wrong_comes_to_rest_and_is_as_it_must_be(cluster: Cluster) -> None:
    invariants = Invariants(cluster)
    cluster.crash_broker(2)
    converge(cluster, invariants)
    check_converged(cluster, durable=True)
    let_delays_pass(cluster, invariants)
    check_audit(cluster)


# KIP516-5
def test_another_controllers_full_requests_find_nothing_to_do_at_rest(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    invariants, active = Invariants(cluster), cluster.active
    assert active is not None
    epoch = active.broker.broker.controller_epoch
    check_full_changes_nothing(cluster, invariants)
    assert all(each.broker.broker.controller_epoch > epoch for each in cluster.members.values())
    monkeypatch.setattr(cluster.oracle, "is_steady", lambda *_: False)
    cluster.members[2].broker.store.stage([ORDERS], "NOT_ASSIGNED", "a bug")
    with pytest.raises(BrokenInvariantError, match="FULL requests to a cluster at rest changed its disks: restore 1"):
        check_full_changes_nothing(cluster, invariants)


def test_a_broker_that_leaves_files_open_and_a_replica_that_is_offline_are_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converged(cluster)
    monkeypatch.setattr(convergence, "_OPEN_FILES", 0)
    assert "files open in " in rest_of(cluster)
    assert cluster.active is not None
    cluster.active.controller.context.offline.add(AssignedReplica(ORDERS, 1))
    assert "orders-0 on broker 1 is offline" in list(convergence._unfinished(cluster))


# KIP516-5
def test_replicas_that_are_not_there_or_not_the_right_ones_are_reported(cluster: Cluster) -> None:
    topic_id = cluster.oracle.topic_id("orders")
    for node_id in (1, 2):
        cluster.members[node_id].broker.store.stage([ORDERS], "STALE_ID", "")
    cluster.members[2].broker.store.create(ORDERS, B)
    cluster.members[3].broker.store.create(ORDERS, topic_id)
    wrong = rest_of(cluster)
    assert wrong.startswith("at rest: broker-1 lacks orders-0; ")
    assert f"broker-2 has orders-0 under {B}, and not under {topic_id}; " in wrong
    assert "broker-3 has orders-0, which nobody wants there" in wrong


def test_a_replica_that_lies_on_the_disk_alone_or_in_memory_alone_is_reported(cluster: Cluster) -> None:
    ghost = Path(cluster.members[3].disks.log_dirs[0], "ghost-0")
    ghost.mkdir()
    (ghost / "partition.metadata").write_bytes(partition_metadata.encode(B))
    shutil.rmtree(place(cluster, 2))
    wrong = rest_of(cluster)
    assert "broker-2 has orders-0 in memory alone" in wrong
    assert "broker-3 has ghost-0 on its disk alone" in wrong


def test_what_is_left_over_is_reported(cluster: Cluster) -> None:
    log_dir = Path(cluster.members[3].disks.log_dirs[0])
    unique = "0123456789abcdef0123456789abcdef"
    names = ("what is this", *(f"orders-0.{unique}-{each}" for each in ("delete", "stray", "future")))
    for name in names:
        (log_dir / name).mkdir()
    wrong = rest_of(cluster)
    for name in names:
        assert f"broker-3: {name} is left over" in wrong


def test_an_empty_tier_that_lost_its_marker_is_let_be_where_a_disk_of_the_machine_was_replaced(
    cluster: Cluster,
) -> None:
    for node_id, file in ((2, None), (3, None), (3, "file")):
        tier = Path(cluster.members[node_id].disks.log_dirs[0], "org" if file is None else "net")
        tier.mkdir()
        if file is not None:
            (tier / file).touch()
    cluster.world.history.say("broker-3", "disk_replaced: disk 2 is replaced by an empty one")
    wrong = rest_of(cluster)
    assert "broker-2: org is left over" in wrong and "broker-3: net is left over" in wrong
    assert "broker-3: org" not in wrong


def test_a_copy_whose_original_was_on_a_disk_that_is_no_more_may_wait_for_ever(cluster: Cluster) -> None:
    member, topic_id = cluster.members[3], cluster.oracle.topic_id("orders")
    assert topic_id is not None
    here = log_dir_key(member.broker.store.log_dirs[1])
    copies = ((1, here), (2, "AtgGav8yQjiaJ3rTXE7VCA"), (3, None))
    for number, source in copies:
        copy = Path(member.disks.log_dirs[0], f"orders-0.{number:032x}-future")
        copy.mkdir()
        if source is not None:
            record = MoveRecord("orders", 0, topic_id, source, "orders-0", "orders-0")
            (copy / "moving.json").write_bytes(encode_move_record(record))
    wrong = rest_of(cluster)
    left = {number: f"broker-3: orders-0.{number:032x}-future is left over" in wrong for number, _ in copies}
    assert left == {1: True, 2: False, 3: True}


def test_what_is_staged_long_after_its_due_time_or_without_a_record_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # KIP516-6
    store = cluster.members[3].broker.store
    monkeypatch.setattr(LogStore, "purge_step", lambda self: None)
    store.create(TopicPartition("clicks", 0), B)
    store.create(TopicPartition("clicks", 1), B)
    late, nameless = store.stage([TopicPartition("clicks", 0), TopicPartition("clicks", 1)], "NOT_ASSIGNED", "").staged
    cluster.world.jump("broker-3", 450_000)
    assert late.record is not None
    write_ledger(Path(nameless.log_dir, nameless.location).parent, {})
    write_ledger(Path(late.log_dir, late.location).parent, {late.name: late.record})
    wrong, now_ms = rest_of(cluster), cluster.world.clock_of("broker-3")
    due = moment(late.record.due_ms)
    assert f"broker-3 has {late.location}, which was due at {due}, and it is {moment(now_ms)}" in wrong
    assert f"broker-3 has {nameless.location}, which has no record" in wrong


def test_a_checkpoint_entry_of_what_is_not_there_is_reported(cluster: Cluster) -> None:
    cluster.run(for_ms=70_000)
    file = place(cluster, 1).parent / "recovery-point-offset-checkpoint"
    file.write_bytes(file.read_bytes().replace(b"orders", b"ghosts"))
    assert f"broker-1: {file.name} has an entry of ghosts-0, which is not there" in rest_of(cluster)


def test_an_audit_that_says_something_else_is_reported_at_rest_and_in_between(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (convergence, expected_verdicts):
        monkeypatch.setattr(module, "audit_differences", lambda *_: ["broker 1: orders-0 is blue"])
    assert rest_of(cluster) == "at rest: broker 1: orders-0 is blue"
    with pytest.raises(BrokenInvariantError, match="the audit: broker 1: orders-0 is blue"):
        check_audit(cluster)


def log_of(cluster: Cluster, node_id: int) -> HostedPartition:
    found = cluster.members[node_id].broker.replicas.get(ORDERS)
    assert found is not None
    return found


def test_a_follower_that_has_more_less_or_something_else_than_its_leader_is_reported(cluster: Cluster) -> None:
    follower, topic_id = log_of(cluster, 2), cluster.oracle.topic_id("orders")
    follower.log.append([Record(3, 0, topic_id, "mine alone")])
    begins = "orders-0 on broker 2 holds other records than on its leader 1: "
    assert rest_of(cluster) == f"at rest: {begins}it ends at 4 and not at 3"
    follower.log.truncate(2)
    assert rest_of(cluster) == f"at rest: {begins}it ends at 2 and not at 3"
    follower.log.append([Record(2, 0, topic_id, "another")])
    assert rest_of(cluster) == f"at rest: {begins}'another' and not 'client-1 2' at offset 2"


def test_a_record_of_another_topic_is_reported(cluster: Cluster) -> None:  # KIP516-8
    for node_id in (1, 2):
        log_of(cluster, node_id).log.append([Record(3, 0, B, "old")])
    assert f"orders-0 on broker 1 holds offset 3 of topic ID {B}: old" in rest_of(cluster)


def test_records_that_are_on_no_disk_and_replicas_without_a_role_are_reported(cluster: Cluster) -> None:
    for node_id in (1, 2):
        (place(cluster, node_id) / SEGMENT_FILE).write_bytes(b"")
    assert "orders-0 on broker 1 serves 3 records, and other ones than the 0 on its disk" in rest_of(cluster)
    cluster.members[2].broker.replicas.drop(ORDERS)
    assert "orders-0 on broker 2 is neither led nor followed" in rest_of(cluster)


def test_an_acknowledged_record_that_is_gone_is_reported_where_acknowledged_means_synced(cluster: Cluster) -> None:
    for node_id in (1, 2):
        log_of(cluster, node_id).log.truncate(2)
    check_converged(cluster)
    assert rest_of(cluster, durable=True) == (
        "at rest: orders-0 was acknowledged 'client-1 2' at offset 2, and has 'nothing'"
    )


def test_an_acknowledged_record_of_a_topic_that_was_deleted_may_be_gone(cluster: Cluster) -> None:
    cluster.delete_topic("orders")
    cluster.create_topic("orders", assignment={0: [1]})
    cluster.run(for_ms=1_000)
    check_converged(cluster, durable=True)


def test_what_was_acknowledged_in_a_partition_that_was_deleted_and_came_back_may_be_gone(
    cluster: Cluster,
) -> None:  # KIP694-4
    invariants, partition = Invariants(cluster), TopicPartition("payments", 1)
    cluster.create_topic("payments", 2, 1)
    while not invariants.acknowledged(partition):
        cluster.produce("payments")
    active = cluster.active
    assert active is not None
    active.admin.delete_partitions([DeletePartitions("payments", 1, 0)])
    cluster.run(for_ms=10_000)
    for member in cluster.members.values():
        cluster.world.jump(member.name, 400_000)
    cluster.run(for_ms=130_000)
    active.admin.alter_topics([AlterTopic("payments", 2, NOT_GIVEN)])
    converge(cluster, invariants)
    assert partition in cluster.oracle.wanted()
    check_converged(cluster, durable=True)


def refuse(*_: object) -> None:
    raise ChangeFailedError("broken on purpose")


def stage_nothing(_: StoreExecutor, actions: Sequence[DecidedAction], delay: str) -> list[ActionResult]:
    return [each.failed(each.otherwise, f"not even with {delay}") for each in actions]


def never_stages(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreExecutor, "stage", stage_nothing)
    cluster.stop_broker(2)
    cluster.delete_topic("orders")


def never_answers(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlRequests, "_stop", refuse)
    cluster.delete_topic("orders")


def never_starts(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.stop_broker(2)
    monkeypatch.setattr(cluster.members[2], "start", lambda: None)
    monkeypatch.setattr(cluster.world.faults, "put_right", lambda: None)


def never_catches_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostedPartition, "joins", lambda *_: False)
    cluster.crash_broker(2)
    cluster.run(for_ms=20_000)


def never_ends_a_move(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostedPartition, "joins", lambda *_: False)
    active = cluster.active
    assert active is not None
    assert active.admin.reassign([(ORDERS, (3,))])[ORDERS].error is KafkaError.NONE


def never_lets_partitions_go(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.oracle, "leaving", lambda: ["orders"])


def has_no_controller(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "active", None)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (never_starts, "broker-2 is not registered"),
        (never_stages, "broker-2 still has orders-0"),
        (never_answers, "1 requests to broker 1 are not answered"),
        (never_catches_up, "orders-0 has [1] in sync, of [1, 2]"),
        (never_ends_a_move, "orders-0 is on its way to other brokers"),
        (never_lets_partitions_go, "orders is on its way out"),
        (has_no_controller, "there is no controller"),
    ],
)
def test_a_cluster_that_does_not_come_to_rest_says_what_is_still_to_be_done(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[Cluster, pytest.MonkeyPatch], None],
    sentence: str,
) -> None:
    monkeypatch.setattr(convergence, "WITHIN_MS", 45_000)
    invariants = Invariants(cluster)
    broken(cluster, monkeypatch)
    with pytest.raises(BrokenInvariantError) as raised:
        converge(cluster, invariants)
    assert str(raised.value).startswith("after 45 quiet seconds: ")
    assert sentence in str(raised.value)


def test_requests_that_wait_are_unrest_by_their_number(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Channels, "waiting", lambda self, node_id: 2 if node_id == 3 else 0)
    assert list(convergence._unfinished(cluster)) == ["2 requests to broker 3 are not answered"]


def test_a_purge_that_never_comes_is_reported_when_all_is_due(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # KIP516-10
    invariants = Invariants(cluster)
    monkeypatch.setattr(LogStore, "purge_step", lambda self: None)
    cluster.delete_topic("orders")
    converge(cluster, invariants)
    monkeypatch.setattr(convergence, "WITHIN_MS", 130_000)
    with pytest.raises(
        BrokenInvariantError, match=r"^130 seconds after all was due: deleting/\S+, deleting/\S+ is staged"
    ):
        let_delays_pass(cluster, invariants)


def test_data_of_a_deleted_topic_that_lies_anywhere_after_all_delays_is_reported(cluster: Cluster) -> None:  # KIP516-10
    topic_id = cluster.oracle.topic_id("orders")
    assert topic_id is not None
    invariants, hidden = Invariants(cluster), Path(cluster.members[3].disks.log_dirs[1], "orders-0")
    cluster.delete_topic("orders")
    converge(cluster, invariants)
    hidden.mkdir()
    (hidden / "partition.metadata").write_bytes(partition_metadata.encode(topic_id))
    with pytest.raises(BrokenInvariantError) as broken:
        let_delays_pass(cluster, invariants)
    assert str(broken.value) == (f"after all delays: broker-3 has orders-0, of topic ID {topic_id}, which nobody knows")


def test_a_delay_that_was_noted_by_a_clock_that_is_hours_fast_does_not_hold_up_the_rest(
    cluster: Cluster,
) -> None:  # KIP694-3
    invariants = Invariants(cluster)
    cluster.create_topic("payments", 3, 1)
    active = cluster.active
    assert active is not None
    cluster.world.jump(active.name, 5 * 3_600_000)
    active.admin.delete_partitions([DeletePartitions("payments", 1, 60_000)])
    cluster.run(for_ms=5_000)
    cluster.world.jump(active.name, -5 * 3_600_000)
    converge(cluster, invariants)
    assert len([each for each in cluster.oracle.wanted() if each.topic == "payments"]) == 1


def test_a_replica_that_could_not_be_staged_on_a_full_disk_goes_when_its_broker_starts_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # KIP516-5
    invariants, real = Invariants(cluster), StoreExecutor.stage
    cluster.stop_broker(2)
    cluster.delete_topic("orders")
    monkeypatch.setattr(StoreExecutor, "stage", stage_nothing)
    cluster.start_broker(2)
    cluster.run(for_ms=5_000)
    monkeypatch.setattr(StoreExecutor, "stage", real)
    cluster.world.history.say("broker-2", "disk_full: disk 1 is full")
    converge(cluster, invariants)
    check_converged(cluster)
