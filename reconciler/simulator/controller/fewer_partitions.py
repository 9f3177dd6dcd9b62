"""Fewer partitions for a topic: clients stop using its last partitions, and then they are deleted (KIP694-1..4).

::

    ReadOnly      producers skip the partitions, consumers read on; until the delay is over
    None          all clients skip them; written down before it is sent
    Offline, NonExistent, and their replicas DeletionStarted, DeletionSuccessful: see ``deletion``

Each topic's request stands in ``/admin/delete_topic_partitions/<topic>`` until all of it is done, so the next
controller continues the work of this one. Delays are looked at every ``delete.topic.partition.interval.delay.ms``; a
request without a delay begins at once. A topic that was deleted, or re-created, takes its request with it. Where the
request's node is deleted while the partitions are still ReadOnly, they become usable again. Brokers stage the replicas
that they delete, so the data can be brought back until it is purged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from layout.topic import TopicPartition
from logstore import check_fields
from reconciler.errors import UsageError
from reconciler.simulator.controller.active import ActiveController
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import DELETE_PARTITIONS, delete_partitions_path

ENABLE = "delete.topic.partition.enable"
INTERVAL = "delete.topic.partition.interval.delay.ms"


@dataclass(frozen=True, slots=True)
class FewerPartitionsSettings:
    """A controller's settings for fewer partitions.

    Attributes:
        enabled: ``delete.topic.partition.enable``; without it no request is accepted, and none continues.
        interval_ms: ``delete.topic.partition.interval.delay.ms``: how often delays are looked at.
    """

    enabled: bool = False
    interval_ms: int = 300_000

    def __post_init__(self) -> None:
        check_fields(self, UsageError, {"interval_ms": (1, math.inf)})

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> FewerPartitionsSettings:
        """Read settings by Kafka's names, as in ``server.properties``; one that is not given has its default.

        Raises:
            UsageError: a setting has another name, or its value is not what the name wants.
        """
        unknown = sorted(settings.keys() - {ENABLE, INTERVAL})
        if unknown:
            raise UsageError(f"{unknown[0]!r:.60} is no setting here: {ENABLE} and {INTERVAL} are")
        enabled, interval = settings.get(ENABLE, "false"), settings.get(INTERVAL, "300000")
        if enabled not in ("true", "false"):
            raise UsageError(f"{ENABLE} = {enabled!r:.20}, where true or false is expected")
        if not interval.isascii() or not interval.isdigit() or len(interval) > 18 or int(interval) < 1:
            raise UsageError(f"{INTERVAL} = {interval!r:.20}, where a number of ms from 1 on is expected")
        return cls(enabled == "true", int(interval))


@dataclass(frozen=True, slots=True)
class FewerPartitionsRequest:
    """The request for fewer partitions of one topic, and its progress.

    Attributes:
        topic_id: of the topic; None: it had none.
        total: number of partitions to be left.
        created_ms: time of the request, by the clock of the controller of that time.
        delay_ms: how long consumers may read on; 0: not at all.
        mode: of the partitions to be deleted.
    """

    topic_id: str | None
    total: int
    created_ms: int
    delay_ms: int
    mode: PartitionMode

    @property
    def due_ms(self) -> int:
        """The time from which nobody may use the partitions."""
        return self.created_ms + self.delay_ms


def encode_fewer_partitions(request: FewerPartitionsRequest) -> bytes:
    """Encode a request for its node."""
    return orjson.dumps(
        {
            "version": 1,
            "topic_id": request.topic_id,
            "delete_partitions": request.total,
            "create_timestamp": request.created_ms,
            "delay_ms": request.delay_ms,
            "mode": int(request.mode),
        }
    )


def decode_fewer_partitions(data: bytes) -> FewerPartitionsRequest | None:
    """Decode a request from its node; None when it cannot be read."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    match found:
        case {
            "topic_id": str() | None as topic_id,
            "delete_partitions": int(total),
            "create_timestamp": int(created_ms),
            "delay_ms": int(delay_ms),
            "mode": -1 | 1 as mode,
        } if total > 0 and delay_ms >= 0:
            return FewerPartitionsRequest(topic_id, total, created_ms, delay_ms, PartitionMode(mode))
    return None


class FewerPartitions:
    """The extension of an active controller that carries out the requests."""

    def __init__(self, active: ActiveController, now_ms: Callable[[], int], settings: FewerPartitionsSettings) -> None:
        """Extend a controller; ``now_ms`` returns the machine's time."""
        self._active, self._context, self._nodes = active, active.core.context, active.core.nodes
        self._now_ms, self._settings = now_ms, settings

    def paths(self) -> Sequence[str]:
        """Return the path above the requests."""
        return [DELETE_PARTITIONS]

    def loaded(self) -> None:
        """Set the modes that the last controller had sent, before the first request is sent."""
        for topic, request in self._requests():
            for partition in self._leaving(topic, request):
                self._context.modes[partition] = request.mode

    def started(self) -> None:
        """Continue all requests, and look at the delays from now on."""
        for topic, _ in self._requests():
            self._go_on(topic)
        self._look_later()

    def changed(self, path: str) -> None:
        """Handle a request that came, or was withdrawn."""
        topic = path.removeprefix(f"{DELETE_PARTITIONS}/")
        if path != DELETE_PARTITIONS:
            self._go_on(topic)

    def deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """End the request: all replicas are gone, and the topic's node has fewer partitions."""
        for topic in sorted({partition.topic for partition in partitions}):
            self._nodes.delete_node(delete_partitions_path(topic))

    def _go_on(self, topic: str) -> None:
        """Do the next step of a topic's request, if it is due."""
        request = self._request(topic)
        if not self._settings.enabled:
            return
        if request is None:
            self._give_back(topic)
            return
        leaving = self._leaving(topic, request)
        if not leaving:
            # The topic is gone or was re-created, or a controller stopped when only this node was left.
            self._nodes.delete_node(delete_partitions_path(topic))
            return
        if request.mode is PartitionMode.READ_ONLY and (request.delay_ms == 0 or self._now_ms() >= request.due_ms):
            request = replace(request, mode=PartitionMode.NONE)
            self._nodes.write_node(delete_partitions_path(topic), encode_fewer_partitions(request))
        self._set_modes(topic, leaving, request.mode)
        if request.mode is PartitionMode.NONE:
            self._active.deletions.begin_partitions(leaving)

    def _set_modes(self, topic: str, partitions: Sequence[TopicPartition], mode: PartitionMode) -> None:
        other = [each for each in partitions if self._context.mode_of(each) is not mode]
        if other:
            numbers = ", ".join(str(each.partition) for each in other)
            self._active.core.say(f"partitions {numbers} of {topic} are {mode.name} now: the topic gets fewer")
            self._active.set_modes(other, mode)

    def _give_back(self, topic: str) -> None:
        """Withdraw a request: read-only partitions become writable again; a deletion that has begun continues."""
        kept = [
            each
            for each in self._context.partitions_of(topic)
            if self._context.mode_of(each) is PartitionMode.READ_ONLY and not self._context.is_leaving(each)
        ]
        self._set_modes(topic, kept, PartitionMode.READ_WRITE)

    def _look_later(self) -> None:
        self._active.core.later(self._settings.interval_ms, "look at partitions that are to be deleted", self._look)

    def _look(self) -> None:
        for topic, _ in self._requests():
            self._go_on(topic)
        self._look_later()

    def _requests(self) -> list[tuple[str, FewerPartitionsRequest]]:
        if not self._settings.enabled:
            return []
        found = [(topic, self._request(topic)) for topic in self._nodes.names(DELETE_PARTITIONS)]
        return [(topic, request) for topic, request in found if request is not None]

    def _request(self, topic: str) -> FewerPartitionsRequest | None:
        data = self._nodes.node(delete_partitions_path(topic))
        request = None if data is None else decode_fewer_partitions(data)
        if data is not None and request is None:
            self._active.core.say(f"the request for fewer partitions of {topic} cannot be read and is passed over")
        return request

    def _leaving(self, topic: str, request: FewerPartitionsRequest) -> list[TopicPartition]:
        """Return the existing partitions that a request deletes; empty where it was for another topic of the name."""
        topic_id = self._context.topic_ids.get(topic)
        if topic not in self._context.births or request.topic_id not in (None, str(topic_id)):
            return []
        return [each for each in self._context.partitions_of(topic) if each.partition >= request.total]


def fewer_partitions_extension(
    now_ms: Callable[[], int], settings: FewerPartitionsSettings
) -> Callable[[ActiveController], FewerPartitions]:
    """Return what makes the extension for fewer partitions at each election of a controller."""
    return lambda active: FewerPartitions(active, now_ms, settings)
