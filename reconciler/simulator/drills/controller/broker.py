"""A scripted broker: it has no disk, only a set of replicas, and answers as the scene says.

It checks each request for what no controller may send: a state of a replica that is not the broker's, the deletion of a
replica that is assigned to it, and a request that belongs to an earlier registration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import (
    ControllerRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    RequestType,
    StopReplicaRequest,
    StopReplicaResponse,
    StopTopic,
    TopicErrors,
    TopicState,
    UpdateMetadataResponse,
)
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.kernel import Answer, Numbered, Request, Response, World, broker_endpoint

_R = TypeVar("_R", LeaderAndIsrRequest, StopReplicaRequest)
Held = tuple[TopicPartition, TopicId | None]
IsAssigned = Callable[[Held, int], bool]
"""Whether a replica is, or may be, assigned to a broker at this moment."""

_ON_THE_WAY_MS: Final = 20
"""A message that was sent before something happened has arrived so long after it."""


class ScriptedBroker:
    """One broker.

    Attributes:
        epoch: of its registration.
        held: its replicas, with the IDs of their topics.
        received: the requests that it got, in order.
        failed: replicas that it cannot serve, for their disk failed.
        undeletable: replicas that it cannot delete.
        leaving: replicas that are assigned until they are deleted.
        silent: it gives no answer, and does nothing.
        late_ms: how long it waits with each answer.
    """

    def __init__(self, node_id: int, world: World, is_assigned: IsAssigned) -> None:
        """Hold nothing, and listen nowhere until it is registered."""
        self.node_id, self._world, self._is_assigned = node_id, world, is_assigned
        self.epoch, self._since_ms = -1, 0
        self.held: set[Held] = set()
        self.received: list[ControllerRequest] = []
        self.failed: set[TopicPartition] = set()
        self.undeletable: set[TopicPartition] = set()
        self.leaving: set[TopicPartition] = set()
        self.silent, self.late_ms = False, 0

    def registered(self, epoch: int) -> None:
        """Listen from now on, in another epoch."""
        self.epoch, self._since_ms = epoch, self._world.now_ms
        self.listen()

    def listen(self, *, is_up: bool = True) -> None:
        """Take requests, or refuse each connection."""
        self._world.network.serve(broker_endpoint(self.node_id), self._serve if is_up else None)

    def of(self, kind: type[_R]) -> list[_R]:
        """Give the requests of one kind that it got."""
        return [each for each in self.received if isinstance(each, kind)]

    def deletions(self, at: TopicPartition) -> list[TopicId | None]:
        """Give the topic ID of each request to delete a replica."""
        return [
            topic.topic_id
            for request in self.of(StopReplicaRequest)
            for topic in request.topics
            for each in topic.partitions
            if each.delete and topic.topic == at.topic and each.partition == at.partition
        ]

    def _serve(self, sender: str, request: Request, answer: Answer) -> None:
        plain = request.request if isinstance(request, Numbered) else request
        if self.silent or not isinstance(plain, ControllerRequest):
            return
        if plain.broker_epoch != self.epoch and self._world.now_ms > self._since_ms + _ON_THE_WAY_MS:
            raise BrokenInvariantError(
                f"broker {self.node_id} of epoch {self.epoch} is sent a {type(plain).__name__} of its epoch "
                f"{plain.broker_epoch}"
            )
        self.received.append(plain)
        response = self._answer(plain)
        if self.late_ms:
            self._world.add(self.late_ms, "", f"a late answer of broker {self.node_id}", lambda: answer(response))
        else:
            answer(response)

    def _answer(self, request: ControllerRequest) -> Response:
        stale = KafkaError.STALE_BROKER_EPOCH if request.broker_epoch != self.epoch else KafkaError.NONE
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(stale) if stale else self._led(request)
        if isinstance(request, StopReplicaRequest):
            return StopReplicaResponse(stale) if stale else self._stopped(request)
        return UpdateMetadataResponse(stale)

    def _led(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        named = {held for topic in request.topics for held in self._states(topic)}
        if request.type is RequestType.FULL:
            self._check_drop(self.held - named, "a FULL request that does not name it")
            self.held &= named
        topics = []
        for topic in request.topics:
            errors = []
            for state in topic.partitions:
                at = TopicPartition(topic.topic, state.partition)
                self._take((at, topic.topic_id))
                errors.append(PartitionError(at.partition, self._error(at in self.failed)))
            topics.append(TopicErrors("" if topic.topic_id else topic.topic, topic.topic_id, tuple(errors)))
        return LeaderAndIsrResponse(KafkaError.NONE, tuple(topics))

    def _states(self, topic: TopicState) -> Iterable[Held]:
        for state in topic.partitions:
            if self.node_id not in state.replicas:
                raise BrokenInvariantError(
                    f"broker {self.node_id} is sent a state of {topic.topic}-{state.partition}, whose replicas are on "
                    f"{state.replicas}"
                )
            yield TopicPartition(topic.topic, state.partition), topic.topic_id

    def _take(self, replica: Held) -> None:
        """Hold a replica; one of the same ID under another name is renamed, one that had no ID gets it."""
        at, topic_id = replica
        former = {each for each in self.held if each[1] == topic_id and each[0].partition == at.partition}
        self.held -= {(at, None)} | (former if topic_id is not None else set())
        self.held.add(replica)

    def _stopped(self, request: StopReplicaRequest) -> StopReplicaResponse:
        return StopReplicaResponse(KafkaError.NONE, tuple(self._stop(topic) for topic in request.topics))

    def _stop(self, topic: StopTopic) -> TopicErrors:
        errors = []
        for each in topic.partitions:
            at = TopicPartition(topic.topic, each.partition)
            fails = each.delete and at in self.undeletable
            if each.delete and not fails:
                meant = {held for held in self.held if held[0] == at and topic.topic_id in {None, held[1]}}
                if at not in self.leaving:
                    self._check_drop(meant, f"a request to delete it with topic ID {topic.topic_id}")
                self.held.difference_update(meant)
            errors.append(PartitionError(each.partition, self._error(fails)))
        return TopicErrors(topic.topic, topic.topic_id, tuple(errors))

    def _check_drop(self, replicas: Iterable[Held], why: str) -> None:
        for each in replicas:
            if self._is_assigned(each, self.node_id):
                raise BrokenInvariantError(f"broker {self.node_id} is to have {each[0]} and loses it by {why}")

    @staticmethod
    def _error(fails: bool) -> KafkaError:
        return KafkaError.KAFKA_STORAGE_ERROR if fails else KafkaError.NONE
