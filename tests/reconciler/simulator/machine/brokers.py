"""A few brokers over real folders, a kernel without faults, and a controller that is played by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.fs.crash_disk import MachineDisks
from reconciler.protocol import (
    LeaderAndIsrRequest,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
)
from reconciler.simulator.kernel import (
    AlterIsrRequest,
    AlterIsrResponse,
    Answer,
    FetchRequest,
    ProduceRequest,
    Record,
    Request,
    Response,
    World,
    broker_endpoint,
)
from reconciler.simulator.machine import BrokerSettings, SimulatedBroker
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.simulator.zookeeper import Session, ZooKeeper, kafka_paths
from reconciler.sources.zookeeper import znodes

A = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
B = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
ORDERS = TopicPartition("orders", 0)
ALL = (1, 2, 3)
FULL, INCREMENTAL = RequestType.FULL, RequestType.INCREMENTAL
OPERATOR = "controller-9"
NOTHING: Any = object()


class HandController:
    """Takes part in no election; answers AlterIsr as the test says, and agrees to all where it says nothing."""

    def __init__(self, *parts: object) -> None:
        self.sessions: list[Session] = []
        self.asked: list[AlterIsrRequest] = []
        self.refuses: list[KafkaError] = []
        self.stopped = 0

    def start(self, session: Session) -> None:
        self.sessions.append(session)

    def stop(self) -> None:
        self.stopped += 1

    def handle(self, sender: str, request: AlterIsrRequest, answer: Answer) -> None:
        self.asked.append(request)
        if self.refuses:
            answer(AlterIsrResponse(self.refuses.pop(0)))
        else:
            answer(AlterIsrResponse(KafkaError.NONE, request.leader_epoch, request.isr, request.partition_epoch + 1))


class Brokers:
    """Brokers that are up, each with its own disks; broker 1 is the active controller."""

    def __init__(self, root: Path, *, count: int = 3, disks: int = 1, seed: int = 1, **settings: Any) -> None:
        self.world = World(seed)
        self.zookeeper = ZooKeeper(self.world.timers("zookeeper"))
        self.settings = BrokerSettings(**settings)
        self.disks: dict[int, MachineDisks] = {}
        self.of: dict[int, SimulatedBroker] = {}
        self.controllers: list[HandController] = []
        for node_id in range(1, count + 1):
            folder = root / f"machine-{node_id}"
            folder.mkdir()
            endpoint = broker_endpoint(node_id)
            self.disks[node_id] = MachineDisks(str(folder), disks, partial(self.world.passes, endpoint))
            self.of[node_id] = SimulatedBroker(
                *(node_id, self.disks[node_id], self.zookeeper, self.world.network, self.world.timers(endpoint)),
                *(self.world.history, self.settings, self._controller),
            )
            self.of[node_id].start()
        self.session = self.zookeeper.session("test")
        self.session.create(kafka_paths.CONTROLLER, znodes.encode_controller(1))

    def _controller(self, broker_epoch: Callable[[], int]) -> HandController:
        self.controllers.append(HandController(broker_epoch))
        return self.controllers[-1]

    @property
    def controller(self) -> HandController:
        found = self.of[1].controller
        assert isinstance(found, HandController)
        return found

    def run(self, milliseconds: int = 2_000) -> None:
        self.world.run(for_ms=milliseconds)

    def ask(self, node_id: int, request: Request, wait_ms: int = 2_000, sender: str = OPERATOR) -> Any:
        """The answer, None for a lost connection, NOTHING for none in that time."""
        answers: list[Response | None] = []
        self.world.network.call(sender, broker_endpoint(node_id), request, answers.append)
        for _ in range(wait_ms // 5):
            if answers:
                break
            self.run(5)
        return answers[0] if answers else NOTHING

    def lead(
        self,
        leader: int,
        epoch: int = 0,
        *,
        at: TopicPartition = ORDERS,
        topic_id: TopicId | None = A,
        isr: tuple[int, ...] = ALL,
        to: tuple[int, ...] = ALL,
        kind: RequestType = INCREMENTAL,
        replicas: tuple[int, ...] = ALL,
    ) -> dict[int, Any]:
        """Tell brokers who leads; what each of them answered for the partition."""
        state = PartitionState(at.partition, 1, leader, epoch, isr, epoch, replicas, is_new=epoch == 0)
        request = LeaderAndIsrRequest(9, 1, (TopicState(at.topic, topic_id, (state,)),), -1, kind)
        answers = {node_id: self.ask(node_id, request) for node_id in to}
        return {node_id: answer.topics[0].partitions[0].error for node_id, answer in answers.items()}

    def stop_replica(self, node_id: int, topic_id: TopicId | None = A, *, delete: bool = True) -> Any:
        topics = (StopTopic(ORDERS.topic, topic_id, (StopPartition(ORDERS.partition, delete=delete),)),)
        return self.ask(node_id, StopReplicaRequest(9, 1, topics))

    def produce(self, leader: int, *values: str, topic_id: TopicId | None = A, wait_ms: int = 2_000) -> list[Any]:
        """The answer for each value: its offset, or the error."""
        found = []
        for value in values:
            answer = self.ask(leader, ProduceRequest(ORDERS, topic_id, value), wait_ms)
            ok = answer not in (None, NOTHING) and answer.error is KafkaError.NONE
            found.append(answer.offset if ok else getattr(answer, "error", answer))
        return found

    def fetch(self, leader: int, *, topic_id: TopicId | None = A, offset: int = 0, epoch: int = -1) -> Any:
        return self.ask(leader, FetchRequest(-1, ORDERS, topic_id, epoch, offset))

    def partition(self, node_id: int) -> HostedPartition:
        found = self.of[node_id].replicas.get(ORDERS)
        assert found is not None
        return found

    def values(self, node_id: int) -> list[str]:
        return values(self.partition(node_id).log.read(0, 1_000))

    def crash(self, node_id: int) -> None:
        """Cut the power of a machine; its session is over at once."""
        self.world.crash(broker_endpoint(node_id))
        session = self.of[node_id].session
        self.of[node_id].crash()
        self.disks[node_id].crash(self.world.random)
        if session is not None:
            session.expire()

    def said(self, text: str) -> bool:
        return any(text in line for line in self.world.history.lines)

    def close(self) -> None:
        for node_id, broker in self.of.items():
            broker.crash()
            self.disks[node_id].close()


def values(records: tuple[Record, ...]) -> list[str]:
    return [record.value for record in records]
