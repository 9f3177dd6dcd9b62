"""What the tests of control requests share: requests in a few words, and a broker over temporary log dirs."""

from __future__ import annotations

from pathlib import Path

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.store import LogStore
from reconciler.broker import Broker
from reconciler.protocol import (
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
)
from tests.logstore.engine import NOW_MS, formatted, opened

FULL, INCREMENTAL, UNSPECIFIED = RequestType.FULL, RequestType.INCREMENTAL, RequestType.UNSPECIFIED
A = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
B = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
C = TopicId.parse("IG4dPxZf9SoYZxfZsXXdJg")
NODE = 1
OTHERS = (2, 3)
ORDERS = TopicPartition("orders", 0)


def state(
    partition: int,
    epoch: int = 0,
    *,
    leader: int = NODE,
    replicas: tuple[int, ...] = (NODE, *OTHERS),
    new: bool = False,
) -> PartitionState:
    """One partition on this broker and two others."""
    return PartitionState(partition, 1, leader, epoch, replicas, 0, replicas, is_new=new)


def topic(name: str, topic_id: TopicId | None, *partitions: int | PartitionState) -> TopicState:
    """A topic; a number stands for a partition at leader epoch 0."""
    return TopicState(name, topic_id, tuple(state(each) if isinstance(each, int) else each for each in partitions))


def leader_and_isr(
    kind: RequestType,
    *topics: TopicState,
    controller_epoch: int = 1,
    broker_epoch: int = -1,
    kraft: bool = False,
) -> LeaderAndIsrRequest:
    """A request of controller 9."""
    return LeaderAndIsrRequest(9, controller_epoch, topics, broker_epoch, kind, kraft)


def stop_replica(
    name: str = "orders",
    *partitions: int,
    delete: bool = True,
    epoch: int = -1,
    topic_id: TopicId | None = None,
    controller_epoch: int = 1,
    broker_epoch: int = -1,
) -> StopReplicaRequest:
    """A request of controller 9 for one topic; partition 0 where none is named."""
    stopped = tuple(StopPartition(number, epoch, delete) for number in partitions or (0,))
    return StopReplicaRequest(9, controller_epoch, (StopTopic(name, topic_id, stopped),), broker_epoch)


def errors(response: ControlResponse) -> dict[str, int]:
    """The answer for each partition, and under "" that for the whole request, unless it is 0."""
    found = {f"{each.topic}-{error.partition}": error.error for each in response.topics for error in each.partitions}
    return found if response.error == 0 else {"": response.error, **found}


class Sim:
    """A broker with two log dirs of ours, whose replicas are made by hand."""

    def __init__(self, folder: Path, *, disks: int = 2, scheme: str = "flat") -> None:
        self.clock = ManualClock(NOW_MS)
        self.paths = [
            formatted(folder / f"disk{number}", number, node_id=NODE, scheme=scheme) for number in range(1, disks + 1)
        ]
        self.store: LogStore | None = None

    def put(
        self, name: str, topic_id: TopicId | None, *, disk: int = 0, data: bytes = b"data", folder: str = ""
    ) -> Path:
        """Make a replica's directory, with a segment and perhaps a topic ID, while the broker is not running."""
        path = self.paths[disk] / folder / name
        path.mkdir(parents=True)
        (path / "00000000000000000000.log").write_bytes(data)
        if topic_id is not None:
            (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(topic_id))
        return path

    def start(self, disk: Disk | None = None) -> Broker:
        """Open the store, and put a broker over it; an earlier one is stopped."""
        self.stop()
        self.store = opened(*self.paths, clock=self.clock, disk=disk)
        return Broker(self.store)

    def stop(self) -> None:
        if self.store is not None:
            self.store.close()
            self.store = None

    def live(self) -> dict[str, TopicId | None]:
        """What is live, by name, with its topic ID."""
        assert self.store is not None
        return {str(each.partition): each.topic_id for each in self.store.replicas()}

    def staged(self) -> dict[str, tuple[TopicId | None, str]]:
        """What is staged, by name, with its topic ID and the reason."""
        assert self.store is not None
        listed = self.store.staged()
        return {str(each.partition): (each.topic_id, each.record.verdict if each.record else "") for each in listed}

    def data_of(self, name: str) -> bytes:
        """The bytes of a live replica's segment; none where it has none."""
        (path,) = [found for root in self.paths for found in root.glob(name) if found.is_dir()]
        segment = path / "00000000000000000000.log"
        return segment.read_bytes() if segment.exists() else b""


def answer(broker: Broker, request: LeaderAndIsrRequest, number: int | None = None) -> dict[str, int]:
    """Handle a LeaderAndIsr request, and give the answers."""
    response = broker.handle(request, number)
    assert isinstance(response, LeaderAndIsrResponse)
    return errors(response)
