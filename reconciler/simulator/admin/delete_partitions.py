"""Asking for fewer partitions: checked and noted, for the controller to carry out (KIP694-2, KIP694-5).

KIP-694 names no error numbers. Here: switched off 73; a total that is not less than there are, or not positive, 37;
unknown 3; already under change 60; being deleted 17; a negative delay 42.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandOutcome, CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.admin.known_topic import find_steady
from reconciler.simulator.controller import FewerPartitionsSettings, PartitionsRequest, encode_request
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import Create, delete_partitions_path

ALL = -1
"""As a partition's number: the error is about the topic as a whole."""


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """One topic, and how many partitions it is to be left with."""

    topic: str
    total: int


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """What becomes of one partition of a topic."""

    topic: str
    partition: int
    """-1: the topic as a whole was refused."""
    mode: PartitionMode
    outcome: CommandOutcome


def request_fewer(
    node: ControllerNode, wanted: DeletePartitions, *, delay_ms: int, now_ms: int, settings: FewerPartitionsSettings
) -> list[int]:
    """Note that a topic is to have fewer partitions.

    Args:
        node: where to write.
        wanted: the topic, and its new number of partitions.
        delay_ms: how long consumers may read on; 0: not at all.
        now_ms: by the controller's clock.
        settings: of the controller.

    Returns:
        The partitions that will go.

    Raises:
        CommandRefusedError: see the module.
    """
    if not settings.enabled:
        raise CommandRefusedError(
            KafkaError.TOPIC_DELETION_DISABLED, "delete.topic.partition.enable is false: partitions cannot be deleted"
        )
    if delay_ms < 0:
        raise CommandRefusedError(KafkaError.INVALID_REQUEST, f"a delay of {delay_ms} ms: 0 or more is needed")
    found = find_steady(node, wanted.topic)
    there = sorted(found.node.partitions)
    if wanted.total <= 0:
        raise _invalid_partitions(
            f"{wanted.topic} cannot have {wanted.total} partitions; to have none, delete the topic"
        )
    if wanted.total >= len(there):
        raise _invalid_partitions(
            f"{wanted.topic} has {len(there)} partitions, and {wanted.total} are not fewer; for more, alter the topic"
        )
    request = PartitionsRequest(
        found.node.topic_id,
        wanted.total,
        now_ms,
        delay_ms,
        PartitionMode.READ_ONLY if delay_ms else PartitionMode.NONE,
    )
    node.commit(node.with_parents(Create(delete_partitions_path(wanted.topic), encode_request(request))))
    return [partition for partition in there if partition >= wanted.total]


def partition_outcomes(
    topic: str, outcome: CommandOutcome, partitions: Sequence[int], delay_ms: int
) -> list[PartitionOutcome]:
    """The answer for one topic: each partition that goes with its mode, or the topic's error."""
    if outcome.error is not KafkaError.NONE:
        return [PartitionOutcome(topic, ALL, PartitionMode.READ_WRITE, outcome)]
    mode = PartitionMode.READ_ONLY if delay_ms else PartitionMode.NONE
    return [PartitionOutcome(topic, partition, mode, outcome) for partition in partitions]


def _invalid_partitions(message: str) -> CommandRefusedError:
    return CommandRefusedError(KafkaError.INVALID_PARTITIONS, message)
