"""What LeaderAndIsr requests make a cluster want (DESIGN §4; KIP516-4)."""

from __future__ import annotations

from typing import Any

import pytest

from layout.ids import TopicId
from reconciler.desired import Completeness, DesiredState
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState
from reconciler.sources.request_state import Received, merge, receiver

A, B = TopicId.from_halves(1, 1), TopicId.from_halves(2, 2)


def partition(index: int, replicas: tuple[int, ...], **more: Any) -> PartitionState:
    return PartitionState(index, 1, replicas[0], 5, replicas, 9, replicas, **more)


def request(*topics: TopicState, kind: RequestType = RequestType.FULL, epoch: int = 3) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(1, epoch, topics, type=kind)


def merged(*requests: tuple[LeaderAndIsrRequest, int]) -> DesiredState:
    received = [Received(one, node_id, f"{index}.json") for index, (one, node_id) in enumerate(requests)]
    return merge(received, "requests", "00")


def test_the_receiver_is_the_one_broker_that_all_replica_lists_share() -> None:
    topic = TopicState("t", A, (partition(0, (1, 3)), partition(1, (3, 2))))
    assert receiver(request(topic), "r.json") == 3


def test_an_ambiguous_receiver_is_refused_with_the_candidates_and_the_way_to_name_it() -> None:
    topic = TopicState("t", A, (partition(0, (1, 3)), partition(1, (3, 1))))
    with pytest.raises(UsageError, match=r"any of brokers 1, 3: .* request:r.json@1"):
        receiver(request(topic), "r.json")


def test_a_request_that_names_no_common_broker_is_refused() -> None:
    with pytest.raises(UsageError, match=r"request:r.json@N"):
        receiver(request(), "r.json")


def test_rows_are_those_of_the_receiver_alone() -> None:
    state = merged((request(TopicState("t", A, (partition(0, (1, 3)), partition(1, (3, 2), adding=(3,))))), 3))
    rows = [(row["partition"], row["node_id"], row["leader"], row["adding"]) for row in state.replicas.to_pylist()]
    assert rows == [(0, 3, False, False), (1, 3, True, True)]
    assert state.identity.scope == {3}
    assert {(row["isr_size"], row["leader_epoch"], row["partition_epoch"]) for row in state.replicas.to_pylist()} == {
        (2, 5, 9)
    }


def test_a_partition_without_the_receiver_is_known_and_not_wanted_here() -> None:
    state = merged((request(TopicState("t", A, (partition(0, (1, 2)),))), 3))
    assert state.replicas.num_rows == 0
    assert state.topics.to_pylist() == [{"topic": "t", "topic_id": str(A), "partitions": 1}]


@pytest.mark.parametrize(
    ("kind", "completeness"),
    [
        (RequestType.FULL, Completeness.FULL),
        (RequestType.INCREMENTAL, Completeness.INCREMENTAL),
        (RequestType.UNSPECIFIED, Completeness.INCREMENTAL),
    ],
)
def test_only_a_full_request_is_complete(kind: RequestType, completeness: Completeness) -> None:
    identity = merged((request(kind=kind), 3)).identity
    assert identity.completeness is completeness
    assert (identity.source, identity.cluster_id, identity.epoch) == ("request", None, 3)


def test_requests_for_several_brokers_make_one_state() -> None:
    first = request(TopicState("t", A, (partition(0, (1, 2)),)), epoch=3)
    second = request(TopicState("t", A, (partition(0, (1, 2)), partition(1, (2, 3)))), TopicState("u", B, ()), epoch=4)
    state = merged((first, 1), (second, 2))
    assert sorted((row["partition"], row["node_id"]) for row in state.replicas.to_pylist()) == [(0, 1), (0, 2), (1, 2)]
    counts = {row["topic"]: row["partitions"] for row in state.topics.to_pylist()}
    assert counts == {"t": 2, "u": 0}
    assert (state.identity.scope, state.identity.epoch) == ({1, 2}, 4)
    assert state.identity.completeness is Completeness.FULL


def test_an_incremental_request_among_full_ones_makes_the_whole_incremental_and_says_so() -> None:
    identity = merged((request(), 1), (request(kind=RequestType.INCREMENTAL), 2)).identity
    assert identity.completeness is Completeness.INCREMENTAL
    assert any("not every request is FULL" in problem for problem in identity.problems)


def test_of_two_requests_for_one_broker_the_greater_controller_epoch_counts() -> None:
    old = request(TopicState("t", A, (partition(0, (1,)),)), epoch=3)
    new = request(TopicState("t", B, (partition(0, (1,)),)), epoch=4)
    state = merged((old, 1), (new, 1))
    assert state.replicas["topic_id"].to_pylist() == [str(B)]
    assert any("0.json (controller epoch 3) is passed over" in problem for problem in state.identity.problems)


def test_two_requests_for_one_broker_and_epoch_are_refused() -> None:
    with pytest.raises(UsageError, match=r"0.json and 1.json are both for broker 1 and of controller epoch 3"):
        merged((request(), 1), (request(), 1))


def test_requests_that_give_one_topic_two_ids_are_refused() -> None:
    with pytest.raises(MetadataError, match=f"topic t the ID {B}, and another request gives it {A}"):
        merged((request(TopicState("t", A, ())), 1), (request(TopicState("t", B, ())), 2))


def test_requests_that_give_two_topics_one_id_are_refused() -> None:
    with pytest.raises(MetadataError, match=f"topic u the ID of topic t: {A}"):
        merged((request(TopicState("t", A, ())), 1), (request(TopicState("u", A, ())), 2))
