"""Requests to brokers: gathered while states change, sent together, and queued until they are answered.

A broker gets, in this order: LeaderAndIsr, UpdateMetadata, StopReplica. The first LeaderAndIsr request that a
controller sends to a broker, after its own election and after each registration of the broker, is FULL. It has every
partition of that broker, and it is sent even when there is none, for then everything on the broker is stale. All others
are INCREMENTAL (KIP516-4, KIP516-5). Without topic IDs requests are as before: UNSPECIFIED, and no IDs in them.

Each broker has one queue, with one request in flight, which is sent again until it is answered. Each request has a
number of its own, in the order of sending, so that a broker recognizes a copy that comes late. A queue ends when its
broker is gone or was registered anew, or when the controller resigns: waiting requests are dropped, and later answers
are ignored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.protocol import (
    ControllerRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    StopTopic,
    TopicState,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataTopic,
)
from reconciler.simulator.controller.context import ControllerContext
from reconciler.simulator.controller.settings import ControllerSettings
from reconciler.simulator.controller.states import AssignedReplica, ReplicaState
from reconciler.simulator.kernel import (
    DURING_DELETE,
    Network,
    Numbered,
    Response,
    broker_endpoint,
)

ResponseHandler: TypeAlias = Callable[[Response], None]
Later: TypeAlias = Callable[[int, str, Callable[[], None]], None]
"""Calls a function later, unless the controller has resigned by then: delay in ms, label, function."""

LeaderAndIsrAnswered: TypeAlias = Callable[[int, LeaderAndIsrRequest, LeaderAndIsrResponse], None]
StopReplicaAnswered: TypeAlias = Callable[[int, StopReplicaRequest, StopReplicaResponse], None]

_DELETION_EPOCH = -2
"""The leader epoch of a StopReplica request whose topic is being deleted (FACTS §8)."""


@dataclass(slots=True)
class _StopOrder:
    """A StopReplica request to be sent: one flag, and one ID for each topic, as in the proposal."""

    delete: bool
    topics: dict[str, tuple[TopicId | None, dict[int, int]]] = field(default_factory=dict)


class RequestBatch:
    """The requests to be sent next.

    Attributes:
        on_leader_and_isr: called with each answer to a LeaderAndIsr request: broker, request, answer.
        on_stop_replica: the same for StopReplica requests that delete.
    """

    def __init__(self, node_id: int, context: ControllerContext, channels: Channels, settings: ControllerSettings):
        """Start empty; contents are taken from the context when they are sent."""
        self._node_id, self._context, self._channels, self._settings = node_id, context, channels, settings
        self._states: dict[int, dict[TopicPartition, bool]] = {}
        self._full: set[int] = set()
        self._metadata: dict[int, set[TopicPartition]] = {}
        self._gone: list[UpdateMetadataTopic] = []
        self._stops: dict[int, list[_StopOrder]] = {}
        self.on_leader_and_isr: LeaderAndIsrAnswered = lambda broker, request, response: None
        self.on_stop_replica: StopReplicaAnswered = lambda broker, request, response: None

    def full(self, brokers: Iterable[int]) -> None:
        """Make the next LeaderAndIsr request to some brokers a FULL one, sent with the next :meth:`send`."""
        self._full.update(brokers)

    def leader_and_isr(self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool = False) -> None:
        """Send some brokers a partition's leader, and all brokers its metadata."""
        for broker in brokers:
            states = self._states.setdefault(broker, {})
            states[partition] = states.get(partition, False) or is_new
        self.update_metadata([partition])

    def update_metadata(self, partitions: Iterable[TopicPartition] = (), brokers: Iterable[int] | None = None) -> None:
        """Send brokers, or all live ones, the metadata for clients: the live brokers, and partitions where given."""
        updated = list(partitions)
        for broker in self._context.brokers if brokers is None else brokers:
            self._metadata.setdefault(broker, set()).update(updated)

    def gone(self, topic: UpdateMetadataTopic) -> None:
        """Send all brokers that a topic is deleted, before any metadata of a topic that has its name now."""
        self._gone.append(topic)

    def stop_replica(
        self, replica: AssignedReplica, topic_id: TopicId | None, *, delete: bool, leaving: bool = False
    ) -> None:
        """Ask a broker to stop serving a replica, whose topic may be deleted already.

        ``delete`` deletes it too, and replaces an unsent request that only stops it; ``leaving``: its partition is
        being deleted, so that its leader epoch means nothing.
        """
        (topic, number), stops = (replica.partition.topic, replica.partition.partition), self._stops
        sent_id = topic_id if self._settings.topic_ids else None
        state = self._context.leadership.get(replica.partition)
        epoch = _DELETION_EPOCH if leaving else -1 if state is None else state.leader_epoch
        fitting: _StopOrder | None = None
        for stop in stops.setdefault(replica.broker, []):
            same = stop.topics.get(topic, (sent_id, {}))[0] == sent_id
            if delete and not stop.delete and same and topic in stop.topics:
                stop.topics[topic][1].pop(number, None)
            elif stop.delete == delete and same:
                fitting = stop
        if fitting is None:
            fitting = _StopOrder(delete)
            stops[replica.broker].append(fitting)
        fitting.topics.setdefault(topic, (sent_id, {}))[1][number] = epoch

    def send(self) -> None:
        """Send the gathered requests to all brokers that have a queue."""
        states, self._states = self._states, {}
        metadata, self._metadata = self._metadata, {}
        stops, self._stops = self._stops, {}
        gone, self._gone = self._gone, []
        full, self._full = self._full, set()
        for broker in self._channels.brokers():
            for topics in _each_name_once(gone):
                self._send_metadata(broker, topics)
            if broker in full or states.get(broker):
                self._send_states(broker, states.get(broker, {}), is_full=broker in full)
            if broker in metadata:
                self._send_metadata(broker, self._topic_metadata(metadata[broker]))
            for stop in stops.get(broker, ()):
                self._send_stop(broker, stop)

    def _send_states(self, broker: int, states: Mapping[TopicPartition, bool], *, is_full: bool) -> None:
        context = self._context
        # A broker whose replica was dropped since gets a StopReplica request for it, and no leader.
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
            # Where a topic's node cannot be read the list may be incomplete, and a FULL request would delete the rest.
            kind = RequestType.FULL if is_full and not context.unreadable else RequestType.INCREMENTAL
        by_topic: dict[str, list[PartitionState]] = {}
        for partition, is_new in sorted(wanted.items()):
            by_topic.setdefault(partition.topic, []).append(self._state(partition, is_new))
        request = LeaderAndIsrRequest(
            self._node_id,
            context.epoch,
            tuple(TopicState(topic, self._sent_id(topic), tuple(each)) for topic, each in by_topic.items()),
            self._channels.epoch_of(broker),
            kind,
        )

        def answered(response: Response) -> None:
            if isinstance(response, LeaderAndIsrResponse):
                self.on_leader_and_isr(broker, request, response)

        self._channels.send(broker, request, answered)

    def _every(self, broker: int) -> list[TopicPartition]:
        """Return every partition of a broker; one that never had a leader has no replica yet."""
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

    def _sent_id(self, topic: str) -> TopicId | None:
        return self._context.topic_ids.get(topic) if self._settings.topic_ids else None

    def _topic_metadata(self, partitions: Iterable[TopicPartition]) -> tuple[UpdateMetadataTopic, ...]:
        by_topic: dict[str, list[UpdateMetadataPartition]] = {}
        for each in sorted(partitions):
            if each in self._context.leadership and each in self._context.assignments:
                by_topic.setdefault(each.topic, []).append(partition_metadata(self._context, each))
        return tuple(UpdateMetadataTopic(topic, self._sent_id(topic), tuple(each)) for topic, each in by_topic.items())

    def _send_metadata(self, broker: int, topics: tuple[UpdateMetadataTopic, ...]) -> None:
        context = self._context
        live, epoch = context.live_brokers(), self._channels.epoch_of(broker)
        request = UpdateMetadataRequest(self._node_id, context.epoch, topics, live, epoch)
        self._channels.send(broker, request, lambda response: None)

    def _send_stop(self, broker: int, stop: _StopOrder) -> None:
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
) -> UpdateMetadataPartition:
    """Return the metadata for clients of a partition that has had a leader (KIP516-9, KIP694-1).

    ``deleted``: its topic is deleted; a partition that is being deleted counts as deleted too.
    """
    state, replicas = context.leadership[partition], context.assignments[partition].replicas
    online = context.online(partition, though_leaving=True)
    leaving = deleted or context.is_leaving(partition)
    return UpdateMetadataPartition(
        partition.partition,
        state.controller_epoch,
        DURING_DELETE if leaving else state.leader,
        state.leader_epoch,
        state.isr,
        state.partition_epoch,
        replicas,
        tuple(each for each in replicas if each not in online),
        int(context.mode_of(partition)),
    )


def _each_name_once(topics: Iterable[UpdateMetadataTopic]) -> list[tuple[UpdateMetadataTopic, ...]]:
    """Split topics so that no request has two of one name: one may be deleted, made anew, and deleted again."""
    requests: list[dict[str, UpdateMetadataTopic]] = []
    for each in topics:
        if not requests or each.topic in requests[-1]:
            requests.append({})
        requests[-1][each.topic] = each
    return [tuple(request.values()) for request in requests]


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
        """Start without any queue; ``step`` is called with a label before each first sending.

        Once the controller has resigned, ``later`` and ``guarded`` call nothing.
        """
        self._sender, self._network, self._later, self._guarded = broker_endpoint(node_id), network, later, guarded
        self._step, self._settings = step, settings
        self._open: dict[int, _Channel] = {}
        self._sent = 0

    def open(self, broker: int, broker_epoch: int) -> None:
        """Begin a queue for a registered broker, and end its earlier one."""
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
        """Return the brokers that have a queue, sorted."""
        return sorted(self._open)

    def epoch_of(self, broker: int) -> int:
        """Return the broker epoch for requests to a broker that has a queue."""
        return self._open[broker].broker_epoch

    def waiting(self, broker: int) -> int:
        """Return the number of unanswered requests of a broker."""
        found = self._open.get(broker)
        return len(found.queue) if found is not None else 0

    def asks(self, broker: int, partition: TopicPartition) -> bool:
        """Whether an unanswered LeaderAndIsr request names a partition, so that the broker says anew how it is."""
        channel = self._open.get(broker)
        waiting = () if channel is None else (numbered.request for numbered, _ in channel.queue)
        return any(
            topic.topic == partition.topic and any(each.partition == partition.partition for each in topic.partitions)
            for request in waiting
            if isinstance(request, LeaderAndIsrRequest)
            for topic in request.topics
        )

    def send(self, broker: int, request: ControllerRequest, answered: ResponseHandler) -> None:
        """Queue a request to a broker, answered once; without a queue it is dropped, for the broker is gone."""
        channel = self._open.get(broker)
        if channel is None:
            return
        self._sent += 1
        channel.queue.append((Numbered(self._sent, request), answered))
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
        answered = channel.queue.popleft()[1]
        channel.tries = 0
        if channel.queue:
            self._send_first(channel)
        answered(response)

    def _again(self, channel: _Channel) -> None:
        if not channel.closed and channel.queue:
            self._send_first(channel)


class _Channel:
    """One broker's queue; its first request is in flight."""

    def __init__(self, broker: int, broker_epoch: int) -> None:
        self.broker, self.broker_epoch = broker, broker_epoch
        self.queue: deque[tuple[Numbered, ResponseHandler]] = deque()
        self.closed = False
        self.tries = 0
