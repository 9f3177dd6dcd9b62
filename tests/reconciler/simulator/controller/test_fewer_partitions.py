"""Fewer partitions: the steps, the clients' modes, failures that are retried, and controllers that fail in between."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.errors import UsageError
from reconciler.protocol import StopReplicaRequest, UpdateMetadataRequest
from reconciler.simulator.admin import Admin, AlterTopic, DeletePartitions
from reconciler.simulator.admin.delete import PartitionOutcome
from reconciler.simulator.controller import (
    FewerPartitionsRequest,
    FewerPartitionsSettings,
    decode_fewer_partitions,
    encode_fewer_partitions,
    fewer_partitions_extension,
)
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.kernel import DURING_DELETE, MetadataResponse, PartitionMode
from reconciler.simulator.zookeeper import delete_partitions_path, partition_path, topic_path
from reconciler.sources.zookeeper import encode_topic
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, at

ON = FewerPartitionsSettings(enabled=True)
LAST, NEXT = at("orders", 3), at("orders", 2)
NOTE = delete_partitions_path("orders")
ASSIGNMENT = {0: [1, 2], 1: [2, 3], 2: [3, 1], 3: [1, 3]}


class Fewer(Cluster):
    """A cluster with topic orders, of four partitions, and the commands of the active controller."""

    def __init__(self, settings: FewerPartitionsSettings = ON, **others: Any) -> None:
        self.fewer = settings
        self.clocks_off_ms = 0
        make = fewer_partitions_extension(lambda: self.timers.now + self.clocks_off_ms, settings)
        super().__init__(3, controllers=(1, 2), extensions=[make], **others)
        self.create_topic("orders", ASSIGNMENT, ID)

    @property
    def commands(self) -> Admin:
        session = self.sessions[self.controller.node_id]
        return Admin(
            self.controller,
            lambda: session,
            lambda request: MetadataResponse((), (), 1),
            self.timers,
            random=Random(1),
            fewer_partitions=self.fewer,
        )

    def ask(self, total: int, delay_ms: int = 0, topic: str = "orders") -> list[PartitionOutcome]:
        found = self.commands.delete_partitions([DeletePartitions(topic, total, delay_ms)])
        self.settle()
        return found

    def metadata_of(self, broker: int, partition: TopicPartition) -> list[tuple[int, PartitionMode]]:
        """The leaders and modes in the metadata that a broker got, in order."""
        return [
            (each.leader, each.mode)
            for request in self.brokers[broker].of(UpdateMetadataRequest)
            for topic in request.topics
            if topic.topic == partition.topic
            for each in topic.partitions
            if each.partition == partition.partition
        ]

    def stopped(self, broker: int) -> list[int]:
        """The partitions of orders that a broker was asked to delete."""
        return [
            each.partition
            for request in self.brokers[broker].of(StopReplicaRequest)
            for topic in request.topics
            for each in topic.partitions
            if topic.topic_id == ID and each.delete
        ]

    def mode(self, partition: TopicPartition) -> PartitionMode:
        return self.controller.context.mode_of(partition)

    def gone(self) -> bool:
        left = sorted(self.topic("orders").partitions)
        states = [self.exists(partition_path(each)) for each in (NEXT, LAST)]
        return left == [0, 1] and states == [False, False] and not self.exists(NOTE)


@pytest.fixture
def cluster() -> Fewer:
    return Fewer()


def test_without_a_delay_the_last_partitions_go_at_once(cluster: Fewer) -> None:  # KIP694-2, KIP694-3
    outcomes = cluster.ask(2)
    assert [(each.partition, each.mode, each.outcome.error) for each in outcomes] == [
        (2, PartitionMode.NONE, KafkaError.NONE),
        (3, PartitionMode.NONE, KafkaError.NONE),
    ]
    assert cluster.gone()
    assert (sorted(cluster.stopped(1)), cluster.stopped(2), sorted(cluster.stopped(3))) == ([2, 3], [], [2, 3])
    assert cluster.topic("orders").topic_id == str(ID)


def test_clients_get_the_mode_before_the_partition_goes(cluster: Fewer) -> None:  # KIP694-1
    cluster.forget()
    cluster.ask(3)
    assert cluster.metadata_of(2, LAST) == [(1, PartitionMode.NONE), (DURING_DELETE, PartitionMode.NONE)]


def test_with_a_delay_it_is_read_only_until_then_and_nothing_is_stopped(cluster: Fewer) -> None:  # KIP694-1, KIP694-3
    cluster.forget()
    outcomes = cluster.ask(3, delay_ms=400_000)
    assert [(each.partition, each.mode) for each in outcomes] == [(3, PartitionMode.READ_ONLY)]
    assert cluster.metadata_of(2, LAST) == [(1, PartitionMode.READ_ONLY)]
    states = cluster.controller.context.partition_states
    assert states.of(LAST) is PartitionState.ONLINE
    cluster.timers.pass_time(399_000)
    assert cluster.mode(LAST) is PartitionMode.READ_ONLY and cluster.stopped(1) == []
    # The delay is looked at every five minutes only.
    cluster.timers.pass_time(150_000)
    assert cluster.mode(LAST) is PartitionMode.READ_ONLY
    cluster.timers.pass_time(52_000)
    assert cluster.metadata_of(2, LAST)[1:] == [(1, PartitionMode.NONE), (DURING_DELETE, PartitionMode.NONE)]
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2] and not cluster.exists(NOTE)
    assert states.of(LAST) is PartitionState.NON_EXISTENT


def test_other_partitions_keep_their_modes_and_their_data(cluster: Fewer) -> None:  # KIP694-4
    before = [cluster.state(at("orders", number)) for number in (0, 1)]
    cluster.ask(2)
    assert [cluster.state(at("orders", number)) for number in (0, 1)] == before
    assert cluster.mode(at("orders", 0)) is PartitionMode.READ_WRITE
    assert cluster.controller.context.modes == {}


def test_a_replica_that_cannot_be_deleted_is_ineligible_and_tried_again(cluster: Fewer) -> None:  # KIP694-3
    cluster.brokers[3].stop_errors[LAST] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.ask(2)
    states = cluster.controller.context.replica_states
    assert states.of(AssignedReplica(LAST, 3)) is ReplicaState.DELETION_INELIGIBLE
    assert states.of(AssignedReplica(LAST, 1)) is ReplicaState.DELETION_SUCCESSFUL
    assert not cluster.gone() and cluster.exists(NOTE)
    cluster.brokers[3].stop_errors.clear()
    cluster.timers.pass_time(5_000)
    assert cluster.gone()
    assert cluster.stopped(3).count(3) == 2


def test_a_broker_that_is_away_is_waited_for(cluster: Fewer) -> None:  # KIP694-3
    cluster.kill(3)
    cluster.ask(2)
    cluster.timers.pass_time(60_000)
    assert not cluster.gone()
    cluster.register(3)
    cluster.timers.pass_time(5_000)
    assert cluster.gone()


def test_the_next_controller_tells_the_same_modes_and_goes_on_after_the_delay(cluster: Fewer) -> None:  # KIP694-3
    cluster.ask(3, delay_ms=400_000)
    first = cluster.controller.node_id
    cluster.timers.pass_time(200_000)
    cluster.forget()
    cluster.kill(first)
    assert cluster.controller.node_id != first
    assert {mode for _, mode in cluster.metadata_of(cluster.controller.node_id, LAST)} == {PartitionMode.READ_ONLY}
    assert cluster.mode(LAST) is PartitionMode.READ_ONLY
    cluster.register(first)
    cluster.timers.pass_time(700_000)
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2] and not cluster.exists(NOTE)


def test_what_nobody_may_use_stays_so_under_a_controller_whose_clock_is_behind(cluster: Fewer) -> None:  # KIP694-3
    cluster.kill(3)
    cluster.ask(2, delay_ms=400_000)
    cluster.timers.pass_time(650_000)
    assert cluster.mode(LAST) is PartitionMode.NONE and not cluster.gone()
    cluster.clocks_off_ms = -600_000
    first = cluster.controller.node_id
    cluster.forget()
    cluster.kill(first)
    assert {mode for _, mode in cluster.metadata_of(cluster.controller.node_id, LAST)} == {PartitionMode.NONE}
    for number in (first, 3):
        cluster.register(number)
    cluster.timers.pass_time(10_000)
    assert cluster.gone()


class CrashAt:
    """Says at which step a controller crashes, counted from when it is armed."""

    def __init__(self, step: int) -> None:
        self.left, self.armed, self.crashed = step, False, False

    def __call__(self, step: str) -> bool:
        if self.armed and not self.crashed:
            self.crashed, self.left = self.left == 0, self.left - 1
            return self.crashed
        return False


def test_a_controller_that_crashes_at_any_step_leaves_work_that_the_next_one_finishes() -> None:  # KIP694-3
    step, crashed = 0, True
    while crashed:
        cluster, crash = Fewer(), CrashAt(step)
        cluster.start_controller(3, crash_before=crash)
        for number in (1, 2):
            cluster.kill(number)
            cluster.register(number)
        assert cluster.controller.node_id == 3
        cluster.settle()
        crash.armed = True
        cluster.ask(2)
        cluster.timers.pass_time(5_000)
        crashed = crash.crashed
        if crashed:
            cluster.kill(3)
            cluster.register(3)
            cluster.start_controller(1)
            cluster.timers.pass_time(400_000)
        assert cluster.gone(), f"crash before step {step}: {cluster.said}"
        step += 1
    assert step > 8


def test_a_request_that_is_taken_back_gives_the_partitions_back(cluster: Fewer) -> None:
    cluster.ask(2, delay_ms=400_000)
    cluster.forget()
    cluster.remove_node(NOTE)
    cluster.settle()
    assert cluster.metadata_of(1, LAST) == [(1, PartitionMode.READ_WRITE)]
    cluster.timers.pass_time(1_000_000)
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2, 3]


def test_a_topic_that_was_re_created_is_not_meant(cluster: Fewer) -> None:
    cluster.ask(2, delay_ms=400_000)
    cluster.remove_node(topic_path("orders"))
    cluster.settle()
    cluster.create_topic("orders", ASSIGNMENT, OTHER_ID)
    cluster.timers.pass_time(1_000_000)
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2, 3]
    assert not cluster.exists(NOTE) and cluster.controller.context.modes == {}


def test_while_it_is_switched_off_nothing_is_taken_and_nothing_goes_on() -> None:  # KIP694-2, KIP694-3
    cluster = Fewer(FewerPartitionsSettings())
    (refused,) = cluster.ask(2)
    assert (refused.partition, refused.outcome.error) == (-1, KafkaError.TOPIC_DELETION_DISABLED)
    request = FewerPartitionsRequest(str(ID), 2, 0, 0, PartitionMode.NONE)
    cluster.admin.create(NOTE, encode_fewer_partitions(request))
    cluster.timers.pass_time(1_000_000)
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2, 3] and cluster.controller.context.modes == {}


def test_the_defaults_are_those_of_the_proposal() -> None:  # KIP694-3
    assert FewerPartitionsSettings() == FewerPartitionsSettings(enabled=False, interval_ms=300_000)
    assert FewerPartitionsSettings.of({}) == FewerPartitionsSettings()


def test_settings_are_read_by_kafkas_names() -> None:  # KIP694-3
    given = {"delete.topic.partition.enable": "true", "delete.topic.partition.interval.delay.ms": "1000"}
    assert FewerPartitionsSettings.of(given) == FewerPartitionsSettings(enabled=True, interval_ms=1_000)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("delete.topic.partition.enable", "yes", "where true or false is expected"),
        ("delete.topic.partition.interval.delay.ms", "0", "where a number of ms from 1 on is expected"),
        ("delete.topic.partition.interval.delay.ms", "5m", "where a number of ms from 1 on is expected"),
        ("delete.topic.partitions.enable", "true", "is no setting here: delete.topic.partition.enable and"),
    ],
)
def test_a_setting_that_is_none_is_refused(name: str, value: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        FewerPartitionsSettings.of({name: value})


@pytest.mark.parametrize(
    ("topic", "total", "error"),
    [("orders", 4, 37), ("orders", 5, 37), ("orders", 0, 37), ("orders", -1, 37), ("nothing", 1, 3)],
)
def test_each_error_is_clear_and_changes_nothing(
    cluster: Fewer, topic: str, total: int, error: int
) -> None:  # KIP694-2
    before = cluster.zookeeper.dump()
    (refused,) = cluster.ask(total, topic=topic)
    assert (refused.partition, refused.outcome.error) == (-1, error) and topic in refused.outcome.message
    assert cluster.zookeeper.dump() == before


def test_a_topic_that_is_under_change_is_refused(cluster: Fewer) -> None:  # KIP694-2
    cluster.ask(3, delay_ms=400_000)
    (refused,) = cluster.ask(2)
    assert refused.outcome.error is KafkaError.REASSIGNMENT_IN_PROGRESS
    grown = cluster.commands.alter_topics([AlterTopic("orders", 9)])["orders"]
    assert grown.error is KafkaError.REASSIGNMENT_IN_PROGRESS
    assert cluster.commands.reassign([(LAST, (1, 2))])[LAST].error is KafkaError.REASSIGNMENT_IN_PROGRESS


def test_a_topic_that_is_being_reassigned_is_refused(cluster: Fewer) -> None:  # KIP694-2
    data = encode_topic(ID, ASSIGNMENT | {0: [1, 2, 3]}, {0: [3]})
    cluster.admin.set(topic_path("orders"), data)
    assert cluster.ask(2)[0].outcome.error is KafkaError.REASSIGNMENT_IN_PROGRESS


def test_a_negative_delay_and_two_instructions_are_refused(cluster: Fewer) -> None:
    assert cluster.ask(2, delay_ms=-1)[0].outcome.error is KafkaError.INVALID_REQUEST
    batch = [DeletePartitions("orders", 2), DeletePartitions("orders", 3)]
    assert [each.outcome.error for each in cluster.commands.delete_partitions(batch)] == [KafkaError.INVALID_REQUEST]
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2, 3]


def test_after_it_is_done_the_topic_can_grow_again(cluster: Fewer) -> None:  # KIP694-3
    cluster.ask(2)
    assert cluster.commands.alter_topics([AlterTopic("orders", 3)])["orders"].error is KafkaError.NONE
    cluster.settle()
    assert cluster.state(NEXT).leader_epoch == 0
    assert cluster.mode(NEXT) is PartitionMode.READ_WRITE


def test_a_request_comes_back_as_it_was_written_and_nonsense_is_none() -> None:
    for request in (
        FewerPartitionsRequest(str(ID), 2, 17, 5, PartitionMode.READ_ONLY),
        FewerPartitionsRequest(None, 1, 0, 0, PartitionMode.NONE),
    ):
        assert decode_fewer_partitions(encode_fewer_partitions(request)) == request
    good = encode_fewer_partitions(FewerPartitionsRequest(None, 1, 0, 0, PartitionMode.NONE))
    for bad in (b"", b"[]", good[:-1], good.replace(b"-1", b"0"), good.replace(b'partitions":1', b'partitions":0')):
        assert decode_fewer_partitions(bad) is None


def test_a_request_that_cannot_be_read_is_passed_over(cluster: Fewer) -> None:
    cluster.admin.create(NOTE, b"{")
    cluster.timers.pass_time(1_000_000)
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2, 3]
    assert cluster.said_about("cannot be read and is passed over")
