"""Requests to brokers, gathered while states change and sent together: to each broker what concerns it.

To a broker go, in this order: LeaderAndIsr, UpdateMetadata, StopReplica. The first LeaderAndIsr request that a
controller sends to a broker, after its own election and after each registration of the broker, is FULL: it has every
partition of that broker, and it is sent when there is none, for then everything on the broker is stale. All others are
INCREMENTAL (KIP516-4, KIP516-5). Without topic IDs requests are as before: UNSPECIFIED, and no IDs in them.

One queue of requests for each broker, one request in flight; sent again until it is answered.

Each request has a number of its own, in the order of sending, so that a broker knows a copy that comes late.

A queue ends when its broker is gone or was registered anew, or when the controller resigns: what waits is dropped, and
answers that still come are heard by nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.protocol import (
    ControlRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    StopTopic,
    TopicState,
)
from reconciler.simulator.controller.context import ControllerContext
from reconciler.simulator.controller.settings import ControllerSettings
from reconciler.simulator.controller.states import Replica, ReplicaState
from reconciler.simulator.kernel import (
    DURING_DELETE,
    Network,
    Numbered,
    PartitionMetadata,
    Response,
    TopicMetadata,
    UpdateMetadataRequest,
    broker_endpoint,
)

TopicKey: TypeAlias = tuple[str, TopicId | None]
LeaderAndIsrAnswered: TypeAlias = Callable[[int, LeaderAndIsrRequest, LeaderAndIsrResponse], None]
StopReplicaAnswered: TypeAlias = Callable[[int, StopReplicaRequest, StopReplicaResponse], None]

_DELETION_EPOCH = -2
"""The leader epoch of a StopReplica request whose topic is being deleted (FACTS §8)."""


@dataclass(slots=True)
class _Stop:
    """A StopReplica request on its way: one flag, and one ID for each topic, as the proposal draws it."""

    delete: bool
    topics: dict[str, tuple[TopicId | None, dict[int, int]]] = field(default_factory=dict)


class RequestBatch:
    """What is to be sent next.

    Attributes:
        on_leader_and_isr: is told each answer to a LeaderAndIsr request: broker, request, answer.
        on_stop_replica: the same for StopReplica requests that delete.
    """

    def __init__(self, node_id: int, context: ControllerContext, channels: Channels, settings: ControllerSettings):
        """Begin empty; contents are taken from the context when they are sent."""
        self._node_id, self._context, self._channels, self._settings = node_id, context, channels, settings
        self._states: dict[int, dict[TopicPartition, bool]] = {}
        self._full: set[int] = set()
        self._metadata: dict[int, set[TopicPartition]] = {}
        self._gone: list[TopicMetadata] = []
        self._stops: dict[int, list[_Stop]] = {}
        self.on_leader_and_isr: LeaderAndIsrAnswered = lambda broker, request, response: None
        self.on_stop_replica: StopReplicaAnswered = lambda broker, request, response: None

    def full(self, brokers: Iterable[int]) -> None:
        """Make the next LeaderAndIsr request of some brokers a FULL one; they get it with the next sending."""
        self._full.update(brokers)

    def leader_and_isr(self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool = False) -> None:
        """Tell some brokers who leads a partition, and all brokers what clients may be told of it."""
        for broker in brokers:
            states = self._states.setdefault(broker, {})
            states[partition] = states.get(partition, False) or is_new
        self.update_metadata([partition])

    def update_metadata(self, partitions: Iterable[TopicPartition] = (), brokers: Iterable[int] | None = None) -> None:
        """Tell brokers what clients may be told: which brokers live, and these partitions.

        Args:
            partitions: none: the brokers alone.
            brokers: None: all that live.
        """
        told = list(partitions)
        for broker in self._context.brokers if brokers is None else brokers:
            self._metadata.setdefault(broker, set()).update(told)

    def gone(self, topic: TopicMetadata) -> None:
        """Tell all brokers that a topic is deleted; this goes ahead of whatever has the topic's name now."""
        self._gone.append(topic)

    def stop_replica(self, replica: Replica, topic_id: TopicId | None, *, delete: bool, leaving: bool = False) -> None:
        """Have a broker stop serving a replica.

        Args:
            replica: which.
            topic_id: of the topic it belongs to, which may be one that is deleted.
            delete: it is to be deleted too; an order to stop it that has not been sent is part of that.
            leaving: its partition is being deleted, and so its leader epoch is nothing to go by.
        """
        (topic, number), stops = (replica.partition.topic, replica.partition.partition), self._stops
        told_id = topic_id if self._settings.topic_ids else None
        state = self._context.leadership.get(replica.partition)
        epoch = _DELETION_EPOCH if leaving else -1 if state is None else state.leader_epoch
        fitting: _Stop | None = None
        for stop in stops.setdefault(replica.broker, []):
            same = stop.topics.get(topic, (told_id, {}))[0] == told_id
            if delete and not stop.delete and same and topic in stop.topics:
                stop.topics[topic][1].pop(number, None)
            elif stop.delete == delete and same:
                fitting = stop
        if fitting is None:
            fitting = _Stop(delete)
            stops[replica.broker].append(fitting)
        fitting.topics.setdefault(topic, (told_id, {}))[1][number] = epoch

    def send(self) -> None:
        """Send what was gathered; a broker without a queue is passed over."""
        states, self._states = self._states, {}
        metadata, self._metadata = self._metadata, {}
        stops, self._stops = self._stops, {}
        gone, self._gone = self._gone, []
        full, self._full = self._full, set()
        for broker in self._channels.brokers():
            if gone:
                self._send_metadata(broker, tuple(gone))
            if broker in full or states.get(broker):
                self._send_states(broker, states.get(broker, {}), is_full=broker in full)
            if broker in metadata:
                self._send_metadata(broker, self._told(metadata[broker]))
            for stop in stops.get(broker, ()):
                self._send_stop(broker, stop)

    def _send_states(self, broker: int, states: Mapping[TopicPartition, bool], *, is_full: bool) -> None:
        context = self._context
        # A broker whose replica was dropped since it was gathered is told to stop it, and not who leads.
        wanted = {
            each: new
            for each, new in states.items()
            if each in context.leadership and broker in context.assignments[each].replicas
        }
        if is_full:
            wanted = {each: states.get(each, False) for each in self._every(broker)} | wanted
        if not wanted and not is_full:
            return
        kind = RequestType.UNSPECIFIED
        if self._settings.topic_ids:
            # Where a topic's node cannot be read the list may not be complete, and a broker must not think that it is.
            kind = RequestType.FULL if is_full and not context.unreadable else RequestType.INCREMENTAL
        by_topic: dict[str, list[PartitionState]] = {}
        for partition, is_new in sorted(wanted.items()):
            by_topic.setdefault(partition.topic, []).append(self._state(partition, is_new))
        request = LeaderAndIsrRequest(
            self._node_id,
            context.epoch,
            tuple(TopicState(topic, self._told_id(topic), tuple(each)) for topic, each in by_topic.items()),
            self._channels.epoch_of(broker),
            kind,
        )

        def answered(response: Response) -> None:
            if isinstance(response, LeaderAndIsrResponse):
                self.on_leader_and_isr(broker, request, response)

        self._channels.send(broker, request, answered)

    def _every(self, broker: int) -> list[TopicPartition]:
        """Every partition that a broker should have; one that never had a leader has no replica yet."""
        return [
            replica.partition
            for replica in self._context.replicas_on({broker})
            if replica.partition in self._context.leadership
            and self._context.replica_states.of(replica) is not ReplicaState.DELETION_SUCCESSFUL
        ]

    def _state(self, partition: TopicPartition, is_new: bool) -> PartitionState:
        found, assignment = self._context.leadership[partition], self._context.assignments[partition]
        return PartitionState(
            partition.partition,
            found.controller_epoch,
            found.leader,
            found.leader_epoch,
            found.isr,
            found.partition_epoch,
            assignment.replicas,
            assignment.adding,
            assignment.removing,
            is_new,
        )

    def _told_id(self, topic: str) -> TopicId | None:
        return self._context.topic_ids.get(topic) if self._settings.topic_ids else None

    def _told(self, partitions: Iterable[TopicPartition]) -> tuple[TopicMetadata, ...]:
        by_topic: dict[str, list[PartitionMetadata]] = {}
        for each in sorted(partitions):
            if each in self._context.leadership and each in self._context.assignments:
                by_topic.setdefault(each.topic, []).append(partition_metadata(self._context, each))
        return tuple(TopicMetadata(topic, self._told_id(topic), tuple(each)) for topic, each in by_topic.items())

    def _send_metadata(self, broker: int, topics: tuple[TopicMetadata, ...]) -> None:
        context = self._context
        request = UpdateMetadataRequest(
            self._node_id, context.epoch, self._channels.epoch_of(broker), topics, tuple(sorted(context.brokers))
        )
        self._channels.send(broker, request, lambda response: None)

    def _send_stop(self, broker: int, stop: _Stop) -> None:
        topics = tuple(
            StopTopic(
                topic,
                topic_id,
                tuple(StopPartition(number, epoch, stop.delete) for number, epoch in sorted(partitions.items())),
            )
            for topic, (topic_id, partitions) in sorted(stop.topics.items())
            if partitions
        )
        if not topics:
            return
        epoch = self._channels.epoch_of(broker)
        request = StopReplicaRequest(self._node_id, self._context.epoch, topics, epoch)

        def answered(response: Response) -> None:
            if stop.delete and isinstance(response, StopReplicaResponse):
                self.on_stop_replica(broker, request, response)

        self._channels.send(broker, request, answered)


def partition_metadata(
    context: ControllerContext, partition: TopicPartition, *, deleted: bool = False
) -> PartitionMetadata:
    """What clients may be told of a partition that has had a leader (KIP516-9, KIP694-1).

    Args:
        context: of the controller.
        partition: which.
        deleted: its topic is deleted; so it is for a partition that is on its way out.
    """
    state, replicas = context.leadership[partition], context.assignments[partition].replicas
    online = context.online(partition, though_leaving=True)
    leaving = deleted or context.is_leaving(partition)
    return PartitionMetadata(
        partition.partition,
        DURING_DELETE if leaving else state.leader,
        state.leader_epoch,
        state.isr,
        replicas,
        tuple(each for each in replicas if each not in online),
        context.mode_of(partition),
    )


ResponseHandler: TypeAlias = Callable[[Response], None]
Later: TypeAlias = Callable[[int, str, Callable[[], None]], None]
"""Has something done later, unless the controller has resigned by then: delay in ms, label, what."""

SentRequest: TypeAlias = ControlRequest | UpdateMetadataRequest


class Channels:
    """The queues of one controller."""

    def __init__(
        self,
        node_id: int,
        network: Network,
        settings: ControllerSettings,
        *,
        later: Later,
        guarded: Callable[[Callable[[], None]], None],
        step: Callable[[str], None],
    ) -> None:
        """Begin without any.

        Args:
            node_id: of the broker in whose process the controller runs; its end point sends.
            network: carries requests and answers.
            settings: how long to wait before a request is sent again.
            later: of this controller.
            guarded: runs what an answer leads to, unless the controller has resigned.
            step: is told before each first sending.
        """
        self._sender, self._network, self._later, self._guarded = broker_endpoint(node_id), network, later, guarded
        self._step, self._settings = step, settings
        self._open: dict[int, _Channel] = {}
        self._sent = 0

    def open(self, broker: int, broker_epoch: int) -> None:
        """Begin a queue for a broker that was registered; one that there was ends."""
        self.close(broker)
        self._open[broker] = _Channel(broker, broker_epoch)

    def close(self, broker: int) -> None:
        """End a broker's queue, if there is one."""
        found = self._open.pop(broker, None)
        if found is not None:
            found.closed = True

    def close_all(self) -> None:
        """End all queues."""
        for broker in list(self._open):
            self.close(broker)

    def brokers(self) -> list[int]:
        """The brokers that have a queue, sorted."""
        return sorted(self._open)

    def epoch_of(self, broker: int) -> int:
        """The broker epoch that goes into requests for a broker that has a queue."""
        return self._open[broker].broker_epoch

    def waiting(self, broker: int) -> int:
        """How many requests of a broker are not answered yet."""
        found = self._open.get(broker)
        return len(found.queue) if found is not None else 0

    def send(self, broker: int, request: SentRequest, told: ResponseHandler) -> None:
        """Put a request into a broker's queue; without a queue it is dropped, for the broker is gone.

        Args:
            broker: that gets it.
            request: what it gets.
            told: is told the answer, once.
        """
        channel = self._open.get(broker)
        if channel is None:
            return
        self._sent += 1
        channel.queue.append((Numbered(self._sent, request), told))
        if len(channel.queue) == 1:
            self._send_first(channel)

    def _send_first(self, channel: _Channel) -> None:
        request = channel.queue[0][0]
        channel.tries += 1
        if channel.tries == 1:
            kind = type(request.request).__name__.removesuffix("Request")
            self._step(f"send {kind} to {channel.broker}")

        def answered(response: Response | None) -> None:
            if not channel.closed:
                self._guarded(lambda: self._answered(channel, response))

        self._network.call(self._sender, broker_endpoint(channel.broker), request, answered)

    def _answered(self, channel: _Channel, response: Response | None) -> None:
        if response is None:
            pause = min(self._settings.retry_ms << min(channel.tries - 1, 20), self._settings.most_retry_ms)
            self._later(pause, f"send again to broker {channel.broker}", lambda: self._again(channel))
            return
        told = channel.queue.popleft()[1]
        channel.tries = 0
        if channel.queue:
            self._send_first(channel)
        told(response)

    def _again(self, channel: _Channel) -> None:
        if not channel.closed and channel.queue:
            self._send_first(channel)


class _Channel:
    """One queue; what is first in it is in flight."""

    def __init__(self, broker: int, broker_epoch: int) -> None:
        self.broker, self.broker_epoch = broker, broker_epoch
        self.queue: deque[tuple[Numbered, ResponseHandler]] = deque()
        self.closed = False
        self.tries = 0
