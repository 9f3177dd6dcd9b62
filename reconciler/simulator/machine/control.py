"""Control requests: their form on the wire, their way to ``reconciler.broker``, and the roles that follow.

Requests and answers are encoded and decoded again in KIP-516's form (``reconciler.protocol``), so that no field is used
that the form does not have. Its LeaderAndIsr answer names topics by ID alone: the names are looked up in the request,
as a controller would do it. If a topic has no ID, the answer travels in version 4, which has names. Records are flushed
before their replica is staged. Source: FACTS §4.2, §4.5, §5; KIP516-4, -5, -7.

``Broker.handle`` creates no namespace and renames nothing by itself: it answers 17 for a topic whose namespace the
disks lack, and 103 for a partition whose data lies here under another name. In a simulated cluster the controller's
word is enough for both: the store renames before the request is handled, so that no partition of the topic is made
under the new name while others have the old one; it creates what is lacking, and the request is handled once more for
those partitions. Source: KIP37-3, KIP37-4, KIP516-13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition, namespace_of
from logstore import KafkaError, LogStoreError
from logstore.namespaces import create_namespace, list_namespaces, rename_topic
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
    TopicState,
    Version,
    decode_leader_and_isr,
    decode_response,
    decode_stop_replica,
    encode_message,
)
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.hosted_replicas import HostedReplicas
from reconciler.simulator.machine.partition import HostedPartition

_VERSION_WITH_NAMES: Version = 4
"""A version of the LeaderAndIsr answer that names topics."""


_ON_ITS_WAY = "renamed."
"""Before a topic's ID: what it is called while two topics change names. It is known again by its ID."""


class ControlRequests:
    """Handles the control requests to one broker."""

    def __init__(self, host: Host, broker: Broker, replicas: HostedReplicas) -> None:
        """Handle requests for this broker."""
        self._host, self._broker, self._replicas = host, broker, replicas
        self._renaming = NamespaceChanges(host, broker, replicas)
        self.changed: Callable[[HostedPartition], None] = lambda partition: None
        """Called with each partition that got another role."""

    def handle(self, sent: ControlRequest, number: int | None = None) -> ControlResponse:
        """Do what a controller asks for, and return the answer as the controller receives it.

        ``number`` is the request's, see ``Broker.handle``.

        Raises:
            InvalidRequestError: the request is malformed; nothing was changed.
            UnsupportedVersionError: its form cannot express it.
        """
        if isinstance(sent, LeaderAndIsrRequest):
            return self._lead(decode_leader_and_isr(encode_message(sent, KIP516), KIP516), number)
        version = self._host.settings.stop_replica_version
        return self._stop(decode_stop_replica(encode_message(sent, version), version), version, number)

    def _lead(self, request: LeaderAndIsrRequest, number: int | None) -> ControlResponse:
        self._renaming.rename(request, number)
        self._replicas.flush(each for each in self._replicas if _may_be_staged(each, request))
        answered = self._broker.handle(request, number)
        response: ControlResponse = answered
        if answered.error == KafkaError.NONE:
            again = self._renaming.prepare(request, answered)
            if again is not None:
                response = merged(answered, self._broker.handle(again))
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
        """Take the role that a partition was given, and return the error to answer for it."""
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

    def _stop(self, request: StopReplicaRequest, version: Version, number: int | None) -> ControlResponse:
        named = [TopicPartition(topic.topic, each.partition) for topic in request.topics for each in topic.partitions]
        hosted = (self._replicas.get(at) for at in named)
        self._replicas.flush(each for each in hosted if each is not None)
        response = self._broker.handle(request, number)
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
    """Whether a request may stage a replica, so that its records must be flushed first."""
    for topic in request.topics:
        if topic.topic == partition.at.topic:
            return topic.topic_id != partition.topic_id
    return request.type is RequestType.FULL


def _with_errors(response: ControlResponse, change: Callable[[TopicPartition, int], int]) -> ControlResponse:
    """Replace each partition's error in an answer by what a function returns for it."""
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
    """The answer as the controller receives it, with the names and IDs of its own request."""
    data = encode_message(response, version)
    arrived: ControlResponse
    if isinstance(request, LeaderAndIsrRequest):
        arrived = decode_response(LeaderAndIsrResponse, data, version)
    else:
        arrived = decode_response(StopReplicaResponse, data, version)
    names = {topic.topic_id: topic.topic for topic in request.topics if topic.topic_id is not None}
    ids = {topic.topic: topic.topic_id for topic in request.topics}
    named = [replace(each, topic=_topic_name(each, names)) for each in arrived.topics]
    return replace(arrived, topics=tuple(replace(each, topic_id=ids.get(each.topic)) for each in named))


def _topic_name(errors: TopicErrors, names: Mapping[TopicId, str]) -> str:
    return errors.topic or ("" if errors.topic_id is None else names.get(errors.topic_id, ""))


def _error_name(error: int) -> str:
    return KafkaError(error).name if error in tuple(KafkaError) else str(error)


class NamespaceChanges:
    """Creates the namespaces and renames the topics that requests ask for."""

    def __init__(self, host: Host, broker: Broker, replicas: HostedReplicas) -> None:
        """Change the store of this broker; roles under an old name end."""
        self._host, self._broker, self._store, self._replicas = host, broker, broker.store, replicas

    def rename(self, request: LeaderAndIsrRequest, number: int | None) -> None:
        """Rename the topics that are here under other names than the request's, unless it is late (KIP516-13).

        Another topic that has such a name, and gets its own by the request, makes way.
        """
        ids = {topic.topic: topic.topic_id for topic in request.topics}
        wanted = {name: topic_id for name, topic_id in ids.items() if topic_id is not None}
        renamed = [name for name, topic_id in wanted.items() if self._store.topic_of(topic_id) not in (None, name)]
        if not renamed or not self._is_current(request, number):
            return
        for name in renamed:
            try:
                self._make_namespace(namespace_of(name))
                here = {each.topic_id for each in self._store.replicas() if each.partition.topic == name}
                for other in here & set(wanted.values()) - {wanted[name]}:
                    self._call(name, f"{_ON_ITS_WAY}{other}")
                former = self._store.topic_of(wanted[name])
                if former is not None:
                    self._call(former, name)
            except (LogStoreError, LayoutError) as error:
                self._host.say(f"{name}: {error}")

    def prepare(self, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> LeaderAndIsrRequest | None:
        """Create the namespaces that some partitions were refused for; the request's epochs are not stale.

        Returns:
            A request for these partitions alone, to be handled now; None: nothing was changed.
        """
        topics = []
        for topic, answers in zip(request.topics, response.topics, strict=True):
            states = [
                state
                for state, answer in zip(topic.partitions, answers.partitions, strict=True)
                if answer.error == KafkaError.INVALID_TOPIC_EXCEPTION
            ]
            if states and self._prepare(topic):
                topics.append(replace(topic, partitions=tuple(states)))
        return replace(request, topics=tuple(topics), type=RequestType.INCREMENTAL) if topics else None

    def _prepare(self, topic: TopicState) -> bool:
        """Create the namespace of a topic; returns whether anything was changed."""
        try:
            return self._make_namespace(namespace_of(topic.topic))
        except (LogStoreError, LayoutError) as error:
            self._host.say(f"{topic.topic}: {error}")
            return False

    def _is_current(self, request: LeaderAndIsrRequest, number: int | None) -> bool:
        """Whether the broker would obey a request: it is not of an older broker or controller epoch, and not late."""
        if request.broker_epoch != -1 and request.broker_epoch < self._broker.broker_epoch:
            return False
        if request.controller_epoch < self._broker.controller_epoch:
            return False
        return number is None or self._broker.comes_in_order(request.controller_epoch, number)

    def _make_namespace(self, namespace: str) -> bool:
        needed = any(log_dir.scheme is Scheme.NAMESPACED for log_dir in self._store.log_dirs)
        if not namespace or not needed or namespace in list_namespaces(self._store):
            return False
        create_namespace(self._store, namespace)
        self._host.say(f"namespace {namespace} is made")
        return True

    def _call(self, former: str, topic: str) -> None:
        """Give a topic another name."""
        old = [each for each in self._replicas if each.at.topic == former]
        self._replicas.flush(old)
        for each in old:
            self._replicas.drop(each.at)
        rename_topic(self._store, former, topic)
        self._broker.forget(former)
        self._host.say(f"topic {former} is called {topic} from now on")


def merged(first: LeaderAndIsrResponse, second: LeaderAndIsrResponse) -> ControlResponse:
    """The first answer, with the second's errors in place of its own where it has them."""
    newer = {
        TopicPartition(topic.topic, each.partition): each.error for topic in second.topics for each in topic.partitions
    }
    return _with_errors(first, newer.get)
