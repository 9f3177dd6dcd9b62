"""Answers are checked against the topic ID on the disk of the replica that they come from."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.store import LogStore
from reconciler.protocol import LeaderAndIsrRequest, LeaderAndIsrResponse
from reconciler.simulator.checks.response_check import EpochCheck, wrongly_served
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.kernel import (
    CONSUMER,
    EpochEndRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    Numbered,
    ProduceRequest,
    Record,
    Request,
    Response,
)
from tests.reconciler.simulator.conftest import NewCluster

ORDERS, BY_ID = TopicPartition("orders", 0), TopicPartition("", 0)
B = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
FINE = ListOffsetsResponse(KafkaError.NONE, 0, 0)


def asks(topic_id: TopicId | None, at: TopicPartition = ORDERS) -> list[Request]:
    return [
        FetchRequest(CONSUMER, at, topic_id, -1, 0),
        ListOffsetsRequest(at, topic_id),
        EpochEndRequest(at, topic_id, -1, 0),
        ProduceRequest(at, topic_id, "new"),
    ]


def answers_of(cluster: Cluster) -> list[tuple[Request, Response]]:
    found: list[tuple[Request, Response]] = []
    cluster.members[1].network.on_answer = lambda request, response: found.append((request, response))
    return found


def ask(cluster: Cluster, request: Request) -> Response:
    answers: list[Response | None] = []
    cluster.world.network.call("client-9", "broker-1", request, answers.append)
    cluster.run_until("it is answered", lambda: bool(answers))
    assert answers[0] is not None
    return answers[0]


def test_right_answers_are_seen_and_nothing_is_wrong_with_them(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", assignment={0: [1, 2]})
    cluster.produce("orders")
    cluster.run(for_ms=5_000)
    seen = answers_of(cluster)
    for request in [*asks(topic_id), *asks(topic_id, BY_ID), *asks(None), MetadataRequest()]:
        ask(cluster, request)
    assert {type(request) for request, _ in seen} >= {type(each) for each in [*asks(None), MetadataRequest()]}
    assert [wrongly_served(cluster.members[1], *each) for each in seen] == [None] * len(seen)


@pytest.mark.parametrize("number", range(4))
def test_every_kind_of_request_that_is_served_out_of_another_topic_is_reported(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:  # KIP516-8
    cluster = new_cluster()
    cluster.create_topic("orders", assignment={0: [1]})
    cluster.produce("orders")
    seen, request = answers_of(cluster), asks(B)[number]
    refused = ask(cluster, request)
    assert refused.error is KafkaError.INCONSISTENT_TOPIC_ID  # type: ignore[union-attr]
    assert wrongly_served(cluster.members[1], *seen[-1]) is None
    monkeypatch.setattr(LogStore, "fence", lambda *_: KafkaError.NONE)
    ask(cluster, request)
    wrong = wrongly_served(cluster.members[1], *seen[-1])
    assert wrong is not None
    assert wrong.startswith(f"broker-1 served a {type(request).__name__} for orders-0 of topic ID {B}")


def test_a_follower_that_is_given_an_old_record_is_reported_too(new_cluster: NewCluster) -> None:  # KIP516-8
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", assignment={0: [1, 2]})
    response = FetchResponse(KafkaError.NONE, (Record(3, 0, B, "old"),), 4, 4)
    assert wrongly_served(cluster.members[1], FetchRequest(2, ORDERS, topic_id, 0, 3), response) == (
        f"broker-1 served a FetchRequest for orders-0 of topic ID {topic_id} with offset 3, written under {B}: old"
    )


def test_an_answer_without_a_replica_and_one_without_an_id_on_the_disk_are_reported(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", assignment={0: [1]})
    member = cluster.members[1]
    for nowhere in (ListOffsetsRequest(TopicPartition("clicks", 0), topic_id), ListOffsetsRequest(BY_ID, B)):
        assert str(wrongly_served(member, nowhere, FINE)).endswith("and has no live replica of it")
    found = member.broker.store.get(ORDERS)
    file = Path(found.log_dir, found.path, "partition.metadata")
    for damage in (lambda: file.write_bytes(b""), file.unlink):
        damage()
        wrong = wrongly_served(member, ListOffsetsRequest(ORDERS, topic_id), FINE)
        assert str(wrong).endswith("and orders-0 on its disk has none")


def test_a_disk_that_failed_unnoticed_is_no_reason_to_complain(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", assignment={0: [1]})
    member = cluster.members[1]
    number = member.disks.log_dirs.index(member.broker.store.get(ORDERS).log_dir)
    member.disks.fail(number, Random(1))
    assert wrongly_served(member, ListOffsetsRequest(ORDERS, topic_id), FINE) is None
    member.disks.replace(number)
    assert wrongly_served(member, ListOffsetsRequest(ORDERS, topic_id), FINE) is None


def test_a_request_of_an_earlier_controller_or_to_an_earlier_registration_is_not_obeyed(
    new_cluster: NewCluster,
) -> None:  # FACTS §4.2
    cluster = new_cluster(1)
    member, seen, registered = cluster.members[1], EpochCheck(), cluster.oracle.registered(1)
    assert registered > 0 == cluster.oracle.registered(2) + 1
    done, refused = (LeaderAndIsrResponse(error, ()) for error in (KafkaError.NONE, KafkaError.STALE_CONTROLLER_EPOCH))

    def wrong(controller_epoch: int, broker_epoch: int, answer: LeaderAndIsrResponse = done) -> str:
        request = Numbered(1, LeaderAndIsrRequest(1, controller_epoch, (), broker_epoch))
        return seen.wrongly_obeyed(member, request, answer, registered) or ""

    assert wrong(5, registered) == wrong(5, -1) == wrong(4, registered, refused) == wrong(6, registered) == ""
    assert wrong(5, registered).endswith("of controller epoch 5, and had obeyed one of 6 before")
    assert wrong(6, registered - 1).endswith(f"its registration {registered - 1}, and it is registered as {registered}")
    cluster.stop_broker(1)
    cluster.start_broker(1)
    assert wrong(5, -1) == "", "a broker that starts again has forgotten what it obeyed"
