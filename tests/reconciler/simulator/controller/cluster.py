"""A controller or several over a ZooKeeper in memory, with brokers that record their requests and answer on demand.

Time is cranked by hand: ``settle()`` lets everything happen that is due now, ``pass_time(ms)`` lets time go by. A
message arrives at once; a broker that is down, or silent, loses the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any, TypeVar

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicErrors,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from reconciler.protocol.check import reasons
from reconciler.simulator.controller import Controller, ControllerSettings
from reconciler.simulator.controller.active import ActiveController, Extension
from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.kernel import (
    AlterIsrRequest,
    AlterIsrResponse,
    Numbered,
    Request,
    Response,
)
from reconciler.simulator.zookeeper import (
    Session,
    ZooKeeper,
    broker_path,
    encode_broker,
    make_base,
    state_path,
    topic_path,
)
from reconciler.sources.zookeeper import decode_state, decode_topic, encode_topic

_R = TypeVar("_R", LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)

ID = TopicId(bytes([1] * 16))
OTHER_ID = TopicId(bytes([2] * 16))


def at(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


def live(*brokers: int) -> tuple[UpdateMetadataBroker, ...]:
    """Live brokers as they are registered here."""
    return tuple(
        UpdateMetadataBroker(each, (UpdateMetadataEndpoint(9092, f"broker-{each}", "PLAINTEXT", 0),))
        for each in brokers
    )


class HandTimer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class HandTimers:
    """Timers that fire when time is passed by hand."""

    def __init__(self) -> None:
        self.now, self._count = 0, 0
        self._queue: list[tuple[int, int, HandTimer, Callable[[], None]]] = []

    def now_ms(self) -> int:
        return self.now

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> HandTimer:
        timer = HandTimer()
        self._count += 1
        heappush(self._queue, (self.now + delay_ms, self._count, timer, act))
        return timer

    def pass_time(self, ms: int) -> None:
        """Let everything happen that is due within so many ms."""
        until = self.now + ms
        for _ in range(100_000):
            if not self._queue or self._queue[0][0] > until:
                self.now = until
                return
            self.now, _, timer, act = heappop(self._queue)
            if not timer.cancelled:
                act()
        raise AssertionError("this never comes to rest")


@dataclass
class FakeBroker:
    """Records requests; answers each partition with NONE, or with the error that it was given for it."""

    node_id: int
    up: bool = True
    silent: bool = False
    received: list[Request] = field(default_factory=list)
    leader_errors: dict[TopicPartition, int] = field(default_factory=dict)
    stop_errors: dict[TopicPartition, int] = field(default_factory=dict)
    top_level: int = KafkaError.NONE

    def of(self, kind: type[_R]) -> list[_R]:
        return [each for each in self.received if isinstance(each, kind)]

    def take(self, kind: type[_R]) -> list[_R]:
        """The requests of a kind since everything was last forgotten."""
        found = self.of(kind)
        self.received.clear()
        return found

    def answer(self, request: Request) -> Response:
        self.received.append(request)
        if isinstance(request, LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest):
            assert reasons(request) == []
        if isinstance(request, LeaderAndIsrRequest):
            topics = self._answered(request.topics, self.leader_errors)
            named_by_id = tuple(replace(each, topic="") if each.topic_id else each for each in topics)
            return LeaderAndIsrResponse(self.top_level, named_by_id)
        if isinstance(request, StopReplicaRequest):
            topics = () if self.top_level else self._answered(request.topics, self.stop_errors)
            return StopReplicaResponse(self.top_level, topics)
        return UpdateMetadataResponse(KafkaError.NONE)

    @staticmethod
    def _answered(topics: Sequence[Any], errors: Mapping[TopicPartition, int]) -> tuple[TopicErrors, ...]:
        def of(topic: str, partition: int) -> PartitionError:
            return PartitionError(partition, errors.get(at(topic, partition), 0))

        return tuple(
            TopicErrors(each.topic, each.topic_id, tuple(of(each.topic, one.partition) for one in each.partitions))
            for each in topics
        )


class Notes(Extension):
    """Keeps the calls that it gets."""

    def __init__(self, active: ActiveController) -> None:
        self.active = active
        self.calls: list[object] = []

    def paths(self) -> list[str]:
        return []

    def loaded(self) -> None:
        self.calls.append("loaded")

    def started(self) -> None:
        self.calls.append("started")

    def changed(self, path: str) -> None:
        self.calls.append(path)

    def deleted(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(tuple(partitions))


class Cluster:
    """Brokers 1, 2, ... each registered under a session of its own, and controllers in the processes of some."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        controllers: Sequence[int] = (1,),
        extensions: Sequence[Callable[[ActiveController], Extension]] = (),
        **settings: Any,
    ) -> None:
        self.timers = HandTimers()
        self.zookeeper = ZooKeeper(self.timers)
        self.said: list[str] = []
        self.settings, self.extensions = ControllerSettings(**settings), extensions
        self.brokers = {number: FakeBroker(number) for number in range(1, brokers + 1)}
        self.sessions: dict[int, Session] = {}
        self.admin = self.zookeeper.session("admin")
        make_base(self.admin)
        self.controllers: dict[int, Controller] = {}
        for number in self.brokers:
            self.register(number)
        for number in controllers:
            self.start_controller(number)
        self.settle()

    # What the controller asks of the outside.

    def say(self, who: str, text: str) -> None:
        self.said.append(f"{who} {text}")

    def serve(self, endpoint: str, server: object) -> None:
        raise AssertionError("a controller listens nowhere: its broker does")

    def call(self, sender: str, receiver: str, request: Request, answered: Callable[[Response | None], None]) -> None:
        broker = self.brokers[int(receiver.removeprefix("broker-"))]
        plain = request.request if isinstance(request, Numbered) else request

        def arrive() -> None:
            heard = broker.up and not broker.silent
            answer = broker.answer(plain) if heard else None
            self.timers.after(0, "answer", lambda: answered(answer))

        self.timers.after(0, "message", arrive)

    # What the outside does.

    def register(self, number: int) -> int:
        """Start a broker, or start it again; gives its epoch."""
        self.brokers[number].up = True
        self.sessions[number] = self.zookeeper.session(f"broker-{number}")
        self.sessions[number].create(broker_path(number), encode_broker(number), ephemeral=True)
        return self.epoch_of(number)

    def epoch_of(self, number: int) -> int:
        found = self.admin.find(broker_path(number))
        return -1 if found is None else found.czxid

    def start_controller(self, number: int, **settings: Any) -> Controller:
        controller = Controller(
            number,
            lambda: self.epoch_of(number),
            self,
            self.timers,
            self,
            ControllerSettings(**settings) if settings else self.settings,
            extensions=self.extensions,
        )
        self.controllers[number] = controller
        controller.start(self.sessions[number])
        return controller

    def kill(self, number: int) -> None:
        """A broker's machine stops, and ZooKeeper notices; a controller in its process goes too."""
        self.brokers[number].up = False
        if number in self.controllers:
            self.controllers[number].stop()
        self.sessions[number].expire()
        self.settle()

    def bounce(self, number: int) -> None:
        """A broker is started again before the controller hears that it went."""
        self.sessions[number].expire()
        self.register(number)
        self.settle()

    def create_topic(
        self, topic: str, assignment: Mapping[int, Sequence[int]], topic_id: TopicId | None = None
    ) -> None:
        data = encode_topic(topic_id, assignment)
        self.admin.create(topic_path(topic), data, parents=True)
        self.settle()

    def remove_node(self, path: str) -> None:
        self.admin.delete(path, recursive=True)

    def settle(self) -> None:
        self.timers.pass_time(0)

    def forget(self) -> None:
        """Nobody has received anything."""
        for broker in self.brokers.values():
            broker.received.clear()

    # What can be seen.

    @property
    def controller(self) -> Controller:
        """The one that is active; there is one."""
        (found,) = [each for each in self.controllers.values() if each.active]
        return found

    def topic(self, topic: str) -> Any:
        return decode_topic(self.admin.get(topic_path(topic)).data)

    def exists(self, path: str) -> bool:
        return self.admin.find(path) is not None

    def state(self, partition: TopicPartition) -> LeaderAndIsr:
        node = self.admin.get(state_path(partition))
        found = decode_state(node.data)
        assert found is not None
        return LeaderAndIsr(found.leader, found.leader_epoch, found.isr, node.version, found.controller_epoch)

    def alter_isr(self, partition: TopicPartition, isr: Sequence[int], /, **changes: Any) -> AlterIsrResponse:
        """The leader asks for another in-sync set, with everything else as it should be."""
        state = self.state(partition)
        values: dict[str, Any] = {
            "broker_id": state.leader,
            "broker_epoch": self.epoch_of(state.leader),
            "partition": partition,
            "topic_id": None,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "isr": tuple(isr),
        }
        answers: list[Any] = []
        self.controller.handle(f"broker-{state.leader}", AlterIsrRequest(**(values | changes)), answers.append)
        self.settle()
        (answer,) = answers
        assert isinstance(answer, AlterIsrResponse)
        return answer

    def said_about(self, text: str) -> list[str]:
        return [each for each in self.said if text in each]
