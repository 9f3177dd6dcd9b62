"""The two placements as a controller is given them: where the replicas of new partitions go, and what is refused.

They differ in whom they know. ZooKeeper's controller knows the brokers with a session. KRaft's knows every broker that
has registered, and places replicas on fenced ones too where there are no others; by hand it takes registered brokers
alone, and at least one of each partition must be up. Source: FACTS §9, §10.10; CREATE-1, CREATE-2; KIP4-3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Protocol

from logstore import KafkaError
from reconciler.simulator.placement.assignment import Assignment, AssignmentError, KnownBroker, check_added, check_new
from reconciler.simulator.placement.java_random import JavaRandom
from reconciler.simulator.placement.striped import place_striped
from reconciler.simulator.placement.zookeeper import assign


class Placement(StrEnum):
    """By whose rules the replicas of new partitions are placed; a reassignment takes live brokers under either."""

    ZOOKEEPER = "zookeeper"
    """Those of a controller with ZooKeeper."""
    KRAFT = "kraft"
    """Those of a KRaft controller: striped over the racks, and over fenced brokers too."""


class ReplicaPlacement(Protocol):
    """The rules of one kind of controller. Each method raises AssignmentError; ``brokers`` are in the order of IDs."""

    def create(self, brokers: Sequence[KnownBroker], partitions: int, factor: int, random: Random) -> Assignment:
        """Assign the replicas of a new topic."""

    def add(self, brokers: Sequence[KnownBroker], existing: Assignment, wanted: int, random: Random) -> Assignment:
        """Assign the new partitions of a topic that grows, which has a partition 0, up to ``wanted``."""

    def check_by_hand(self, brokers: Sequence[KnownBroker], assignment: Mapping[int, Sequence[int]]) -> None:
        """Check an assignment of a new topic that was made by hand."""

    def check_added_by_hand(
        self,
        brokers: Sequence[KnownBroker],
        assignment: Mapping[int, Sequence[int]],
        *,
        existing: int,
        wanted: int,
        factor: int,
    ) -> None:
        """Check an assignment, made by hand, of the partitions alone that a topic grows by."""


class ZooKeeperPlacement:
    """The rules of a controller with ZooKeeper, which knows live brokers alone."""

    def create(self, brokers: Sequence[KnownBroker], partitions: int, factor: int, random: Random) -> Assignment:
        """Assign from a drawn start at a drawn distance (CREATE-1, CREATE-2)."""
        live = _live(brokers)
        return assign(list(live), partitions, factor, racks=_racks(live), random=random)

    def add(self, brokers: Sequence[KnownBroker], existing: Assignment, wanted: int, random: Random) -> Assignment:
        """Assign from the index of the first partition's leader, or of the next broker that is live; draws nothing."""
        live, first = _live(brokers), existing[0]
        start = next((index for index, broker in enumerate(live) if broker >= first[0]), 0)
        many = wanted - len(existing)
        return assign(
            list(live), many, len(first), racks=_racks(live), fixed_start=start, start_partition=len(existing)
        )

    def check_by_hand(self, brokers: Sequence[KnownBroker], assignment: Mapping[int, Sequence[int]]) -> None:
        """Check all but the brokers: as in Kafka, one need not exist, and its replicas are offline until it does."""
        check_new(assignment)

    def check_added_by_hand(
        self,
        brokers: Sequence[KnownBroker],
        assignment: Mapping[int, Sequence[int]],
        *,
        existing: int,
        wanted: int,
        factor: int,
    ) -> None:
        """Check new partitions; unlike for a new topic, only live brokers may be named."""
        unknown = sorted(_named(assignment) - set(_live(brokers)))
        problems = [f"brokers {unknown} are not there"] if unknown else []
        check_added(assignment, problems, existing=existing, wanted=wanted, factor=factor)


class KRaftPlacement:
    """The rules of a KRaft controller, which knows fenced brokers too."""

    def create(self, brokers: Sequence[KnownBroker], partitions: int, factor: int, random: Random) -> Assignment:
        """Place from drawn starts, striped over the racks."""
        return self._place(brokers, partitions, factor, random)

    def add(self, brokers: Sequence[KnownBroker], existing: Assignment, wanted: int, random: Random) -> Assignment:
        """Place as for a new topic: where the topic's partitions are plays no part."""
        return self._place(brokers, wanted - len(existing), len(existing[0]), random, len(existing))

    def check_by_hand(self, brokers: Sequence[KnownBroker], assignment: Mapping[int, Sequence[int]]) -> None:
        """Check everything; each broker is registered, and one of each partition is up."""
        check_new(assignment, _problems_of_registered(brokers, assignment))

    def check_added_by_hand(
        self,
        brokers: Sequence[KnownBroker],
        assignment: Mapping[int, Sequence[int]],
        *,
        existing: int,
        wanted: int,
        factor: int,
    ) -> None:
        """Check new partitions by the same rules; a fenced broker may be named here as well."""
        problems = _problems_of_registered(brokers, assignment)
        check_added(assignment, problems, existing=existing, wanted=wanted, factor=factor)

    def _place(
        self, brokers: Sequence[KnownBroker], partitions: int, factor: int, random: Random, first_partition: int = 0
    ) -> Assignment:
        drawn = JavaRandom(random.getrandbits(48))
        try:
            return place_striped(brokers, partitions, factor, drawn, first_partition=first_partition)
        except AssignmentError as error:
            if error.error is KafkaError.INVALID_PARTITIONS:
                raise
            raise AssignmentError(
                error.error, f"Unable to replicate the partition {factor} time(s): {error}"
            ) from error


PLACEMENTS: Mapping[Placement, ReplicaPlacement] = {
    Placement.ZOOKEEPER: ZooKeeperPlacement(),
    Placement.KRAFT: KRaftPlacement(),
}
"""The rules by their name."""


def _live(brokers: Sequence[KnownBroker]) -> dict[int, KnownBroker]:
    return {broker.node_id: broker for broker in brokers if not broker.fenced}


def _racks(live: Mapping[int, KnownBroker]) -> dict[int, str]:
    return {node_id: broker.rack for node_id, broker in live.items() if broker.rack is not None}


def _named(assignment: Mapping[int, Sequence[int]]) -> set[int]:
    return {broker for replicas in assignment.values() for broker in replicas}


def _problems_of_registered(brokers: Sequence[KnownBroker], assignment: Mapping[int, Sequence[int]]) -> list[str]:
    """Find brokers that are not registered, and partitions whose brokers are all fenced."""
    fenced = {broker.node_id: broker.fenced for broker in brokers}
    problems = [
        f"the manual partition assignment includes broker {broker}, but no such broker is registered"
        for broker in sorted(_named(assignment) - set(fenced))
    ]
    problems += [
        f"all brokers specified in the manual partition assignment for partition {partition} are fenced: "
        f"start one of {list(replicas)}"
        for partition, replicas in sorted(assignment.items())
        if replicas and all(fenced.get(broker, False) for broker in replicas)
    ]
    return problems
