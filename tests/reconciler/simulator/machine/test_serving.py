"""A leader's answers and waiting requests, and the newest metadata that clients get, with IDs and modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataTopic,
)
from reconciler.simulator.kernel import (
    DURING_DELETE,
    METADATA_WITH_MODES,
    EpochEndRequest,
    EpochEndResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    LiveBroker,
    MetadataRequest,
    PartitionMetadata,
    PartitionMode,
    ProduceRequest,
    ProduceResponse,
    Request,
    TopicMetadata,
)
from reconciler.simulator.machine.serving import MetadataCache, refuse_request
from reconciler.simulator.zookeeper import Authorizer
from reconciler.sources.zookeeper import AclOperation
from tests.reconciler.simulator.machine.brokers import NOTHING, ORDERS, A, B, Brokers, values
from tests.reconciler.simulator.machine.clients import tell

NEVER, BY_ID = TopicPartition("never", 0), TopicPartition("", 0)
LIVE = (LiveBroker(1, "broker-1", 9092), LiveBroker(2, "broker-2", 9092))
SENT_LIVE = tuple(
    UpdateMetadataBroker(each.node_id, (UpdateMetadataEndpoint(each.port, each.host, "PLAINTEXT", 0),)) for each in LIVE
)


class Nobody(Authorizer):
    """Lets nobody do anything, and remembers who asked for what."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, AclOperation, str]] = []

    def allows(self, principal: str, operation: AclOperation, topic: str) -> bool:
        self.asked.append((principal, operation, topic))
        return False


# KIP37-6
def test_a_client_is_refused_what_it_may_not_do_and_a_follower_is_not() -> None:
    nobody, refused = Nobody(), KafkaError.TOPIC_AUTHORIZATION_FAILED
    ann, names = "User:ann", {A: "orders"}.get
    fetch, follower = FetchRequest(-1, ORDERS, A, -1, 0, principal=ann), FetchRequest(2, ORDERS, A, 3, 0)
    assert refuse_request(nobody, ProduceRequest(ORDERS, A, "c", ann), names) == ProduceResponse(refused)
    assert refuse_request(nobody, fetch, names) == FetchResponse(refused)
    assert refuse_request(nobody, ListOffsetsRequest(ORDERS, A, ann), names) == ListOffsetsResponse(refused)
    assert nobody.asked == [(ann, AclOperation(each), "orders") for each in ("Write", "Read", "Describe")]
    for request in (follower, EpochEndRequest(ORDERS, A, 3, 0)):
        assert refuse_request(nobody, request, names) is None
    assert refuse_request(None, fetch, names) is None


def test_a_client_that_gives_an_id_alone_is_refused_the_topic_with_that_id() -> None:  # KIP37-6, KIP516-8
    nobody, names = Nobody(), {A: "orders"}.get
    refused = FetchResponse(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert refuse_request(nobody, FetchRequest(-1, BY_ID, A, -1, 0, principal="User:ann"), names) == refused
    assert nobody.asked == [("User:ann", AclOperation.READ, "orders")]
    # Where there is no such topic, nothing can be refused, and the broker answers 100, or 42 without an ID.
    for topic_id in (B, None):
        assert refuse_request(nobody, FetchRequest(-1, BY_ID, topic_id, -1, 0), names) is None


@pytest.fixture
def leader(make_brokers: Callable[..., Brokers]) -> Brokers:
    """Broker 1 leads, alone in sync; it holds a and b."""
    brokers = make_brokers(count=1)
    brokers.lead(1, 3, to=(1,), isr=(1,))
    assert brokers.produce(1, "a", "b") == [0, 1]
    return brokers


def four(at: TopicPartition, topic_id: TopicId | None, epoch: int = -1) -> list[Request]:
    """A request of each kind that is fenced by topic ID."""
    return [
        FetchRequest(-1, at, topic_id, epoch, 0),
        ListOffsetsRequest(at, topic_id),
        EpochEndRequest(at, topic_id, epoch, 0),
        ProduceRequest(at, topic_id, "c"),
    ]


# KIP516-8
@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize(
    ("at", "topic_id", "error"),
    [
        (ORDERS, A, KafkaError.NONE),
        (ORDERS, None, KafkaError.NONE),
        (ORDERS, TopicId.ZERO, KafkaError.NONE),
        (ORDERS, B, KafkaError.INCONSISTENT_TOPIC_ID),
        (NEVER, B, KafkaError.UNKNOWN_TOPIC_ID),
        (NEVER, None, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        (BY_ID, A, KafkaError.NONE),
        (BY_ID, B, KafkaError.UNKNOWN_TOPIC_ID),
        (BY_ID, None, KafkaError.INVALID_REQUEST),
        (BY_ID, TopicId.ZERO, KafkaError.INVALID_REQUEST),
        (TopicPartition("", 9), A, KafkaError.UNKNOWN_TOPIC_ID),
    ],
)
def test_requests_are_fenced_by_topic_id_and_work_by_name_or_by_id_alone(
    leader: Brokers, kind: int, at: TopicPartition, topic_id: TopicId | None, error: KafkaError
) -> None:
    assert leader.ask(1, four(at, topic_id)[kind]).error is error


@pytest.mark.parametrize("kind", [0, 2])
@pytest.mark.parametrize(
    ("epoch", "error"), [(2, KafkaError.FENCED_LEADER_EPOCH), (4, KafkaError.UNKNOWN_LEADER_EPOCH)]
)
def test_requests_are_fenced_by_leader_epoch(leader: Brokers, kind: int, epoch: int, error: KafkaError) -> None:
    assert leader.ask(1, four(ORDERS, A, epoch)[kind]).error is error


@pytest.mark.parametrize("kind", range(4))
def test_a_broker_that_does_not_lead_says_so(brokers: Brokers, kind: int) -> None:
    brokers.lead(1)
    assert brokers.ask(2, four(ORDERS, A)[kind]).error is KafkaError.NOT_LEADER_OR_FOLLOWER


def test_a_restarted_broker_leads_nothing_before_a_request(leader: Brokers) -> None:
    leader.of[1].shut_down()
    leader.of[1].start()
    assert leader.fetch(1).error is KafkaError.NOT_LEADER_OR_FOLLOWER


# KIP516-8
def test_by_id_alone_the_same_records_and_offsets_are_answered(leader: Brokers) -> None:
    assert values(leader.ask(1, FetchRequest(-1, BY_ID, A, -1, 0)).records) == ["a", "b"]
    assert leader.ask(1, ListOffsetsRequest(BY_ID, A)) == ListOffsetsResponse(KafkaError.NONE, 0, 2)


def test_offsets_and_epochs_are_answered(leader: Brokers) -> None:
    assert leader.ask(1, ListOffsetsRequest(ORDERS, A)) == ListOffsetsResponse(KafkaError.NONE, 0, 2)
    assert leader.ask(1, EpochEndRequest(ORDERS, A, 3, 3)) == EpochEndResponse(KafkaError.NONE, 3, 2)
    assert leader.ask(1, EpochEndRequest(ORDERS, A, 3, 1)) == EpochEndResponse(KafkaError.NONE, 1, 0)


def test_a_consumer_sees_what_is_committed_and_waits_for_more(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1, 2))
    assert brokers.produce(1, "a", wait_ms=100) == [NOTHING]
    waiting: list[object] = []
    brokers.world.network.call("client-1", "broker-1", FetchRequest(-1, ORDERS, A, -1, 0), waiting.append)
    brokers.run(500)
    assert waiting == []
    brokers.lead(1, to=(2,), isr=(1, 2))
    brokers.run(500)
    assert [values(answer.records) for answer in waiting] == [["a"]]  # type: ignore[attr-defined]


def test_a_fetch_that_finds_nothing_is_answered_after_a_while_with_nothing(leader: Brokers) -> None:
    begun = leader.world.now_ms
    answer = leader.ask(1, FetchRequest(-1, ORDERS, A, -1, 2), 5_000)
    assert (answer.error, answer.records, answer.high_watermark) == (KafkaError.NONE, (), 2)
    assert leader.world.now_ms - begun >= leader.settings.fetch_wait_ms


@pytest.mark.parametrize("offset", [-1, 3])
def test_an_offset_that_is_not_there_is_out_of_range(leader: Brokers, offset: int) -> None:
    answer = leader.fetch(1, offset=offset)
    assert (answer.error, answer.log_end) == (KafkaError.OFFSET_OUT_OF_RANGE, 2)


def test_only_so_many_records_come_at_once(make_brokers: Callable[..., Brokers]) -> None:
    brokers = make_brokers(count=1, fetch_records=2)
    brokers.lead(1, to=(1,), isr=(1,))
    brokers.produce(1, "a", "b", "c")
    assert values(brokers.fetch(1).records) == ["a", "b"]
    assert values(brokers.fetch(1, offset=2).records) == ["c"]


def test_who_is_no_replica_cannot_fetch_as_one(leader: Brokers) -> None:
    answer = leader.ask(1, FetchRequest(7, ORDERS, A, 3, 0))
    assert answer.error is KafkaError.NOT_LEADER_OR_FOLLOWER


def test_a_fetch_that_a_follower_sent_before_its_restart_is_refused(leader: Brokers) -> None:
    leader.ask(1, FetchRequest(2, ORDERS, A, 3, 0, broker_epoch=9))
    assert leader.ask(1, FetchRequest(2, ORDERS, A, 3, 2, broker_epoch=8)).error is KafkaError.STALE_BROKER_EPOCH


def test_a_record_is_acknowledged_only_when_all_in_sync_have_it(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1, 2))
    assert brokers.produce(1, "a", wait_ms=1_000) == [NOTHING]
    assert brokers.values(1) == ["a"]
    brokers.lead(1, to=(2,), isr=(1, 2))
    brokers.run(1_000)
    assert brokers.partition(1).high_watermark == 1


def test_a_producer_gets_a_timeout_when_nobody_knows(make_brokers: Callable[..., Brokers]) -> None:
    brokers = make_brokers(count=1, request_timeout_ms=1_000, replica_lag_ms=60_000)
    brokers.lead(1, to=(1,), isr=(1, 2))
    assert brokers.produce(1, "a") == [KafkaError.REQUEST_TIMED_OUT]


def test_too_few_in_sync_take_no_record(make_brokers: Callable[..., Brokers]) -> None:
    brokers = make_brokers(count=1, min_insync_replicas=2)
    brokers.lead(1, to=(1,), isr=(1,))
    assert brokers.produce(1, "a") == [KafkaError.NOT_ENOUGH_REPLICAS]
    assert brokers.values(1) == []


def test_a_record_that_was_taken_is_not_acknowledged_when_too_few_are_left(
    make_brokers: Callable[..., Brokers],
) -> None:
    brokers = make_brokers(count=1, min_insync_replicas=2, replica_lag_ms=1_000, tick_ms=1_000)
    brokers.lead(1, to=(1,), isr=(1, 2))
    assert brokers.produce(1, "a", wait_ms=10_000) == [KafkaError.NOT_ENOUGH_REPLICAS]
    assert brokers.partition(1).isr == (1,)


def test_waiting_requests_are_answered_when_the_role_ends(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1, 2))
    waiting: list[object] = []
    brokers.world.network.call("client-1", "broker-1", ProduceRequest(ORDERS, A, "a"), waiting.append)
    brokers.world.network.call("client-2", "broker-1", FetchRequest(-1, ORDERS, A, -1, 0), waiting.append)
    brokers.run(100)
    assert waiting == []
    brokers.lead(2, 1, to=(1,))
    brokers.run(100)
    assert [answer.error for answer in waiting] == [KafkaError.NOT_LEADER_OR_FOLLOWER] * 2  # type: ignore[attr-defined]


def test_a_full_disk_refuses_a_record_and_serves_what_it_has(leader: Brokers) -> None:
    leader.disks[1].fill(0)
    assert leader.produce(1, "c") == [KafkaError.KAFKA_STORAGE_ERROR]
    assert values(leader.fetch(1).records) == ["a", "b"]
    leader.disks[1].make_room(0)
    assert leader.produce(1, "d") == [2]


def test_records_are_flushed_before_they_are_acknowledged_where_that_is_asked_for(
    make_brokers: Callable[..., Brokers],
) -> None:
    brokers = make_brokers(flush_records=1)
    brokers.lead(1)
    brokers.produce(1, "a", "b")
    brokers.run()
    assert [brokers.partition(node_id).log.recovery_point for node_id in (1, 2, 3)] == [2, 2, 2]


def told(
    make_brokers: Callable[..., Brokers], mode: PartitionMode, epoch: int = 3, *, enable: bool = True, **more: Any
) -> Brokers:
    """Broker 1, which leads alone in epoch 3, after a controller said who may use the partition in an epoch."""
    brokers = make_brokers(count=1, delete_topic_partition_enable=enable)
    brokers.lead(1, 3, to=(1,), isr=(1,))
    tell(brokers, mode=mode, to=(1,), epoch=epoch, **more)
    return brokers


# KIP694-1
@pytest.mark.parametrize("mode", [PartitionMode.READ_ONLY, PartitionMode.NONE])
def test_a_leader_refuses_writes_to_a_partition_that_is_not_read_and_written_and_is_read_on(
    make_brokers: Callable[..., Brokers], mode: PartitionMode
) -> None:
    brokers = told(make_brokers, PartitionMode.READ_WRITE)
    assert brokers.produce(1, "a") == [0]
    tell(brokers, mode=mode, to=(1,), epoch=3)
    assert brokers.produce(1, "b") == [KafkaError.LEADER_NOT_AVAILABLE]
    assert values(brokers.fetch(1).records) == ["a"] == brokers.values(1)
    tell(brokers, to=(1,), epoch=3)
    assert brokers.produce(1, "c") == [1]


# KIP694-1
@pytest.mark.parametrize(("epoch", "takes"), [(2, False), (3, True), (4, True)])
def test_a_new_leader_takes_no_record_before_it_knows_the_mode_as_of_its_election(
    make_brokers: Callable[..., Brokers], epoch: int, takes: bool
) -> None:
    brokers = told(make_brokers, PartitionMode.READ_WRITE, epoch)
    assert brokers.produce(1, "a") == ([0] if takes else [KafkaError.LEADER_NOT_AVAILABLE])


# KIP694-1
def test_what_is_known_of_an_earlier_topic_of_the_name_is_not_enough(make_brokers: Callable[..., Brokers]) -> None:
    brokers = told(make_brokers, PartitionMode.READ_WRITE, topic_id=B)
    assert brokers.produce(1, "a") == [KafkaError.LEADER_NOT_AVAILABLE]


# KIP694-1
def test_a_write_that_waits_for_its_replicas_is_refused_when_the_mode_comes(
    make_brokers: Callable[..., Brokers],
) -> None:
    brokers = make_brokers(delete_topic_partition_enable=True)
    brokers.lead(1, to=(1,))
    tell(brokers)
    answers: list[Any] = []
    brokers.world.network.call("client-1", "broker-1", ProduceRequest(ORDERS, A, "a"), answers.append)
    brokers.run(500)
    assert answers == []
    tell(brokers, mode=PartitionMode.READ_ONLY)
    brokers.run(100)
    assert [each.error for each in answers] == [KafkaError.LEADER_NOT_AVAILABLE]
    brokers.lead(1, to=(2, 3))
    brokers.run(5_000)
    # Nobody can know whether it was written: a consumer reads it, and its producer was never told so.
    assert (brokers.values(2), len(answers)) == (["a"], 1)


# KIP694-3
def test_while_it_is_switched_off_a_leader_asks_for_no_mode(make_brokers: Callable[..., Brokers]) -> None:
    assert told(make_brokers, PartitionMode.READ_ONLY, enable=False).produce(1, "a") == [0]


def partition(number: int, leader: int = 1, mode: PartitionMode = PartitionMode.READ_WRITE) -> PartitionMetadata:
    return PartitionMetadata(number, leader, 0, (1,), (1, 2), (), mode)


def cache(*updates: tuple[str, TopicId | None, list[PartitionMetadata]], restricts: bool = False) -> MetadataCache:
    found = MetadataCache(restricts=restricts)
    for name, topic_id, partitions in updates:
        states = (
            UpdateMetadataPartition(
                *(each.partition, 1, each.leader, each.leader_epoch, each.isr, 0, each.replicas, each.offline),
                int(each.mode),
            )
            for each in partitions
        )
        topics = (UpdateMetadataTopic(name, topic_id, tuple(states)),)
        found.update(UpdateMetadataRequest(9, 1, topics, SENT_LIVE))
    return found


# KIP516-9
def test_a_topic_is_answered_with_its_id() -> None:
    answer = cache(("orders", A, [partition(1), partition(0)])).answer(MetadataRequest())
    assert answer.topics == (TopicMetadata("orders", A, (partition(0), partition(1))),)
    assert (answer.live_brokers, answer.controller_id, answer.unknown) == (LIVE, 9, ())


def test_partitions_that_an_update_does_not_name_stay_as_they_were() -> None:
    found = cache(("orders", A, [partition(0), partition(1)]), ("orders", A, [partition(1, leader=2)]))
    assert found.answer(MetadataRequest()).topics[0].partitions == (partition(0), partition(1, leader=2))


# KIP516-9
def test_under_another_id_nothing_of_the_old_topic_is_answered() -> None:
    found = cache(("orders", A, [partition(0), partition(1)]), ("orders", B, [partition(0, leader=2)]))
    assert found.answer(MetadataRequest()).topics == (TopicMetadata("orders", B, (partition(0, leader=2),)),)


def test_a_topic_that_is_being_deleted_is_no_longer_answered() -> None:
    found = cache(("orders", A, [partition(0), partition(1)]), ("orders", A, [partition(1, leader=DURING_DELETE)]))
    assert found.answer(MetadataRequest()).topics[0].partitions == (partition(0),)
    found = cache(("orders", A, [partition(0)]), ("orders", A, [partition(0, leader=DURING_DELETE)]))
    assert found.answer(MetadataRequest()).topics == ()


# KIP694-1
def test_modes_are_answered() -> None:
    modes = [partition(0, mode=PartitionMode.NONE), partition(1, mode=PartitionMode.READ_ONLY), partition(2)]
    answered = cache(("orders", A, modes)).answer(MetadataRequest()).topics[0].partitions
    assert [each.mode for each in answered] == [-1, 1, 0]


# KIP694-1
def test_a_client_that_knows_no_modes_gets_no_leader_for_a_partition_that_is_leaving() -> None:
    modes = [partition(0, mode=PartitionMode.NONE), partition(1, mode=PartitionMode.READ_ONLY), partition(2)]
    older = MetadataRequest(version=METADATA_WITH_MODES - 1)
    answered = cache(("orders", A, modes), restricts=True).answer(older).topics[0].partitions
    assert [(each.leader, each.error, each.mode) for each in answered] == [(-1, 5, 0), (-1, 5, 0), (1, 0, 0)]
    # Switched off, it is answered as if there were no modes.
    answered = cache(("orders", A, modes)).answer(older).topics[0].partitions
    assert [(each.leader, each.error, each.mode) for each in answered] == [(1, 0, 0)] * 3


def test_who_asks_for_some_topics_hears_of_these_and_which_are_not_known() -> None:
    found = cache(("b", B, [partition(0)]), ("a", A, [partition(0)]))
    answer = found.answer(MetadataRequest(("b", "c")))
    assert ([topic.topic for topic in answer.topics], answer.unknown) == (["b"], ("c",))
    assert [topic.topic for topic in found.answer(MetadataRequest()).topics] == ["a", "b"]
