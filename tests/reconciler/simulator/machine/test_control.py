"""Control requests travel as bytes; roles, namespaces and new names follow from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.namespaces import list_namespaces
from reconciler.protocol import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    StopTopic,
    TopicErrors,
    TopicState,
)
from reconciler.simulator.kernel import FetchRequest
from reconciler.simulator.machine.control import merged
from tests.reconciler.simulator.machine.brokers import FULL, INCREMENTAL, ORDERS, A, B, Brokers, values

OTHER = TopicPartition("other", 0)
OTHER_ID = TopicId.from_halves(5, 5)


def state(partition: int = 0) -> PartitionState:
    return PartitionState(partition, 1, 1, 0, (1, 2, 3), 0, (1, 2, 3), is_new=True)


def request(*topics: TopicState, epoch: int = 1, kind: RequestType = INCREMENTAL) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(9, epoch, topics, -1, kind)


def staged(brokers: Brokers, node_id: int) -> list[Any]:
    return brokers.of[node_id].store.staged()


# KIP516-4
def test_the_answer_has_the_names_that_its_form_leaves_out(brokers: Brokers) -> None:
    answer = brokers.ask(1, request(TopicState("orders", A, (state(), state(1))), TopicState("other", B, (state(),))))
    assert answer == LeaderAndIsrResponse(
        0,
        (
            TopicErrors("orders", A, (PartitionError(0, 0), PartitionError(1, 0))),
            TopicErrors("other", B, (PartitionError(0, 0),)),
        ),
    )


# KIP516-11
def test_topics_without_an_id_are_distinguished_and_get_one_later(brokers: Brokers) -> None:
    answer = brokers.ask(1, request(TopicState("orders", None, (state(),)), TopicState("other", None, (state(),))))
    assert [(each.topic, each.topic_id, each.partitions[0].error) for each in answer.topics] == [
        ("orders", None, 0),
        ("other", None, 0),
    ]
    assert brokers.partition(1).topic_id is None
    assert not Path(brokers.disks[1].log_dirs[0], "orders-0", "partition.metadata").exists()
    brokers.ask(1, request(TopicState("orders", A, (state(),))))
    assert brokers.partition(1).topic_id == A
    assert str(A) in Path(brokers.disks[1].log_dirs[0], "orders-0", "partition.metadata").read_text()
    assert brokers.fetch(1, topic_id=B).error is KafkaError.INCONSISTENT_TOPIC_ID


def test_a_request_of_an_older_controller_changes_no_role(brokers: Brokers) -> None:
    brokers.ask(1, request(epoch=5))
    answer = brokers.ask(1, request(TopicState("orders", A, (state(),)), epoch=4))
    assert answer.error == KafkaError.STALE_CONTROLLER_EPOCH
    assert brokers.of[1].replicas.get(ORDERS) is None


def test_a_request_for_an_earlier_life_changes_no_role(brokers: Brokers) -> None:
    old = brokers.of[1].broker.broker_epoch
    brokers.of[1].shut_down()
    brokers.of[1].start()
    stale = LeaderAndIsrRequest(9, 1, (TopicState("orders", A, (state(),)),), old, INCREMENTAL)
    assert brokers.ask(1, stale).error == KafkaError.STALE_BROKER_EPOCH
    assert brokers.of[1].replicas.get(ORDERS) is None


# KIP516-5
def test_a_full_request_stages_what_it_lacks_with_all_its_records(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.produce(1, "a", "b")
    brokers.run()
    brokers.ask(2, request(TopicState("other", OTHER_ID, (state(),)), kind=FULL))
    assert brokers.of[2].replicas.get(ORDERS) is None
    assert brokers.of[2].replicas.get(OTHER) is not None
    assert [each.topic_id for each in staged(brokers, 2)] == [A]
    brokers.crash(2)
    brokers.of[2].start()
    location = staged(brokers, 2)[0].location
    lines = Path(brokers.disks[2].log_dirs[0], location, "00000000000000000000.log").read_text().splitlines()
    assert [line.split(" ", 5)[5] for line in lines] == ["a", "b"]


# KIP516-5
def test_a_topic_that_was_made_anew_begins_empty_and_shows_no_old_record(brokers: Brokers) -> None:
    """The scenario "Stale state": 2 was away while the topic was deleted and made again."""
    brokers.lead(1)
    brokers.produce(1, "old")
    brokers.run()
    brokers.crash(2)
    brokers.stop_replica(1)
    brokers.stop_replica(3)
    brokers.lead(1, 0, topic_id=B, to=(1, 3), isr=(1, 3))
    assert brokers.produce(1, "new", topic_id=B) == [0]
    brokers.of[2].start()
    assert brokers.lead(1, 0, topic_id=B, to=(2,), isr=(1, 3), kind=FULL) == {2: 0}
    brokers.run()
    assert brokers.values(2) == ["new"]
    assert [record.topic_id for record in brokers.partition(2).log.read(0, 9)] == [B]
    assert [each.topic_id for each in staged(brokers, 2)] == [A]
    assert brokers.ask(2, FetchRequest(-1, ORDERS, A, -1, 0)).error is KafkaError.INCONSISTENT_TOPIC_ID


# KIP516-6
def test_what_was_staged_comes_back_with_its_records(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1,))
    brokers.produce(1, "a", "b")
    brokers.ask(1, request(kind=FULL))
    assert [each.topic_id for each in staged(brokers, 1)] == [A]
    brokers.lead(1, 1, to=(1,), isr=(1,), kind=FULL)
    assert values(brokers.fetch(1).records) == ["a", "b"]
    assert staged(brokers, 1) == []


# KIP516-7
def test_stop_replica_takes_the_role_and_stages_only_where_it_says_so(brokers: Brokers) -> None:
    brokers.lead(1)
    answer = brokers.stop_replica(1, delete=False)
    assert answer == StopReplicaResponse(0, (TopicErrors("orders", A, (PartitionError(0, 0),)),))
    assert brokers.of[1].replicas.get(ORDERS) is None
    assert staged(brokers, 1) == []
    brokers.stop_replica(1)
    assert len(staged(brokers, 1)) == 1


# KIP516-7
def test_stop_replica_for_another_topic_of_that_name_changes_no_role(brokers: Brokers) -> None:
    brokers.lead(1)
    answer = brokers.stop_replica(1, B)
    assert answer.topics[0].partitions[0].error == KafkaError.INCONSISTENT_TOPIC_ID
    assert brokers.partition(1).leads


def test_in_kip_516s_form_a_stop_replica_has_no_leader_epoch(make_brokers: Any) -> None:
    late = StopReplicaRequest(9, 1, (StopTopic("orders", A, (StopPartition(0, 2, True),)),))
    for version, error in (("kip-516", KafkaError.NONE), (4, KafkaError.FENCED_LEADER_EPOCH)):
        brokers = make_brokers(count=1, stop_replica_version=version)
        brokers.lead(1, 3, to=(1,), isr=(1,))
        assert brokers.ask(1, late).topics[0].partitions[0].error == error
        brokers.close()
        for folder in Path(brokers.disks[1].root).parent.iterdir():
            folder.rename(folder.with_name(f"{folder.name}.{version}"))


def test_a_request_that_its_form_cannot_say_is_not_answered_and_changes_nothing(brokers: Brokers) -> None:
    brokers.lead(1)
    both = (StopPartition(0, -1, True), StopPartition(1, -1, False))
    assert brokers.ask(1, StopReplicaRequest(9, 1, (StopTopic("orders", A, both),)), 40_000) is None
    assert brokers.said("send two requests")
    assert brokers.partition(1).leads


def test_a_replica_whose_records_cannot_be_read_is_answered_with_a_storage_error(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers.lead(1, to=(1,))
    brokers.of[1].shut_down()
    brokers.of[1].start()
    Path(brokers.disks[1].log_dirs[0], "orders-0", "00000000000000000000.log").mkdir()
    assert brokers.lead(1, 1, to=(1,)) == {1: KafkaError.KAFKA_STORAGE_ERROR}
    assert brokers.of[1].replicas.get(ORDERS) is None


MOVED = TopicPartition("org:apache:orders", 0)
PURCHASES = TopicPartition("purchases", 0)


# KIP37-3
def test_a_topic_in_a_namespace_is_made_together_with_its_tiers(make_brokers: Callable[..., Brokers]) -> None:
    brokers = make_brokers(count=1, scheme="namespaced")
    assert brokers.lead(1, at=MOVED, to=(1,), isr=(1,)) == {1: 0}
    assert list_namespaces(brokers.of[1].store) == ["org", "org:apache"]
    assert Path(brokers.disks[1].log_dirs[0], "org", "apache", "orders-0").is_dir()
    assert brokers.lead(1, at=TopicPartition("org:apache:more", 0), topic_id=B, to=(1,), isr=(1,)) == {1: 0}


# KIP516-13, KIP37-3
@pytest.mark.parametrize(
    ("scheme", "name", "folder"),
    [
        ("flat", PURCHASES, "purchases-0"),
        ("namespaced", PURCHASES, "purchases-0"),
        ("namespaced", MOVED, "org/apache/orders-0"),
        ("by-topic-id", MOVED, f"{A.hex[:2]}/{A.hex}_0"),
    ],
)
@pytest.mark.parametrize("kind", [FULL, INCREMENTAL])
def test_a_topic_under_another_name_keeps_its_records(
    make_brokers: Callable[..., Brokers], scheme: str, name: TopicPartition, folder: str, kind: int
) -> None:
    brokers = make_brokers(count=1, scheme=scheme)
    brokers.lead(1, to=(1,), isr=(1,))
    assert brokers.produce(1, "a", "b") == [0, 1]
    assert brokers.lead(1, 1, at=name, to=(1,), isr=(1,), kind=kind) == {1: 0}  # type: ignore[arg-type]
    assert brokers.of[1].replicas.get(ORDERS) is None
    assert values(brokers.ask(1, FetchRequest(-1, name, A, -1, 0)).records) == ["a", "b"]
    assert brokers.ask(1, FetchRequest(-1, ORDERS, None, -1, 0)).error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION
    assert Path(brokers.disks[1].log_dirs[0], folder, "00000000000000000000.log").is_file()
    brokers.crash(1)
    brokers.of[1].start()
    assert [str(each.partition) for each in brokers.of[1].store.replicas()] == [str(name)]


def test_what_stands_in_the_way_for_another_reason_stays_as_it_was_answered(brokers: Brokers) -> None:
    brokers.lead(1)
    assert brokers.lead(1, at=MOVED, topic_id=B, to=(1,)) == {1: KafkaError.INVALID_TOPIC_EXCEPTION}
    assert brokers.lead(1, 1, topic_id=B, to=(1,), kind=RequestType.UNSPECIFIED) == {
        1: KafkaError.INCONSISTENT_TOPIC_ID
    }
    assert brokers.partition(1).topic_id == A


def test_a_disk_that_refuses_leaves_the_topic_under_its_old_name(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1,))
    brokers.produce(1, "a")
    brokers.disks[1].fill(0)
    assert brokers.lead(1, 1, at=PURCHASES, to=(1,), isr=(1,)) == {1: KafkaError.INCONSISTENT_TOPIC_ID}
    assert brokers.of[1].store.get(ORDERS).topic_id == A
    brokers.disks[1].make_room(0)
    assert brokers.lead(1, 1, at=PURCHASES, to=(1,), isr=(1,)) == {1: 0}


def test_second_answers_stand_in_the_place_of_the_first() -> None:
    def answer(topic: str, *errors: int) -> TopicErrors:
        return TopicErrors(topic, A, tuple(PartitionError(number, error) for number, error in enumerate(errors)))

    first = LeaderAndIsrResponse(0, (answer("a", 0, 103), answer("b", 103)))
    second = LeaderAndIsrResponse(0, (TopicErrors("a", A, (PartitionError(1, 0),)),))
    assert merged(first, second) == LeaderAndIsrResponse(0, (answer("a", 0, 0), answer("b", 103)))
