"""Spoils what a plan is made from: metadata that is old, cut or another cluster's, disks that are copies or strange.

Each spoiler changes a drawn cluster in one way; a drill uses none, one or two of them, so that a gate is seen shut for
its own reason, and beside another one. Source: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from layout.ids import DirectoryId
from reconciler.plan import EarlierRuns, UsedMetadata
from reconciler.simulator.drills.judgement.drawn import CLUSTER, NOW_MS, Assignment, DrawnCluster

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000


@dataclass(slots=True)
class Premises:
    """What a plan is made from.

    Attributes:
        drawn: the metadata and the disks.
        before: topics and replicas of the metadata of the last plan that was applied; None: there was none.
        used: the metadata of plans that were applied.
        journals: path of a log dir → when a journal was written there last, in ms since 1970.
        newest: path of a log dir → the newest time of a file in it, in ms since 1970.
        no_metadata: none is given.
    """

    drawn: DrawnCluster
    before: tuple[int, int] | None = None
    used: list[UsedMetadata] = field(default_factory=list)
    journals: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    no_metadata: bool = False

    @property
    def memory(self) -> EarlierRuns:
        """The same as the journals say it."""
        metadata = {} if self.before is None else {CLUSTER: self.before}
        return EarlierRuns(metadata, {}, {CLUSTER: tuple(self.used)}, self.journals)


def spoil(random: Random, drawn: DrawnCluster) -> Premises:
    """Spoil none, one or two of the premises."""
    identity, premises = drawn.metadata.identity, Premises(drawn)
    if random.random() < 0.5:
        premises.before = (len(drawn.metadata.ids), _replicas(drawn))
        same = identity.source, identity.epoch, identity.offset, identity.timestamp_ms
        premises.used.append(UsedMetadata(*same, NOW_MS - _HOUR_MS))
    for each in random.sample(_SPOILERS, random.choice((0, 1, 1, 2))):
        each(random, premises)
    return premises


def _replicas(drawn: DrawnCluster) -> int:
    return sum(len({*at.replicas, *at.moving}) for at in drawn.metadata.assigned.values())


def _dated(random: Random, premises: Premises) -> None:
    late = (-1, -_MINUTE_MS, *(-_MINUTE_MS - 1, -_HOUR_MS // 2) * 2)
    ago = random.choice((_HOUR_MS - 1, _HOUR_MS, _HOUR_MS + 1, 100 * _HOUR_MS, *late))
    _identify(premises, timestamp_ms=random.choice((None, NOW_MS - ago, NOW_MS - ago, NOW_MS - ago)))


def _cut(random: Random, premises: Premises) -> None:
    _identify(premises, ends_early=("its end was lost",))


def _uncommitted(random: Random, premises: Premises) -> None:
    known = [each for each in premises.drawn.metadata.ids.values() if each]
    known += [row["topic_id"] for row in premises.drawn.rows() if row["topic_id"]]
    _identify(premises, uncommitted=tuple(random.sample(sorted(known), min(2, len(known)))))


def _nameless(random: Random, premises: Premises) -> None:
    _identify(premises, cluster_id=None)


def _limited(random: Random, premises: Premises) -> None:
    _identify(premises, scope=frozenset(random.sample((1, 2, 3, 4), 3)))


def _identify(premises: Premises, **changes: object) -> None:
    metadata = premises.drawn.metadata
    metadata.identity = replace(metadata.identity, **changes)  # type: ignore[arg-type]  # fields by name


def _lost(random: Random, premises: Premises) -> None:
    """All topics, all replicas, or all metadata is gone."""
    metadata = premises.drawn.metadata
    premises.no_metadata = random.random() < 0.3
    metadata.assigned.clear()
    if premises.no_metadata or random.random() < 0.7:
        metadata.ids.clear()


def _shrunk(random: Random, premises: Premises) -> None:
    topics, replicas = len(premises.drawn.metadata.ids), _replicas(premises.drawn)
    more = random.choice((1.0, 1.05, 1.2, 2.0)), random.choice((1.0, 1.05, 1.2, 2.0))
    premises.before = int(topics * more[0]), int(replicas * more[1])


def _went_back(random: Random, premises: Premises) -> None:
    identity = premises.drawn.metadata.identity
    epoch, offset = (identity.epoch or 0) + random.randint(-1, 1), (identity.offset or 0) + random.randint(-1, 1)
    as_of_ms = (identity.timestamp_ms or NOW_MS) + random.choice((-_HOUR_MS, 0, _MINUTE_MS, _MINUTE_MS + 1))
    source = random.choice((identity.source, identity.source, "kafka"))
    premises.used.append(UsedMetadata(source, epoch, random.choice((offset, None)), as_of_ms, NOW_MS - _MINUTE_MS))


def _stranger(random: Random, premises: Premises) -> None:
    """The metadata does not know a broker: nothing is registered or placed there."""
    node, metadata = random.choice(premises.drawn.log_dirs).broker.node, premises.drawn.metadata
    metadata.brokers.pop(node, None)
    for key, at in metadata.assigned.items():
        others = tuple(each for each in at.replicas if each != node) or (9,)
        isr, leader = tuple(each for each in at.isr if each != node), -1 if at.leader == node else at.leader
        homes, moving = {each: home for each, home in at.homes.items() if each != node}, at.moving - {node}
        metadata.assigned[key] = Assignment(others, isr, leader, at.epoch, moving, homes)


def _clock(random: Random, premises: Premises) -> None:
    late_ms = NOW_MS + _MINUTE_MS + random.choice((-1, 0, 1, _HOUR_MS))
    random.choice((premises.newest, premises.journals))[random.choice(premises.drawn.log_dirs).path] = late_ms


def _broken(random: Random, premises: Premises) -> None:
    head = random.choice(premises.drawn.log_dirs).head
    head["metadata_state"] = random.choice(("absent", "malformed"))
    head["problem"] = "a drilled one"
    if random.random() < 0.5:
        head |= {"node_id": None, "cluster_id": None, "directory_id": None}


def _copied(random: Random, premises: Premises) -> None:
    """A log dir has the directory ID of another one, or of none that was registered."""
    chosen = random.choice(premises.drawn.log_dirs)
    other = random.choice(premises.drawn.log_dirs)
    directory_id = str(DirectoryId(random.randbytes(16)))
    new = other.head["directory_id"] if other is not chosen else directory_id
    for each in (chosen.head, *chosen.rows):
        each["directory_id"] = new


def _of_another_cluster(random: Random, premises: Premises) -> None:
    chosen = random.choice(premises.drawn.log_dirs).broker
    for each in premises.drawn.log_dirs:
        if each.broker == chosen:
            for row in (each.head, *each.rows):
                row["cluster_id"] = "another-cluster-00002"


_SPOILERS: Final[tuple[Callable[[Random, Premises], None], ...]] = (
    *(_dated, _cut, _uncommitted, _nameless, _limited, _lost, _shrunk, _went_back, _stranger, _clock, _broken),
    *(_copied, _of_another_cluster, _dated, _shrunk, _went_back),
)
