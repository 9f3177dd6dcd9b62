"""A broker whose disks refuse something, with the leader epochs that it should remember, and plain reads of its disks.

Reads do not pass through a bench's disks, so a store of this module is refused by itself what it asks of what is
staged. Everything else is the engine's own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from layout import partition_metadata
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import STAGING_DIR
from layout.topic import TopicPartition
from logstore import KafkaError, LogStore
from logstore.staging import Staged
from reconciler.broker import Broker
from reconciler.protocol import (
    ControlRequest,
    LeaderAndIsrRequest,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
)
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE
from reconciler.simulator.drills.looking import path_of
from reconciler.simulator.drills.made import NODE_ID

OF_THE_DISK: Final = (errno.EIO, errno.EROFS, errno.ENXIO, errno.ESTALE)
"""Numbers of errors after which a log dir is offline."""

REFUSALS: Final = (OF_THE_DISK, OF_THE_DISK, (errno.ENOSPC, errno.EDQUOT, errno.EACCES))
"""Numbers of errors with which a change is refused: by the disk more often than by the system."""

_Key = tuple[str, int]


class RefusedStore(LogStore):
    """A store that is refused what it reads of what is staged, as a disk or the system refuses it.

    Attributes:
        listing: path of the log dir that cannot be listed, and the number of the error; None: each can.
        unread: paths of the log dirs whose ledger cannot be read.
        hides_ids: whether no ``partition.metadata`` beside such a ledger can be read either.
    """

    listing: tuple[str, int] | None = None
    unread: frozenset[str] = frozenset()
    hides_ids: bool = False

    def staged(self) -> list[Staged]:
        """List what is staged, or be refused."""
        if self.listing is not None:
            path, number = self.listing
            raise self._log_dirs[path].failed("what is staged cannot be listed", OSError(number, os.strerror(number)))
        return [self._unread(each) if each.log_dir in self.unread else each for each in super().staged()]

    def _unread(self, staged: Staged) -> Staged:
        topic_id = None if self.hides_ids else staged.topic_id
        return staged._replace(record=None, problem="a drill lets nobody read it", unread=True, found_topic_id=topic_id)


@dataclass(frozen=True, slots=True)
class Hosted:
    """Replicas of one topic that are here.

    Attributes:
        name: of the topic.
        topic_id: of the topic.
        numbers: partition → what tells its replica from any other of that partition; None: it is empty.
    """

    name: str
    topic_id: TopicId
    numbers: Mapping[int, int | None]

    def recreated(self, topic_id: TopicId) -> Hosted:
        """Give the topic that takes its name, with as many empty replicas."""
        return replace(self, topic_id=topic_id, numbers=dict.fromkeys(self.numbers))


@dataclass(frozen=True, slots=True)
class LiveDirectory:
    """A replica's directory.

    Attributes:
        path: absolute.
        log_dir: it lies in.
        topic_id: that it holds; None: none that can be read.
        number: of the replica; None: it is empty.
    """

    path: str
    log_dir: str
    topic_id: TopicId | None
    number: int | None


@dataclass(slots=True)
class TroubledBroker:
    """A broker on a bench.

    Attributes:
        bench: with two log dirs.
        random: of the drill.
        epochs: partition → the leader epoch that should be remembered; None: none.
    """

    bench: Bench
    random: Random
    epochs: dict[_Key, int | None] = field(default_factory=dict)
    _numbers: int = 0
    _broker: Broker | None = None

    @property
    def store(self) -> RefusedStore:
        """The store of this moment."""
        assert isinstance(self.bench.store, RefusedStore)
        return self.bench.store

    @property
    def broker(self) -> Broker:
        """The broker of this moment: another one after each start of the store, which remembers nothing."""
        if self._broker is None or self._broker.store is not self.store:
            self._broker = Broker(self.store)
            self.epochs = dict.fromkeys(self.epochs)
        return self._broker

    def restart(self, *, away: int | None = None) -> None:
        """Start anew with all disks, or without one; after a crash where a disk is offline or it is drawn."""
        if away is None and (self.store.offline or self.random.random() < 0.5):
            self.bench.crash()
        else:
            self.bench.close()
        if away is not None:
            self.bench.lose(away)
        for number in self.bench.disks.offline if away is None else ():
            self.bench.disks.come_back(number)
        self.bench.open()

    def start_anew(self) -> None:
        """Stage whatever is live, by a FULL request that wants nothing here, and put another broker in place."""
        if self.store.entries():
            self.answered(self.wants(RequestType.FULL, 0))
        self._broker = None
        self.epochs.clear()

    def made(self, name: str, epoch: int) -> Hosted:
        """Make replicas of a new topic, each with a number of its own."""
        random, topic_id = self.random, TopicId(self.random.randbytes(16))
        topic = Hosted(name, topic_id, dict.fromkeys(range(random.randint(2, 3))))
        kind = random.choice((RequestType.INCREMENTAL, RequestType.UNSPECIFIED))
        request = self.wants(kind, epoch, topic, new=random.random() < 0.5)
        self.expect_answers("to make new replicas", request, {})
        self.learn(topic, epoch)
        return self.numbered(topic)

    def numbered(self, topic: Hosted) -> Hosted:
        """Give replicas that are empty a number each."""
        numbers = dict[int, int | None]()
        for partition in topic.numbers:
            self._numbers += 1
            numbers[partition] = self._numbers
            for each in self.directories(topic, partition):
                self.bench.write(each.path, NUMBER_FILE, f"{self._numbers}".encode())
        return replace(topic, numbers=numbers)

    def wants(self, kind: RequestType, epoch: int, *topics: Hosted, new: bool = False) -> LeaderAndIsrRequest:
        """Make a request that wants topics here, in any order."""
        replicas = (NODE_ID, 1)
        states = [
            TopicState(
                topic.name,
                topic.topic_id,
                tuple(
                    PartitionState(each, 1, NODE_ID, epoch, replicas, 0, replicas, is_new=new) for each in topic.numbers
                ),
            )
            for topic in topics
        ]
        self.random.shuffle(states)
        return LeaderAndIsrRequest(1, 1, tuple(states), -1, kind)

    def stops(
        self, name: str, topic_id: TopicId | None, epochs: Mapping[int, int], *, delete: bool
    ) -> StopReplicaRequest:
        """Make a request that stops replicas; ``epochs``: partition → leader epoch."""
        states = tuple(StopPartition(partition, epoch, delete) for partition, epoch in epochs.items())
        return StopReplicaRequest(1, 1, (StopTopic(name, topic_id, states),), -1)

    def answered(self, request: ControlRequest) -> dict[_Key, KafkaError]:
        """Send a request; gives partition → answer."""
        for topic in request.topics:
            for state in topic.partitions:
                self.epochs.setdefault((topic.topic, state.partition))
        answer = self.broker.handle(request)
        if answer.error:
            raise BrokenInvariantError(f"{request} is answered {answer.error}, and nothing is wrong with it")
        return {
            (topic.topic, each.partition): KafkaError(each.error)
            for topic in answer.topics
            for each in topic.partitions
        }

    def expect_answers(self, what: str, request: ControlRequest, bad: Mapping[_Key, KafkaError]) -> None:
        """Send a request, and compare the answers; those that are not named are to be good."""
        found = self.answered(request)
        self.expect(f"the answer {what}", found, {key: bad.get(key, KafkaError.NONE) for key in found})

    def answered_well(self, topic: Hosted, answers: Mapping[_Key, KafkaError]) -> set[int]:
        """Give the partitions that are answered well: they are live, and of the others none is on a sound disk.

        ``answers``: to a request in the middle of which a change was refused.
        """
        away, good = self.store.offline, set[int]()
        for partition in topic.numbers:
            answer, live = answers[topic.name, partition], self.live(topic, partition)
            what = f"of {topic.name}-{partition}, which is answered {answer.name},"
            if answer is KafkaError.NONE:
                self.expect(f"how often the replica is live {what}", len(live), 1)
                good.add(partition)
            else:
                self.expect(f"the answer {what}", answer, KafkaError.KAFKA_STORAGE_ERROR)
                self.expect(f"what is live {what}", [each for each in live if each not in away], [])
        return good

    def learn(self, topic: Hosted, epoch: int | None, partitions: Iterable[int] | None = None) -> None:
        """Note the leader epoch that should be remembered from now on, of all partitions or some."""
        for partition in topic.numbers if partitions is None else partitions:
            self.epochs[topic.name, partition] = epoch

    def check_epochs(self, what: str) -> None:
        """Compare what is remembered with what should be."""
        broker = self.broker
        found = {key: broker.leader_epoch(TopicPartition(*key)) for key in self.epochs}
        self.expect(f"what is remembered {what}", found, self.epochs)

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Compare what was found with what should be.

        Raises:
            BrokenInvariantError: they differ.
        """
        if found != wanted:
            scheme = self.bench.scheme or "a broker's own"
            raise BrokenInvariantError(f"{what} is {found!r:.600}, and should be {wanted!r:.600}; scheme {scheme}")

    def directories(self, topic: Hosted, partition: int) -> list[LiveDirectory]:
        """Find the live directories at the path of a partition."""
        path = path_of(self.bench.scheme, TopicPartition(topic.name, partition), topic.topic_id)
        places = [(log_dir, f"{log_dir}/{path}") for log_dir in self.bench.log_dirs]
        return [
            LiveDirectory(place, each, _id_in(place), _number_in(place))
            for each, place in places
            if os.path.isdir(place)
        ]

    def live(self, topic: Hosted, partition: int) -> list[str]:
        """Give the log dirs in which a replica of this topic ID is live."""
        return [each.log_dir for each in self.directories(topic, partition) if each.topic_id == topic.topic_id]

    def staged(self) -> dict[int, list[str]]:
        """Find the replicas that lie staged: number → log dirs."""
        found = dict[int, list[str]]()
        for log_dir in self.bench.log_dirs:
            places = [f"{log_dir}/{each}" for each in os.listdir(log_dir) if each.endswith("-stray")]
            for root in (f"{log_dir}/{STAGING_DIR}", f"{log_dir}.{STAGING_DIR}"):
                places += [f"{root}/{each}" for each in (os.listdir(root) if os.path.isdir(root) else ())]
            for number in filter(None, map(_number_in, places)):
                found.setdefault(number, []).append(log_dir)
        return found

    def are_live(self, what: str, topic: Hosted) -> None:
        """Each replica is live, once, under its topic ID and with its number."""
        for partition, number in topic.numbers.items():
            found = [(each.topic_id, each.number) for each in self.directories(topic, partition)]
            self.expect(f"what is live of {topic.name}-{partition}, {what},", found, [(topic.topic_id, number)])

    def are_staged(self, what: str, topic: Hosted, partitions: Iterable[int] | None = None) -> None:
        """Each replica is staged, once, and nothing is live in its place that has its topic ID."""
        staged = self.staged()
        for partition in topic.numbers if partitions is None else partitions:
            count = len(staged.get(topic.numbers[partition] or 0, []))
            found = (count, self.live(topic, partition))
            self.expect(f"what is staged and live of {topic.name}-{partition}, {what},", found, (1, []))

    def are_whole(self, what: str, topic: Hosted) -> None:
        """Each replica is live or staged, once, and no other one of its topic ID is live."""
        staged = self.staged()
        for partition, number in topic.numbers.items():
            live = [each.number for each in self.directories(topic, partition) if each.topic_id == topic.topic_id]
            found = live + [number] * len(staged.get(number or 0, []))
            self.expect(f"what there is of {topic.name}-{partition}, {what},", found, [number])


def _id_in(place: str) -> TopicId | None:
    try:
        return partition_metadata.parse(_bytes_of(f"{place}/{partition_metadata.FILE_NAME}")).topic_id
    except LayoutError:
        return None


def _number_in(place: str) -> int | None:
    text = _bytes_of(f"{place}/{NUMBER_FILE}")
    return int(text) if text else None


def _bytes_of(path: str) -> bytes:
    """Read a file; nothing where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
