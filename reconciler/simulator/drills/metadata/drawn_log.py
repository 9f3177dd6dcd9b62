"""Draws the metadata log of a KRaft cluster, batch by batch, and what the cluster is after each of them.

The truth is kept beside the records as plain values: what a record does to it is said here once more, in other words
than the reader's. The records become bytes by the tables of ``reconciler.protocol``, which golden vectors hold to real
bytes. Source: FACTS §7.3 to §7.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from layout.ids import DirectoryId, TopicId
from reconciler.sources.kraft import batch, control_record, record

_NODES: Final = (1, 2, 3, 4)
_NAMES: Final = ("orders", "clicks", "org:payments", "hits")
_CONTROL: Final = 0x20
START_MS: Final = 1_772_366_400_000
LEVEL_3_7: Final = 15
"""The metadata.version since which a leader that has lost its majority resigns."""


class Partition(NamedTuple):
    """One partition as the cluster wants it; ``homes`` has the directory ID of each replica, or is empty.

    ``eligible`` and ``last_known`` may lead, in this order, once the ISR is empty (KIP-966).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    homes: tuple[DirectoryId, ...]
    eligible: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()


class Node(NamedTuple):
    """One registered broker."""

    epoch: int
    fenced: bool
    homes: tuple[DirectoryId, ...]


@dataclass(slots=True)
class Truth:
    """What the cluster is.

    Attributes:
        topics: topic ID → name.
        partitions: topic ID and number → partition.
        nodes: registered brokers.
        level: of metadata.version; 0: not said.
        touched: topic ID → offset of the last record that made, removed or reassigned something of it.
    """

    topics: dict[TopicId, str] = field(default_factory=dict)
    partitions: dict[tuple[TopicId, int], Partition] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    level: int = 0
    touched: dict[TopicId, int] = field(default_factory=dict)

    def copied(self) -> Truth:
        """The same, which later changes leave alone."""
        return Truth(dict(self.topics), dict(self.partitions), dict(self.nodes), self.level, dict(self.touched))

    def records(self) -> Iterator[bytes]:
        """The records of a snapshot of it."""
        if self.level:
            yield record("FeatureLevelRecord", name="metadata.version", featureLevel=self.level)
        for number, node in self.nodes.items():
            yield _registration(number, node)
        for topic_id, name in self.topics.items():
            yield record("TopicRecord", name=name, topicId=topic_id)
        for (topic_id, number), each in self.partitions.items():
            yield _whole(topic_id, number, each)


class DrawnBatch(NamedTuple):
    """One batch of the log, and what is true after it.

    Attributes:
        data: its bytes.
        start, end: its first offset, and the one after its last.
        epoch: of its leader.
        time_ms: of its newest record.
        truth: after it.
        voters: how many there are.
        names_voters: whether it says so.
        begun: the offset at which the transaction began that is open after it; None: none is.
    """

    data: bytes
    start: int
    end: int
    epoch: int
    time_ms: int
    truth: Truth
    voters: int
    names_voters: bool
    begun: int | None


_Change = Callable[[Truth, int], None]
"""What a record does to the truth; its offset is given."""


def draw_log(random: Random, length: int) -> list[DrawnBatch]:
    """Draw a log of so many batches; each epoch begins with the record that names its leader and the voters."""
    return _LogWriter(random).batches(length)


class _LogWriter:
    """Draws one log."""

    def __init__(self, random: Random) -> None:
        self._random, self._truth, self._offset, self._epoch = random, Truth(), 0, 1
        self._time_ms, self._voters = START_MS, random.choice((1, 3, 3))
        self._waiting: list[tuple[int, _Change]] | None = None
        self._begun = 0

    def batches(self, length: int) -> list[DrawnBatch]:
        found, random = [self._leader()], self._random
        for number in range(length):
            self._time_ms += random.choice((0, 1, 500, 59_999, 60_000, 60_001))
            if random.random() < 0.12:
                self._epoch += random.randint(1, 2)
                found.append(self._leader())
            drawn = [self._node(each) for each in _NODES] + [self._level()] if number == 0 else []
            drawn = drawn or self._drawn()
            found.append(self._written([(None, data) for data in self._played(drawn)], 0))
        return found

    def _leader(self) -> DrawnBatch:
        voters = [{"voterId": each} for each in _NODES[: self._voters]]
        change = control_record("LeaderChangeMessage", leaderId=1, voters=voters, grantingVoters=voters)
        return self._written([change], _CONTROL)

    def _written(self, entries: list[tuple[bytes | None, bytes]], attributes: int) -> DrawnBatch:
        start = self._offset
        data = batch(entries, base_offset=start, epoch=self._epoch, timestamp_ms=self._time_ms, attributes=attributes)
        self._offset += len(entries)
        begun = None if self._waiting is None else self._begun
        at = start, self._offset, self._epoch, self._time_ms
        return DrawnBatch(data, *at, self._truth.copied(), self._voters, attributes == _CONTROL, begun)

    def _played(self, drawn: list[tuple[bytes, _Change]]) -> Iterator[bytes]:
        """Yield the records of a batch, and let each of them, or its transaction, take effect."""
        for offset, (data, change) in enumerate(drawn, self._offset):
            if self._waiting is None:
                change(self._truth, offset)
            else:
                self._waiting.append((offset, change))
            yield data

    def _drawn(self) -> list[tuple[bytes, _Change]]:
        random = self._random
        if self._waiting is not None:
            if random.random() < 0.5:
                waiting, self._waiting = self._waiting, None
                if random.random() < 0.4:
                    return [(record("AbortTransactionRecord", reason="a drilled one"), _nothing)]
                for offset, change in waiting:
                    change(self._truth, offset)
                return [(record("EndTransactionRecord"), _nothing)]
        elif random.random() < 0.15:
            self._waiting, self._begun = [], self._offset
            return [(record("BeginTransactionRecord", name="drilled"), _nothing)]
        # In a transaction only what cannot contradict the truth of before it, whatever becomes of it.
        moves = [self._new_topic, *(self._changed,) * 3, self._removed, self._fenced, *(self._cleared,) * 2, self._idle]
        return (moves[0] if self._waiting is not None else random.choice(moves))()

    def _idle(self) -> list[tuple[bytes, _Change]]:
        return [(record("NoOpRecord"), _nothing)]

    def _level(self) -> tuple[bytes, _Change]:
        level = self._random.choice((LEVEL_3_7 - 1, LEVEL_3_7, 21))

        def change(truth: Truth, _: int) -> None:
            truth.level = level

        return record("FeatureLevelRecord", name="metadata.version", featureLevel=level), change

    def _node(self, number: int) -> tuple[bytes, _Change]:
        homes = tuple(DirectoryId(self._random.randbytes(16)) for _ in range(self._random.randint(1, 2)))
        node = Node(self._offset, self._random.random() < 0.3, homes)

        def change(truth: Truth, _: int) -> None:
            truth.nodes[number] = node

        return _registration(number, node), change

    def _fenced(self) -> list[tuple[bytes, _Change]]:
        number = self._random.choice(_NODES)
        node = self._truth.nodes[number]
        name = "UnfenceBrokerRecord" if node.fenced else "FenceBrokerRecord"

        def change(truth: Truth, _: int) -> None:
            truth.nodes[number] = truth.nodes[number]._replace(fenced=not node.fenced)

        return [(record(name, id=number, epoch=node.epoch), change)]

    def _new_topic(self) -> list[tuple[bytes, _Change]]:
        random, topic_id = self._random, TopicId(self._random.randbytes(16))
        free = sorted({*_NAMES} - {*self._truth.topics.values()})
        if not free or len(self._waiting or ()) > 1:  # its beginning waits too
            return self._idle()
        name = random.choice(free)

        def change(truth: Truth, offset: int) -> None:
            truth.topics[topic_id] = name
            truth.touched[topic_id] = offset

        drawn: list[tuple[bytes, _Change]] = [(record("TopicRecord", name=name, topicId=topic_id), change)]
        for number in range(random.randint(1, 3)):
            replicas = tuple(random.sample(_NODES, random.randint(1, 3)))
            homes = self._homes(replicas) if random.random() < 0.7 else ()
            drawn.append(_set(topic_id, number, Partition(replicas, replicas, (), (), replicas[0], 0, 0, homes)))
        return drawn

    def _homes(self, replicas: tuple[int, ...]) -> tuple[DirectoryId, ...]:
        return tuple(self._random.choice(self._truth.nodes[each].homes) for each in replicas)

    def _changed(self) -> list[tuple[bytes, _Change]]:
        """Change a partition: who leads it, who is in sync, and how a reassignment of it begins and ends."""
        random, truth = self._random, self._truth
        if not truth.partitions:
            return self._new_topic()
        busy = [key for key, each in truth.partitions.items() if each.adding or each.removing]
        key = random.choice(sorted(busy if busy and random.random() < 0.7 else truth.partitions, key=str))
        before, fields = truth.partitions[key], dict[str, object]()
        after = before._replace(partition_epoch=before.partition_epoch + 1)
        if random.random() < 0.5:
            isr = tuple(each for each in before.replicas if random.random() < 0.7) or before.replicas[:1]
            after, fields = after._replace(isr=isr), {"isr": isr}
        if random.random() < 0.5:
            eligible = tuple(each for each in before.replicas if random.random() < 0.5)
            after = after._replace(eligible=eligible, last_known=random.choice(((), before.replicas[:1])))
            after = after._replace(isr=random.choice((after.isr, (), ())))
            fields |= {"isr": after.isr, "eligibleLeaderReplicas": eligible, "lastKnownElr": after.last_known}
        if random.random() < 0.4:
            leader = random.choice((*before.isr, -1))
            after = after._replace(leader=leader, leader_epoch=before.leader_epoch + 1)
            fields |= {"leader": leader}
        if random.random() < 0.5 and (before.adding or before.removing):
            replicas = tuple(each for each in before.replicas if each not in before.removing) or before.replicas
            after = after._replace(replicas=replicas, adding=(), removing=())
            fields |= {"replicas": replicas, "addingReplicas": (), "removingReplicas": ()}
        elif random.random() < 0.4:
            new = tuple(each for each in _NODES if each not in before.replicas)[:1]
            going = before.replicas[:1]
            after = after._replace(replicas=(*before.replicas, *new), adding=new, removing=going)
            fields |= {"replicas": after.replicas, "addingReplicas": new, "removingReplicas": going}
        if before.homes and "replicas" in fields:
            after = after._replace(homes=self._homes(after.replicas))
            fields |= {"directories": after.homes}
        fields |= {"topicId": key[0], "partitionId": key[1]}
        version = 2 if "lastKnownElr" in fields else int("directories" in fields)
        data = record("PartitionChangeRecord", version, **fields)

        def change(truth: Truth, offset: int) -> None:
            truth.partitions[key] = after
            if "replicas" in fields:
                truth.touched[key[0]] = offset

        return [(data, change)]

    def _cleared(self) -> list[tuple[bytes, _Change]]:
        """Forget who may lead without being in sync, of one topic or of all."""
        truth = self._truth
        led = {truth.topics[key[0]] for key, each in truth.partitions.items() if not each.isr and each.last_known}
        name = self._random.choice(("", *sorted(led or {*truth.topics.values()})))

        def change(truth: Truth, _: int) -> None:
            for key, each in truth.partitions.items():
                if name in ("", truth.topics[key[0]]):
                    truth.partitions[key] = each._replace(eligible=(), last_known=())

        return [(record("ClearElrRecord", topicName=name), change)]

    def _removed(self) -> list[tuple[bytes, _Change]]:
        if not self._truth.topics:
            return self._new_topic()
        topic_id = self._random.choice(sorted(self._truth.topics, key=str))

        def change(truth: Truth, offset: int) -> None:
            del truth.topics[topic_id]
            truth.partitions = {key: each for key, each in truth.partitions.items() if key[0] != topic_id}
            truth.touched[topic_id] = offset

        return [(record("RemoveTopicRecord", topicId=topic_id), change)]


def _nothing(truth: Truth, offset: int) -> None:
    """Change nothing: the record does not say what the cluster is."""


def _set(topic_id: TopicId, number: int, partition: Partition) -> tuple[bytes, _Change]:
    def change(truth: Truth, offset: int) -> None:
        truth.partitions[topic_id, number] = partition
        truth.touched[topic_id] = offset

    return _whole(topic_id, number, partition), change


def _whole(topic_id: TopicId, number: int, partition: Partition) -> bytes:
    return record(
        "PartitionRecord",
        2 if partition.eligible or partition.last_known else int(bool(partition.homes)),
        partitionId=number,
        topicId=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        addingReplicas=partition.adding,
        removingReplicas=partition.removing,
        leader=partition.leader,
        leaderEpoch=partition.leader_epoch,
        partitionEpoch=partition.partition_epoch,
        directories=partition.homes,
        **({"eligibleLeaderReplicas": partition.eligible} if partition.eligible else {}),
        **({"lastKnownElr": partition.last_known} if partition.last_known else {}),
    )


def _registration(number: int, node: Node) -> bytes:
    return record(
        *("RegisterBrokerRecord", 3), brokerId=number, brokerEpoch=node.epoch, fenced=node.fenced, logDirs=node.homes
    )


def snapshot(truth: Truth, epoch: int, time_ms: int) -> bytes:
    """The content of a snapshot."""
    header = control_record("SnapshotHeaderRecord", lastContainedLogTimestamp=time_ms)
    data, footer = [(None, each) for each in truth.records()], control_record("SnapshotFooterRecord")
    written, offset = b"", 0
    for entries, attributes in (([header], _CONTROL), (data, 0), ([footer], _CONTROL)):
        if entries:
            written += batch(entries, base_offset=offset, epoch=epoch, timestamp_ms=time_ms, attributes=attributes)
            offset += len(entries)
    return written
