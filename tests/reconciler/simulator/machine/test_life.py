"""A broker between its start and its end: its session, its disks, and its periodic work."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from logstore import KafkaError, Settings
from reconciler.protocol import (
    LeaderAndIsrRequest,
    PartitionState,
    RequestType,
    TopicState,
    UpdateMetadataBroker,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopic,
)
from reconciler.simulator.kernel import (
    AlterIsrRequest,
    AlterIsrResponse,
    MetadataRequest,
    Numbered,
)
from reconciler.simulator.zookeeper import kafka_paths
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.machine.brokers import FULL, ORDERS, A, Brokers, HandController

HOUR_MS = 3_600_000


@pytest.fixture
def two_disks(make_brokers: Callable[..., Brokers]) -> Brokers:
    """One broker with two disks; it leads orders-0, alone."""
    brokers = make_brokers(count=1, disks=2)
    brokers.lead(1, to=(1,), isr=(1,), replicas=(1,))
    assert brokers.produce(1, "a") == [0]
    return brokers


def update(epoch: int = 1, broker_epoch: int = -1, name: str = "orders") -> UpdateMetadataRequest:
    topic = UpdateMetadataTopic(name, A, (UpdateMetadataPartition(0, 1, 1, 0, (1,), 0, (1,)),))
    return UpdateMetadataRequest(9, epoch, (topic,), (UpdateMetadataBroker(1),), broker_epoch)


def number_of(brokers: Brokers) -> int:
    """The disk with orders-0."""
    return brokers.disks[1].log_dirs.index(brokers.of[1].store.get(ORDERS).log_dir)


# KIP516-9
def test_update_metadata_is_fenced_by_both_epochs_and_clients_hear_of_it(brokers: Brokers) -> None:
    assert brokers.ask(1, update(epoch=3)) == UpdateMetadataResponse(KafkaError.NONE)
    assert brokers.ask(1, update(epoch=2, name="late")) == UpdateMetadataResponse(KafkaError.STALE_CONTROLLER_EPOCH)
    late = update(epoch=3, broker_epoch=0, name="late")
    assert brokers.ask(1, late) == UpdateMetadataResponse(KafkaError.STALE_BROKER_EPOCH)
    topics = brokers.ask(1, MetadataRequest()).topics
    assert [(topic.topic, topic.topic_id) for topic in topics] == [("orders", A)]
    assert brokers.ask(1, LeaderAndIsrRequest(9, 2, ())).error == KafkaError.STALE_CONTROLLER_EPOCH


def test_what_a_controller_sent_earlier_and_comes_late_is_refused_and_changes_nothing(brokers: Brokers) -> None:
    follow = LeaderAndIsrRequest(9, 3, (TopicState("orders", A, (PartitionState(0, 3, 1, 4, (1,), 0, (1,)),)),))
    gone = LeaderAndIsrRequest(9, 3, (), type=RequestType.FULL)
    assert brokers.ask(1, Numbered(5, follow)).error == KafkaError.NONE
    assert brokers.ask(1, Numbered(4, gone)).error == KafkaError.STALE_CONTROLLER_EPOCH
    assert brokers.ask(1, Numbered(4, update(epoch=3))) == UpdateMetadataResponse(KafkaError.STALE_CONTROLLER_EPOCH)
    assert brokers.ask(1, MetadataRequest()).topics == () and brokers.of[1].replicas.get(ORDERS) is not None
    assert brokers.ask(1, Numbered(6, update(epoch=3))) == UpdateMetadataResponse(KafkaError.NONE)
    assert brokers.ask(1, Numbered(5, gone)).error == KafkaError.STALE_CONTROLLER_EPOCH


def test_a_session_that_is_over_is_followed_by_another_with_another_epoch(brokers: Brokers) -> None:
    old, session = brokers.of[2].broker.broker_epoch, brokers.of[2].session
    assert session is not None
    session.expire()
    assert brokers.session.find(kafka_paths.broker_path(2)) is None
    brokers.run(6_000)
    assert brokers.of[2].broker.broker_epoch == brokers.session.get(kafka_paths.broker_path(2)).czxid
    assert brokers.of[2].broker.broker_epoch > old
    controller = brokers.of[2].controller
    assert isinstance(controller, HandController)
    assert (len(controller.sessions), controller.stopped) == (2, 1)
    assert controller.sessions[1] is brokers.of[2].session


def test_while_its_last_session_holds_the_node_it_waits(brokers: Brokers) -> None:
    session = brokers.of[2].session
    brokers.of[2].crash()
    brokers.of[2].start()
    assert session is not None
    brokers.run(10_000)
    assert brokers.ask(2, MetadataRequest()) is None
    session.expire()
    brokers.run(2_000)
    assert brokers.session.get(kafka_paths.broker_path(2)).czxid == brokers.of[2].broker.broker_epoch
    assert brokers.ask(2, MetadataRequest()).topics == ()


def test_a_disk_that_fails_takes_its_replicas_and_the_controller_is_notified(two_disks: Brokers) -> None:
    two_disks.disks[1].fail(number_of(two_disks), Random(1))
    assert two_disks.produce(1, "b") == [KafkaError.KAFKA_STORAGE_ERROR]
    events = two_disks.session.children(kafka_paths.LOG_DIR_EVENTS)
    assert events == ["log_dir_event_0000000000"]
    node = two_disks.session.get(f"{kafka_paths.LOG_DIR_EVENTS}/{events[0]}")
    assert znodes.decode_log_dir_event(node.data) == 1
    assert two_disks.of[1].replicas.get(ORDERS) is None
    assert two_disks.fetch(1).error is KafkaError.KAFKA_STORAGE_ERROR
    assert two_disks.lead(1, 1, to=(1,), isr=(1,)) == {1: KafkaError.KAFKA_STORAGE_ERROR}
    assert two_disks.of[1].running


def test_a_disk_that_came_back_is_served_after_a_restart(two_disks: Brokers) -> None:
    number = number_of(two_disks)
    two_disks.run(61_000)
    two_disks.disks[1].fail(number, Random(1))
    two_disks.produce(1, "b")
    two_disks.disks[1].come_back(number)
    assert two_disks.fetch(1).error is KafkaError.KAFKA_STORAGE_ERROR
    two_disks.of[1].shut_down()
    two_disks.of[1].start()
    two_disks.lead(1, 1, to=(1,), isr=(1,), kind=FULL)
    assert two_disks.values(1) == ["a"]


def test_without_a_session_the_controller_is_notified_of_a_disk_later(two_disks: Brokers) -> None:
    session = two_disks.of[1].session
    assert session is not None
    session.expire()
    two_disks.disks[1].fail(number_of(two_disks), Random(1))
    two_disks.produce(1, "b")
    assert two_disks.session.children(kafka_paths.LOG_DIR_EVENTS) == []
    two_disks.run(6_000)
    assert len(two_disks.session.children(kafka_paths.LOG_DIR_EVENTS)) == 1


def test_with_its_last_disk_a_broker_halts(two_disks: Brokers) -> None:
    for number in (0, 1):
        two_disks.disks[1].fail(number, Random(1))
    two_disks.produce(1, "b", wait_ms=100)
    two_disks.run(70_000)
    assert not two_disks.of[1].running
    assert two_disks.session.find(kafka_paths.broker_path(1)) is None
    assert two_disks.said("halts: no log dir is left")


def test_alter_isr_goes_to_the_controller_in_the_same_process(brokers: Brokers) -> None:
    request = AlterIsrRequest(2, -1, ORDERS, A, 0, 0, (1, 2))
    assert brokers.ask(1, request) == AlterIsrResponse(KafkaError.NONE, 0, (1, 2), 1)
    assert brokers.controller.asked == [request]


# KIP516-6
def test_what_is_staged_is_purged_when_it_is_due_by_the_machines_own_clock(
    make_brokers: Callable[..., Brokers],
) -> None:
    delays = Settings({"": {"delete.stale.topic.delay.ms": HOUR_MS}})
    brokers = make_brokers(count=2, delays=delays)
    for node_id in (1, 2):
        brokers.lead(1, to=(node_id,))
        brokers.ask(node_id, LeaderAndIsrRequest(9, 1, (), -1, FULL))
        assert len(brokers.of[node_id].store.staged()) == 1
    brokers.world.jump("broker-1", HOUR_MS)
    brokers.run(61_000)
    assert brokers.of[1].store.staged() == []
    assert len(brokers.of[2].store.staged()) == 1
    brokers.run(HOUR_MS)
    assert brokers.of[2].store.staged() == []
    assert brokers.said("broker-2  deleting/UXyU9i5ARn6W00ON2taeWA_0 is purged")


def test_a_malformed_request_is_not_answered_and_changes_nothing(brokers: Brokers) -> None:
    twice = PartitionState(0, 1, 1, 0, (1,), 0, (1, 1))
    assert brokers.ask(1, LeaderAndIsrRequest(9, 1, (TopicState("orders", A, (twice,)),)), 40_000) is None
    assert brokers.said("replicas are no distinct broker ids: 1, 1")
    assert brokers.of[1].replicas.get(ORDERS) is None
    assert brokers.of[1].running


def test_nothing_is_done_twice_after_a_restart(brokers: Brokers) -> None:
    brokers.of[2].shut_down()
    brokers.of[2].start()
    before = brokers.world.events
    brokers.run(50_000)
    with_one_life = brokers.world.events - before
    for _ in range(5):
        brokers.of[2].shut_down()
        brokers.of[2].start()
    before = brokers.world.events
    brokers.run(50_000)
    assert abs(brokers.world.events - before - with_one_life) <= 20
