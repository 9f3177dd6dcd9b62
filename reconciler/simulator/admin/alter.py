"""Altering a topic: another number of partitions, another factor, other replicas, or other configs; one at a time.

``alter_topic`` only adds partitions, and leaves the existing ones as they are (KIP4-3); ``delete`` has the request for
fewer. KIP-4 says in one place that an assignment alone reassigns, and in another that it is ignored; here it reassigns,
and covers existing partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin.commands import AlterTopic, CommandOutcome, CommandRefusedError
from reconciler.simulator.admin.configs import changed_configs
from reconciler.simulator.admin.controller_node import ControllerNode, KnownTopic, find_steady, find_topic
from reconciler.simulator.admin.delete import PartitionOutcome
from reconciler.simulator.admin.replication import reassign
from reconciler.simulator.admin.zookeeper_namespaces import check_no_tiers
from reconciler.simulator.placement import Assignment, assign
from reconciler.simulator.zookeeper import Set, read_brokers, topic_path
from reconciler.sources.zookeeper import encode_topic, topic_id_of


def alter_topic(node: ControllerNode, wanted: AlterTopic, random: Random) -> None:
    """Alter a topic; ``random`` draws new replicas.

    Raises:
        CommandRefusedError: 42 for no change, or more than one; 3, 17, 60 for the topic; 37, 38, 39, 40 for what is
            asked of it.
        AssignmentError: 38, 39: there can be no such assignment.
    """
    changes = wanted.changes()
    if not changes:
        what = "give a number of partitions, a replication factor, an assignment, or configs"
        raise CommandRefusedError(KafkaError.INVALID_REQUEST, f"{wanted.topic}: this changes nothing; {what}")
    if len(changes) > 1:
        what = " and ".join(changes)
        raise CommandRefusedError(
            KafkaError.INVALID_REQUEST,
            f"{wanted.topic}: one change at a time, and this changes {what}; split it",
        )
    if changes == ["configs"]:
        find_topic(node, wanted.topic)
        node.commit(changed_configs(node, wanted.topic, wanted.configs, wanted.deleted_configs))
        return
    found = find_steady(node, wanted.topic)
    if changes == ["partitions"]:
        grow(node, found, wanted.partitions, wanted.assignment, random)
    elif changes == ["replication factor"]:
        _reassign(node, wanted.topic, _with_factor(node, found, wanted.factor, random))
    else:
        _reassign(node, wanted.topic, {key: tuple(replicas) for key, replicas in sorted(wanted.assignment.items())})


def grow(
    node: ControllerNode, found: KnownTopic, wanted: int, by_hand: Mapping[int, Sequence[int]], random: Random
) -> None:
    """Add partitions, assigned by hand or by the placement's rules.

    Raises:
        CommandRefusedError: 37, the topic would not grow; 17, a namespace has the directory of a new partition.
        AssignmentError: 38, 39: there can be no such assignment.
    """
    before = {partition: tuple(replicas) for partition, replicas in found.node.partitions.items()}
    if wanted <= 0:
        raise CommandRefusedError(
            KafkaError.INVALID_PARTITIONS,
            f"{found.topic}: {wanted} is no number of partitions; ask for more than the {len(before)} that it has",
        )
    if wanted <= len(before):
        raise CommandRefusedError(
            KafkaError.INVALID_PARTITIONS,
            f"{found.topic} has {len(before)} partitions and cannot be altered to {wanted}: ask for more than it has",
        )
    first = before.get(0)
    if first is None:
        raise CommandRefusedError(KafkaError.UNKNOWN_SERVER_ERROR, f"{found.topic} has no partition 0")
    brokers = node.known_brokers()
    if by_hand:
        counts = {"existing": len(before), "wanted": wanted, "factor": len(first)}
        node.placement.check_added_by_hand(brokers, by_hand, **counts)
        added: Assignment = {partition: tuple(replicas) for partition, replicas in by_hand.items()}
    else:
        added = node.placement.add(brokers, before, wanted, random)
    check_no_tiers(node, found.topic, added)
    node.commit([Set(topic_path(found.topic), encode_topic(topic_id_of(found.node), before | added), found.version)])


def _with_factor(node: ControllerNode, found: KnownTopic, factor: int, random: Random) -> Assignment:
    """Each partition's first replicas; if they are too few, followed by others from ZooKeeper's rule.

    Under either placement, because new replicas of a partition that exists must be on live brokers.
    """
    brokers = read_brokers(node.session)
    racks = {broker.node_id: broker.rack for broker in brokers.values() if broker.rack is not None}
    drawn = assign(list(brokers), max([*found.node.partitions, 0]) + 1, factor, racks=racks, random=random)
    result = {}
    for partition, replicas in sorted(found.node.partitions.items()):
        fallback = [broker for broker in (*drawn[partition], *brokers) if broker not in replicas]
        result[partition] = (*replicas, *dict.fromkeys(fallback))[:factor]
    return result


def _reassign(node: ControllerNode, topic: str, assignment: Mapping[int, tuple[int, ...]]) -> None:
    reassign(node, {TopicPartition(topic, partition): replicas for partition, replicas in assignment.items()})


UNDER_CHANGE = "WARNING: The topic is currently under changes"
SWITCHED_OFF = (
    "WARNING: This feature is only enabled with Metadata version above 10 and delete.topic.partition.enable turned on"
)
GROWING = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages "
    "will be affected"
)

_BESIDE_ERRORS = {
    KafkaError.REASSIGNMENT_IN_PROGRESS: UNDER_CHANGE,
    KafkaError.TOPIC_DELETION_DISABLED: SWITCHED_OFF,
}


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """The result of the command that gives a topic another number of partitions (KIP694-5)."""

    outcome: CommandOutcome
    going: tuple[int, ...] = ()
    """The partitions that will be deleted."""
    warnings: tuple[str, ...] = ()
    """In the words of the KIP."""


def outcome_of_more(outcome: CommandOutcome) -> PartitionCount:
    """The result when more partitions were asked for."""
    grows = outcome.error is KafkaError.NONE
    return PartitionCount(outcome, warnings=(GROWING,) if grows else warnings_of(outcome.error))


def outcome_of_fewer(outcomes: Sequence[PartitionOutcome]) -> PartitionCount:
    """The result when fewer partitions were asked for."""
    outcome = outcomes[0].outcome
    going = tuple(each.partition for each in outcomes) if outcome.error is KafkaError.NONE else ()
    return PartitionCount(outcome, going, warnings_of(outcome.error))


def warnings_of(error: KafkaError) -> tuple[str, ...]:
    """The warnings of the KIP beside an error (KIP694-5)."""
    warning = _BESIDE_ERRORS.get(error)
    return () if warning is None else (warning,)
