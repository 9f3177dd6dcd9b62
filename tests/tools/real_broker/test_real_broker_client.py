"""What the client does about requests that nobody answers; no broker is started."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from tools.real_broker import client as module
from tools.real_broker.client import Client, Partition, Topic
from tools.real_broker.errors import CommandError, NotInTimeError

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka, whose errors these are, is not installed")
ERROR = kafka.KafkaError
LOST = [ERROR._TIMED_OUT, ERROR._TRANSPORT, ERROR.REQUEST_TIMED_OUT, ERROR.NOT_CONTROLLER]


class Scripted:
    """The cluster's answers to requests about a topic, one error for each request; None: it was done."""

    def __init__(self, *errors: int | None) -> None:
        self.errors, self.asked = list(errors), 0

    def create_topics(self, topics: list[Any], **times: float) -> dict[str, Future[None]]:
        """As of an AdminClient."""
        return {topics[0].topic: self._answer(**times)}

    def delete_topics(self, topics: list[str], **times: float) -> dict[str, Future[None]]:
        """As of an AdminClient."""
        return {topics[0]: self._answer(**times)}

    def list_topics(self, timeout: float) -> Any:
        """No topics."""
        return kafka.admin.ClusterMetadata()

    def _answer(self, request_timeout: float, operation_timeout: float) -> Future[None]:
        assert operation_timeout < request_timeout < module.SECONDS
        self.asked += 1
        found: Future[None] = Future()
        error = self.errors.pop(0)
        if error is None:
            found.set_result(None)
        else:
            found.set_exception(kafka.KafkaException(ERROR(error)))
        return found


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Topic]:
    """What the brokers say of the topic, look by look; the last one for good."""
    said = [Topic("orders", None, {0: Partition(1, (1, 2), (1, 2))})]
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(Client, "find_topic", lambda self, name: said.pop(0) if len(said) > 1 else said[0])
    return said


def client_of(cluster: Scripted, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(Client, "admin", property(lambda self: cluster))
    return Client("127.0.0.1:1")


@pytest.mark.parametrize("lost", LOST)
def test_a_topic_is_asked_for_again_and_may_be_there_already(
    lost: int, told: list[Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    for after in (None, ERROR.TOPIC_ALREADY_EXISTS):
        cluster = Scripted(lost, lost, after)
        assert client_of(cluster, monkeypatch).create_topic("orders", [[1, 2]]) == told[0]
        assert cluster.asked == 3


@pytest.mark.parametrize("before", [[], [ERROR._TIMED_OUT]])
def test_what_the_cluster_refuses_is_not_asked_for_again(
    before: list[int], told: list[Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Scripted(*before, ERROR.INVALID_REPLICA_ASSIGNMENT)
    with pytest.raises(CommandError, match=r"did not create the topic orders: .*INVALID_REPLICA_ASSIGNMENT"):
        client_of(cluster, monkeypatch).create_topic("orders", [[1, 2]])
    assert not cluster.errors


def test_a_topic_that_was_there_before_is_refused(told: list[Topic], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="TOPIC_ALREADY_EXISTS"):
        client_of(Scripted(ERROR.TOPIC_ALREADY_EXISTS), monkeypatch).create_topic("orders", [[1, 2]])


def test_a_cluster_that_never_answers_is_given_up(told: list[Topic], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.until, "__defaults__", (-1.0,))
    cluster = Scripted(ERROR._TIMED_OUT, None)
    with pytest.raises(NotInTimeError, match="the cluster answers the request to create the topic orders"):
        client_of(cluster, monkeypatch).create_topic("orders", [[1, 2]])
    assert cluster.asked == 1


def test_a_topic_is_waited_for_as_it_was_asked_for(told: list[Topic], monkeypatch: pytest.MonkeyPatch) -> None:
    right = told[0]
    other = Topic("orders", None, {0: Partition(1, (1, 3), (1, 3))})
    without_leader = Topic("orders", None, {0: Partition(None, (1, 2), (1, 2))})
    told[:] = [Topic("orders", None, {}), other, without_leader, right]
    assert client_of(Scripted(None), monkeypatch).create_topic("orders", [[1, 2]]) == right


@pytest.mark.parametrize(
    "answers",
    [
        [None],
        [ERROR.REQUEST_TIMED_OUT],
        [ERROR._TIMED_OUT, None],
        [ERROR.NOT_CONTROLLER, ERROR._TRANSPORT, ERROR.UNKNOWN_TOPIC_OR_PART],
    ],
)
def test_a_topic_is_deleted_once_an_answer_says_so(answers: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    cluster = Scripted(*answers)
    client_of(cluster, monkeypatch).delete_topic("orders")
    assert not cluster.errors
    with pytest.raises(CommandError, match=r"did not delete the topic orders: .*UNKNOWN_TOPIC_OR_PART"):
        client_of(Scripted(ERROR.UNKNOWN_TOPIC_OR_PART), monkeypatch).delete_topic("orders")
