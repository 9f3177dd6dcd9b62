"""Deleting topics and their last partitions: a note in ZooKeeper for the controller; the answer comes at once.

A topic is marked by name or by topic ID (KIP4-1, KIP516-10). A request for fewer partitions is checked and written down
(KIP694-2, KIP694-5). KIP-694 names no error numbers. Here: switched off 73; a total that is not less than the present
number, or not positive, 37; unknown 3; already under change 60; being deleted 17; a negative delay 42.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import DeletedPartition, DeletedPartitions, DeletePartitionsResponse
from reconciler.simulator.admin.commands import CommandOutcome, CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode, find_steady, find_topic
from reconciler.simulator.controller import FewerPartitionsRequest, FewerPartitionsSettings, encode_fewer_partitions
from reconciler.simulator.kernel import PartitionMode, Timers
from reconciler.simulator.zookeeper import Create, Operation, delete_partitions_path, delete_path


def mark_for_deletion(node: ControllerNode, topic: str) -> None:
    """Mark a topic for deletion; a topic that is marked already stays so.

    Raises:
        CommandRefusedError: 3, there is no such topic.
    """
    find_topic(node, topic)
    node.commit(deletion_marks(node, [topic]))


def deletion_marks(node: ControllerNode, topics: list[str]) -> list[Operation]:
    """Operations that mark topics for deletion, unless they are marked, with the missing nodes above the marks."""
    made: dict[str, Operation] = {}
    for topic in topics:
        if node.session.find(delete_path(topic)) is None:
            made |= {each.path: each for each in node.with_parents(Create(delete_path(topic)))}
    return list(made.values())


ALL = -1
"""In place of a partition's number: the error is about the whole topic."""


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """A topic, its new, smaller number of partitions, and how long consumers may read the others; 0: not at all."""

    topic: str
    total: int
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """The result for one partition of a topic."""

    topic: str
    partition: int
    """-1: the whole topic was refused."""
    mode: PartitionMode
    outcome: CommandOutcome


def request_fewer(
    node: ControllerNode, wanted: DeletePartitions, *, now_ms: int, settings: FewerPartitionsSettings
) -> list[int]:
    """Write a request for fewer partitions into ZooKeeper, at ``now_ms`` by the controller's clock.

    Returns:
        The partitions that will be deleted.

    Raises:
        CommandRefusedError: see the module.
    """
    if not settings.enabled:
        raise CommandRefusedError(
            KafkaError.TOPIC_DELETION_DISABLED, "delete.topic.partition.enable is false: partitions cannot be deleted"
        )
    if wanted.delay_ms < 0:
        raise CommandRefusedError(KafkaError.INVALID_REQUEST, f"a delay of {wanted.delay_ms} ms: 0 or more is needed")
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
    request = FewerPartitionsRequest(
        found.node.topic_id,
        wanted.total,
        now_ms,
        wanted.delay_ms,
        PartitionMode.READ_ONLY if wanted.delay_ms else PartitionMode.NONE,
    )
    node.commit(node.with_parents(Create(delete_partitions_path(wanted.topic), encode_fewer_partitions(request))))
    return [partition for partition in there if partition >= wanted.total]


def partition_outcomes(
    topic: str, outcome: CommandOutcome, partitions: Sequence[int], delay_ms: int
) -> list[PartitionOutcome]:
    """The results for one topic: each partition that will be deleted, with its mode, or the topic's error."""
    if outcome.error is not KafkaError.NONE:
        return [PartitionOutcome(topic, ALL, PartitionMode.READ_WRITE, outcome)]
    mode = PartitionMode.READ_ONLY if delay_ms else PartitionMode.NONE
    return [PartitionOutcome(topic, partition, mode, outcome) for partition in partitions]


class DeletionAnswer:
    """The answer to a DeletePartitions request: given once clients may no longer write, or after its timeout.

    Until then the controller looks again and again. What it has not done by then is answered with REQUEST_TIMED_OUT (7)
    and its present mode, and is done all the same. There are no quotas here, so nothing is throttled (KIP694-2).
    """

    def __init__(
        self,
        node: ControllerNode,
        timers: Timers,
        outcomes: Sequence[PartitionOutcome],
        *,
        timeout_ms: int,
        answer: Callable[[DeletePartitionsResponse], None],
    ) -> None:
        """Wait for what was accepted, at most for ``timeout_ms``; :meth:`look` begins."""
        self._node, self._timers, self._outcomes = node, timers, outcomes
        self._left_ms, self._answer = timeout_ms, answer

    def look(self) -> None:
        """Answer, if it is time; otherwise look again a little later."""
        if not self._node.controller.active:
            self._answer(DeletePartitionsResponse(KafkaError.NOT_CONTROLLER, message="another controller goes on"))
            return
        waits = [each for each in self._outcomes if _accepted(each) and self._mode(each) is PartitionMode.READ_WRITE]
        if not waits or self._left_ms <= 0:
            self._answer(self._response())
            return
        pause_ms = min(_LOOK_MS, self._left_ms)
        self._left_ms -= pause_ms
        self._timers.after(pause_ms, "look at partitions that clients give up", self.look)

    def _mode(self, outcome: PartitionOutcome) -> PartitionMode:
        """The present mode of a partition that goes, none where it is gone already; of a topic that was refused, 0."""
        if not _accepted(outcome):
            return PartitionMode.READ_WRITE
        context, partition = self._node.controller.context, TopicPartition(outcome.topic, outcome.partition)
        return context.mode_of(partition) if partition in context.assignments else PartitionMode.NONE

    def _response(self) -> DeletePartitionsResponse:
        topics: dict[str, list[DeletedPartition]] = {}
        for each in self._outcomes:
            mode, error, message = self._mode(each), each.outcome.error, each.outcome.message or None
            if _accepted(each) and mode is PartitionMode.READ_WRITE:
                error, message = KafkaError.REQUEST_TIMED_OUT, "clients may still write: it goes on by itself"
            topics.setdefault(each.topic, []).append(DeletedPartition(each.partition, int(mode), int(error), message))
        found = tuple(DeletedPartitions(topic, tuple(each)) for topic, each in topics.items())
        return DeletePartitionsResponse(KafkaError.NONE, found)


_LOOK_MS = 20


def _accepted(outcome: PartitionOutcome) -> bool:
    return outcome.outcome.error is KafkaError.NONE


def _invalid_partitions(message: str) -> CommandRefusedError:
    return CommandRefusedError(KafkaError.INVALID_PARTITIONS, message)
