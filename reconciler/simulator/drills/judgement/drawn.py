"""Draws what a judgement is made from: the metadata of a cluster, and the rows of a scan of some of its log dirs.

Both are drawn as plain values, which the oracles read, and given to the code under test as tables and rows. Most of
what lies on the disks is as the metadata wants it; the rest has a topic ID, a name, a kind or a time that is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple

from layout.ids import DirectoryId, TopicId
from logstore.rows import Kind, MetadataState
from reconciler.desired import BrokerKey, Completeness, DesiredBuilder, DesiredState, MetadataIdentity

NOW_MS: Final = 1_772_366_400_000
"""Noon of 1 March 2026 in UTC."""

CLUSTER: Final = "drilled-cluster-00001"
NODES: Final = (1, 2, 3, 4)
_NAMES: Final = ("orders", "clicks", "org:payments", "hits", "__consumer_offsets", "app-changelog")
_GONE: Final = ("orders-old", "__gone")
_PARTITIONS: Final = 4

_KINDS: Final = (*(Kind.LIVE,) * 12, *(Kind.STAGED, Kind.STRAY, Kind.FUTURE) * 2, Kind.DELETE)
_OTHER_KINDS: Final = (Kind.FOREIGN, Kind.LEFTOVER, Kind.CHECKPOINT_ENTRY, Kind.INTERNAL)
DAMAGED: Final = (
    *(MetadataState.EMPTY, MetadataState.MALFORMED, MetadataState.ZERO_ID),
    *(MetadataState.CONTRADICTS, MetadataState.UNREADABLE),
)
_NEAR_MS: Final = (-90_000, -2_001, -2_000, -1_999, -1, 0, 1, 1_999, 2_000, 2_001, 90_000)
"""Times beside another one, on both sides of each limit."""


class Assignment(NamedTuple):
    """Where the metadata wants a partition; ``homes``: node → directory ID of its log dir, where it is known."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    epoch: int
    moving: frozenset[int]
    homes: dict[int, str]


class Registered(NamedTuple):
    """A broker that the metadata knows to be registered."""

    fenced: bool
    directory_ids: tuple[str, ...]


@dataclass(slots=True)
class DrawnMetadata:
    """What the metadata says.

    Attributes:
        identity: its origin and age.
        ids: topic → its ID; None: it has none.
        assigned: topic and partition → where it is wanted.
        brokers: node → what it registered; empty: the source does not say.
    """

    identity: MetadataIdentity
    ids: dict[str, str | None] = field(default_factory=dict)
    assigned: dict[tuple[str, int], Assignment] = field(default_factory=dict)
    brokers: dict[int, Registered] = field(default_factory=dict)

    def owner(self, topic_id: str | None) -> str | None:
        """The topic that has an ID; None: no topic has it."""
        return next((name for name, each in self.ids.items() if topic_id is not None and each == topic_id), None)

    def wanted(self, topic: str | None, partition: int | None, node: int) -> Assignment | None:
        """Where a partition is wanted, if a node is one of the places."""
        found = None if topic is None or partition is None else self.assigned.get((topic, partition))
        return found if found is not None and node in (*found.replicas, *found.moving) else None

    def speaks_for(self, broker: BrokerKey) -> bool:
        """Whether it says anything of a broker."""
        scope = self.identity.scope
        return (
            bool(self.ids)
            and broker.cluster == CLUSTER
            and broker.node >= 0
            and (scope is None or broker.node in scope)
        )

    @property
    def is_complete(self) -> bool:
        """Whether nobody wants what it does not mention."""
        return self.identity.completeness is Completeness.FULL

    def tables(self) -> DesiredState:
        """The same as a desired state."""
        builder = DesiredBuilder()
        for name, topic_id in self.ids.items():
            builder.topic(name, topic_id)
        for (name, number), at in self.assigned.items():
            leaving = sorted(at.moving - {*at.replicas[1:2]})
            builder.partition(
                *(name, self.ids[name], number, at.replicas),
                isr=at.isr,
                adding=sorted(at.moving - {*leaving}),
                removing=leaving,
                directories=[at.homes.get(node) for node in at.replicas],
                leader=at.leader,
                leader_epoch=at.epoch,
            )
        for node, broker in self.brokers.items():
            builder.broker(node, 40, broker.fenced, broker.directory_ids)
        return builder.build(self.identity)


@dataclass(slots=True)
class DrawnLogDir:
    """One log dir that was scanned.

    Attributes:
        head: its own row.
        rows: of what lies in it.
        created: name of a replica's directory → since when it lies there, in ms since 1970, where that is known.
        epochs: name of a replica's directory → its last leader epoch, where that is known.
    """

    head: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    created: dict[str, int] = field(default_factory=dict)
    epochs: dict[str, int | None] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Of the log dir."""
        return str(self.head["log_dir"])

    @property
    def broker(self) -> BrokerKey:
        """Whose it is."""
        node = self.head["node_id"]
        return BrokerKey(self.head["cluster_id"] or "", -1 if node is None else node)

    @property
    def is_sound(self) -> bool:
        """Whether it is in order and says whose it is."""
        return self.head["metadata_state"] == "ok" and self.head["node_id"] is not None


@dataclass(slots=True)
class DrawnCluster:
    """The metadata and the disks, which may not belong together."""

    metadata: DrawnMetadata
    log_dirs: list[DrawnLogDir]

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows of the scan: of a log dir that is not in order, its own one."""
        for each in self.log_dirs:
            yield each.head
            yield from each.rows if each.is_sound else ()


def new_id(random: Random) -> str:
    """Draw a topic ID."""
    return str(TopicId(random.randbytes(16)))


def draw_cluster(random: Random) -> DrawnCluster:
    """Draw the metadata of a cluster, and log dirs of one or two of its brokers."""
    as_of_ms = NOW_MS - random.choice((1_000, 60_000, 3_000_000))
    complete = Completeness.INCREMENTAL if random.random() < 0.3 else Completeness.FULL
    identity = MetadataIdentity("kraft", "metadata", CLUSTER, complete, offset=900, epoch=9, timestamp_ms=as_of_ms)
    metadata = DrawnMetadata(identity)
    log_dirs = list(_log_dirs(random))
    homes = {node: [each.head["directory_id"] for each in log_dirs if each.broker.node == node] for node in NODES}
    if random.random() < 0.85:
        for node in NODES:
            ids = (*homes[node], *(str(DirectoryId(random.randbytes(16))) for _ in range(not homes[node])))
            metadata.brokers[node] = Registered(random.random() < 0.15, ids)
    for name in random.sample(_NAMES, random.randint(3, len(_NAMES))):
        metadata.ids[name] = None if random.random() < 0.1 else new_id(random)
        for number in range(random.randint(2, _PARTITIONS)):
            metadata.assigned[name, number] = _assignment(random, homes)
    for each in log_dirs:
        _fill(random, metadata, each, log_dirs)
    return DrawnCluster(metadata, log_dirs)


def _log_dirs(random: Random) -> Iterator[DrawnLogDir]:
    for node in random.sample(NODES, random.randint(1, 2)):
        for number in range(random.randint(1, 2)):
            head = dict.fromkeys(
                ("topic", "partition", "topic_id", "problem", "due_ms", "inode", "bytes", "modified_ms")
            )
            yield DrawnLogDir(
                {
                    **head,
                    **{"cluster_id": CLUSTER, "node_id": node, "directory_id": str(DirectoryId(random.randbytes(16)))},
                    **{"log_dir": f"/disks/{node}/{number}", "name": ".", "kind": Kind.LOG_DIR.value},
                    **{"metadata_state": "ok", "disk_bytes": None, "scanned_ms": NOW_MS - random.randrange(3_600_000)},
                }
            )


def _assignment(random: Random, homes: dict[int, list[str]]) -> Assignment:
    replicas = tuple(random.sample(NODES, random.randint(1, 3)))
    isr = tuple(each for each in replicas if random.random() < 0.7)
    leader = random.choice(isr) if isr and random.random() < 0.9 else -1
    moving = frozenset(random.sample(NODES, random.randint(1, 2))) if random.random() < 0.15 else frozenset[int]()
    placed = {}
    for node in replicas:
        if random.random() < 0.6:
            placed[node] = random.choice(homes[node] or [str(DirectoryId(random.randbytes(16)))])
    return Assignment(replicas, isr, leader, random.randrange(4), moving, placed)


def _fill(random: Random, metadata: DrawnMetadata, log_dir: DrawnLogDir, every: list[DrawnLogDir]) -> None:
    node = log_dir.broker.node
    of_broker = [row for each in every if each.broker == log_dir.broker for row in each.rows]
    here = {(row["topic"], row["partition"]) for row in of_broker if row["kind"] == Kind.LIVE}
    for (name, number), at in metadata.assigned.items():
        if node in at.replicas and (name, number) not in here and random.random() < 0.5:
            _add(random, metadata, log_dir, Kind.LIVE, _Replica(name, number, metadata.ids[name]))
            here.add((name, number))
    for (name, number), at in random.sample(sorted(metadata.assigned.items()), min(2, len(metadata.assigned))):
        # What was staged here comes back, or a replica of a former topic of its name has its place.
        if node in at.replicas and random.random() < 0.6:
            kind = random.choice((Kind.STAGED, Kind.STAGED, Kind.STRAY))
            _add(random, metadata, log_dir, kind, _Replica(name, number, metadata.ids[name]))
            if (name, number) not in here and random.random() < 0.6:
                former = _Replica(name, number, random.choice((new_id(random), None)))
                _add(random, metadata, log_dir, Kind.LIVE, former)
                here.add((name, number))
    for _ in range(random.randint(1, 5)):
        kind, name = random.choice(_KINDS), random.choice((*metadata.ids, *_GONE))
        number, known = random.randrange(_PARTITIONS), [*metadata.ids.values()]
        if kind is Kind.LIVE and (name, number) in here and random.random() < 0.7:
            continue
        topic_id = random.choice((metadata.ids.get(name), random.choice(known), new_id(random), new_id(random), None))
        _add(random, metadata, log_dir, kind, _Replica(name, number, topic_id))
        here |= {(name, number)} if kind is Kind.LIVE else set()
    if random.random() < 0.3:
        kind = random.choice(_OTHER_KINDS)
        _row(random, log_dir, kind, f"{kind}.{len(log_dir.rows)}", {"problem": "a drilled one"})


class _Replica(NamedTuple):
    """A topic's name, a partition, and a topic ID, which need not belong together."""

    topic: str
    partition: int
    topic_id: str | None


def _add(random: Random, metadata: DrawnMetadata, log_dir: DrawnLogDir, kind: Kind, replica: _Replica) -> None:
    """Add the row of one replica, unless it would lie where another one does."""
    topic, partition, topic_id = replica
    name = f"{topic.replace(':', '/')}-{partition}"
    if kind is not Kind.LIVE:
        name = f"{name}.{len(log_dir.rows):032x}-{kind}"
    elif any(row["name"] == name for row in log_dir.rows):
        return
    state = MetadataState.OK if topic_id else MetadataState.MISSING
    if random.random() < 0.07:
        state, topic_id = random.choice(DAMAGED), None
    near_ms = (metadata.identity.timestamp_ms or NOW_MS) + random.choice(_NEAR_MS)
    long_ago_ms = NOW_MS - 10 * 86_400_000
    due_ms = NOW_MS + random.choice((-1_000, -1, 0, 1, 1_000)) if kind is Kind.STAGED else None
    said: dict[str, Any] = {"topic": topic, "partition": partition, "topic_id": topic_id, "metadata_state": state.value}
    said |= {"modified_ms": near_ms if random.random() < 0.2 else long_ago_ms, "due_ms": due_ms, "bytes": 70}
    said |= {"problem": "a drilled damage"} if state in DAMAGED else {}
    _row(random, log_dir, kind, name, said)
    if random.random() < 0.8:
        log_dir.created[name] = near_ms if random.random() < 0.1 else long_ago_ms
    log_dir.epochs[name] = random.choice((None, -1, *range(5)))


def _row(random: Random, log_dir: DrawnLogDir, kind: Kind, name: str, said: dict[str, Any]) -> None:
    own = log_dir.head | dict.fromkeys(("metadata_state", "scanned_ms")) | {"disk_bytes": 80}
    log_dir.rows.append(own | {"kind": kind.value, "name": name, "inode": random.getrandbits(40)} | said)
