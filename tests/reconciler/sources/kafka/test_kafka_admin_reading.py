"""Read a live cluster: complete answers, incomplete ones, and clusters that keep changing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.errors import MetadataError
from reconciler.sources.kafka import admin
from reconciler.sources.kafka.admin import ATTEMPTS, LivePartition, read

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

from confluent_kafka import KafkaError, KafkaException

from tests.reconciler.sources.kafka.kafka_client import CLUSTER, Client


def cluster() -> Client:
    return Client({"orders": ((-7, 9), {0: [1, 2], 1: [2, 1]}), "legacy": (None, {0: [3]})})


def nth(question: str, number: int, act: Callable[[], object]) -> Callable[[str], object]:
    """Acts before the answer to a question that is asked for the n-th time."""
    left = [number]

    def before(asked: str) -> None:
        if asked == question:
            left[0] -= 1
            if left[0] == 0:
                act()

    return before


def test_everything_is_read_in_order() -> None:
    found = read(cluster(), "k:1")
    assert (found.cluster_id, found.brokers, found.is_whole) == (CLUSTER, (1, 2), True)
    assert list(found.topics) == ["legacy", "orders"]
    assert found.topics["orders"] == {0: LivePartition((1, 2), (1, 2), 1), 1: LivePartition((2, 1), (2, 1), 2)}
    assert found.topic_ids == {"legacy": None, "orders": str(TopicId.from_halves(-7, 9))}


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_a_topic_id_is_canonical_text_whatever_its_bits(most: int, least: int) -> None:
    found = read(Client({"t": ((most, least), {0: [1]})}), "k:1").topic_ids["t"]
    expected = TopicId.from_halves(most, least)
    assert found == (None if expected.is_zero else str(expected))


def test_topics_are_described_a_thousand_at_a_time() -> None:
    client = Client({f"t{number:05}": ((1, number + 1), {0: [1]}) for number in range(2500)})
    assert len(read(client, "k:1").topic_ids) == 2500
    assert client.asked.count("describe") == 3


def test_a_cluster_without_topics_is_read_without_describing_any() -> None:
    client = Client({})
    assert read(client, "k:1").topics == {}
    assert "describe" not in client.asked


@pytest.mark.parametrize("code", ["LEADER_NOT_AVAILABLE", "LISTENER_NOT_FOUND"])
def test_an_error_about_the_leader_alone_leaves_the_replicas_known(code: str) -> None:
    client = cluster()
    client.partition_errors["orders-0"] = getattr(KafkaError, code)
    client.leaderless.add("orders-0")
    assert read(client, "k:1").topics["orders"][0] == LivePartition((1, 2), (1, 2), -1)


def refused(client: Client) -> str:
    with pytest.raises(MetadataError) as caught:
        read(client, "k:1")
    assert str(caught.value).startswith("k:1: ")
    return str(caught.value)


@pytest.mark.parametrize("code", ["REPLICA_NOT_AVAILABLE", "UNKNOWN", "TOPIC_AUTHORIZATION_FAILED"])
def test_any_other_error_of_a_partition_is_refused_because_replicas_may_lack(code: str) -> None:
    client = cluster()
    client.partition_errors["orders-1"] = getattr(KafkaError, code)
    assert "orders-1: " in refused(client)


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "LEADER_NOT_AVAILABLE", "INVALID_TOPIC_EXCEPTION"])
def test_any_error_of_a_topic_is_refused(code: str) -> None:
    client = cluster()
    number = {"INVALID_TOPIC_EXCEPTION": 17}.get(code) or getattr(KafkaError, code)
    client.topic_errors["orders"] = number
    assert "the answer is not whole, and what it lacks would look unwanted: topic orders: " in refused(client)


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ({}, "topic t has partitions none"),
        ({1: [1]}, "topic t has partitions 1"),
        ({0: [1], 2: [1]}, "topic t has partitions 0, 2"),
        ({0: []}, "t-0 has no replicas"),
    ],
)
def test_a_topic_that_lacks_something_is_refused(partitions: dict[int, list[int]], said: str) -> None:
    assert said in refused(Client({"t": ((1, 1), partitions)}))


def test_an_id_that_two_topics_have_is_refused() -> None:
    assert "topics a and b both have the ID" in refused(Client({"a": ((1, 1), {0: [1]}), "b": ((1, 1), {0: [1]})}))


def test_a_cluster_without_an_id_is_refused() -> None:
    client = cluster()
    client.cluster_id = None
    assert "name no cluster ID" in refused(client)


def test_brokers_of_two_clusters_are_refused() -> None:
    client = cluster()
    client.before = nth("list", 2, lambda: setattr(client, "cluster_id", "other"))
    assert f"brokers of two clusters answer, {CLUSTER} and other" in refused(client)


@pytest.mark.parametrize(("question", "number"), [("describe", 1), ("rights", 1), ("list", 2)])
@pytest.mark.parametrize(
    "change",
    [
        lambda topics: topics.pop("legacy"),
        lambda topics: topics.update(new=((3, 3), {0: [1]})),
        lambda topics: topics.update(legacy=(None, {0: [4]})),
        lambda topics: topics.update(legacy=(None, {0: [3, 4]})),
        lambda topics: topics.update(legacy=(None, {0: [3], 1: [3]})),
    ],
)
def test_a_change_during_the_reading_is_read_again(question: str, number: int, change: Any) -> None:
    client = cluster()
    client.before = nth(question, number, lambda: change(client.topics))
    found = read(client, "k:1")
    settled = cluster()
    change(settled.topics)
    assert found == read(settled, "k:1")
    assert client.asked.count("list") >= 3


def test_a_cluster_that_never_rests_is_refused() -> None:
    client = cluster()
    numbers = iter(range(100))
    client.before = lambda _: client.topics.update(legacy=(None, {0: [next(numbers)]}))
    assert f"{ATTEMPTS} times running, last " in refused(client)


@pytest.mark.parametrize("authorizer", ["org.apache.kafka.StandardAuthorizer", None, 31, KafkaError._TIMED_OUT])
def test_where_one_broker_may_check_rights_the_list_is_not_certainly_whole(authorizer: str | int | None) -> None:
    client = cluster()
    client.authorizers[2] = authorizer
    assert read(client, "k:1").is_whole is False


def test_no_answer_about_rights_is_no_proof_either(monkeypatch: pytest.MonkeyPatch) -> None:
    client = cluster()
    monkeypatch.setattr(admin, "ANSWER_TIMEOUT_S", 0.01)
    monkeypatch.setattr(client, "describe_configs", lambda resources, **_: {resources[0]: Future()})
    assert read(client, "k:1").is_whole is False


def test_an_error_that_is_no_change_goes_to_whoever_asked() -> None:
    client = cluster()

    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    client.before = nth("describe", 1, fail)
    with pytest.raises(KafkaException):
        read(client, "k:1")
