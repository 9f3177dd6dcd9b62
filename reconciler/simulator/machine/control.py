"""Control requests: as bytes on their way, on to ``reconciler.broker``, and the roles that follow from the answer.

Requests and answers are encoded and decoded again in KIP-516's form (``reconciler.wire``), so a field that the form
does not have is not used by mistake. Its LeaderAndIsr answer names topics by ID alone: the names are those of the
request, as a controller would look them up; where a topic has no ID, the answer travels in version 4, which has names.
Records are flushed before what they belong to is staged. Source: FACTS §4.2, §4.5, §5; KIP516-4, -5, -7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError, LogStoreError
from reconciler.broker import Broker
from reconciler.protocol import (
    KIP516,
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionState,
    RequestType,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicErrors,
    Version,
    decode_leader_and_isr,
    decode_response,
    decode_stop_replica,
    encode_message,
)
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.hosted_replicas import HostedReplicas
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.simulator.machine.renaming import NamespaceChanges, merged

_VERSION_WITH_NAMES: Version = 4
"""A version of the LeaderAndIsr answer that names topics."""


class ControlRequests:
    """What controllers ask of one broker."""

    def __init__(self, host: Host, broker: Broker, replicas: HostedReplicas) -> None:
        """Handle requests for this broker."""
        self._host, self._broker, self._replicas = host, broker, replicas
        self._renaming = NamespaceChanges(host, broker.store, replicas)
        self.changed: Callable[[HostedPartition], None] = lambda partition: None
        """Told of each partition that got another role."""

    def handle(self, sent: ControlRequest) -> ControlResponse:
        """Do what a controller asks for; the answer is as it arrives at its end.

        Raises:
            InvalidRequestError: the request is malformed; nothing was changed.
            UnsupportedVersionError: its form has no words for it.
        """
        if isinstance(sent, LeaderAndIsrRequest):
            return self._lead(decode_leader_and_isr(encode_message(sent, KIP516), KIP516))
        version = self._host.settings.stop_replica_version
        return self._stop(decode_stop_replica(encode_message(sent, version), version), version)

    def _lead(self, request: LeaderAndIsrRequest) -> ControlResponse:
        self._replicas.flush(each for each in self._replicas if _may_be_staged(each, request))
        answered = self._broker.handle(request)
        if answered.error == KafkaError.NONE:
            again = self._renaming.prepare(request, answered)
            if again is not None:
                answered = merged(answered, self._broker.handle(again))
        response: ControlResponse = answered
        self._replicas.follow_the_store()
        states = {
            TopicPartition(topic.topic, state.partition): state
            for topic in request.topics
            for state in topic.partitions
        }
        if response.error == KafkaError.NONE:
            response = _with_errors(response, lambda at, error: self._take_role(at, states[at], error))
        version: Version = (
            KIP516 if all(topic.topic_id is not None for topic in request.topics) else _VERSION_WITH_NAMES
        )
        return _as_received(request, response, version)

    def _take_role(self, at: TopicPartition, state: PartitionState, error: int) -> int:
        """Take the role that a partition was given; gives what is answered for it."""
        if error != KafkaError.NONE:
            self._host.say(f"{at}: {_error_name(error)} to leader {state.leader} at epoch {state.leader_epoch}")
            return error
        try:
            partition = self._replicas.take_role(at, state)
        except LogStoreError as failed:
            self._host.say(f"{at}: {failed}")
            return failed.kafka_error
        if partition is not None:
            role = "leads" if partition.leads else f"follows {partition.leader}"
            self._host.say(f"{at}: {role} at epoch {partition.leader_epoch}, from offset {partition.log.end}")
            self.changed(partition)
        return error

    def _stop(self, request: StopReplicaRequest, version: Version) -> ControlResponse:
        named = [TopicPartition(topic.topic, each.partition) for topic in request.topics for each in topic.partitions]
        hosted = (self._replicas.get(at) for at in named)
        self._replicas.flush(each for each in hosted if each is not None)
        response = self._broker.handle(request)
        if response.error == KafkaError.NONE:
            _with_errors(response, self._stopped)
        self._replicas.follow_the_store()
        return _as_received(request, response, version)

    def _stopped(self, at: TopicPartition, error: int) -> int:
        if error == KafkaError.NONE:
            self._replicas.drop(at)
        self._host.say(f"{at}: {_error_name(error)} to StopReplica")
        return error


def _may_be_staged(partition: HostedPartition, request: LeaderAndIsrRequest) -> bool:
    """Whether a request may stage a replica, so that its records should be on the disk."""
    for topic in request.topics:
        if topic.topic == partition.at.topic:
            return topic.topic_id != partition.topic_id
    return request.type is RequestType.FULL


def _with_errors(response: ControlResponse, change: Callable[[TopicPartition, int], int]) -> ControlResponse:
    """The answer with each partition's error put through a function."""
    topics = tuple(
        TopicErrors(
            topic.topic,
            topic.topic_id,
            tuple(
                PartitionError(each.partition, change(TopicPartition(topic.topic, each.partition), each.error))
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return replace(response, topics=topics)


def _as_received(request: ControlRequest, response: ControlResponse, version: Version) -> ControlResponse:
    """The answer as it arrives, with the names and IDs that the controller finds in its own request."""
    kind = LeaderAndIsrResponse if isinstance(request, LeaderAndIsrRequest) else StopReplicaResponse
    arrived = decode_response(kind, encode_message(response, version), version)
    names = {topic.topic_id: topic.topic for topic in request.topics if topic.topic_id is not None}
    ids = {topic.topic: topic.topic_id for topic in request.topics}
    named = [replace(each, topic=_topic_name(each, names)) for each in arrived.topics]
    return replace(arrived, topics=tuple(replace(each, topic_id=ids.get(each.topic)) for each in named))


def _topic_name(errors: TopicErrors, names: Mapping[TopicId, str]) -> str:
    return errors.topic or ("" if errors.topic_id is None else names.get(errors.topic_id, ""))


def _error_name(error: int) -> str:
    return KafkaError(error).name if error in tuple(KafkaError) else str(error)
