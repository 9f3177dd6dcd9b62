"""What both placements have in common: assignments, the brokers to choose from, and rules for assignments by hand.

Source: FACTS §9; CREATE-2; KIP4-3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logstore import KafkaError
from reconciler.errors import ReconcilerError

Assignment = dict[int, tuple[int, ...]]
"""Broker IDs by partition, the preferred leader first."""


class AssignmentError(ReconcilerError):
    """Replicas cannot be assigned as requested; ``error`` is Kafka's number."""

    def __init__(self, error: KafkaError, message: str) -> None:
        """Keep the error number beside the message."""
        super().__init__(message)
        self.error = error


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """A broker to choose from; a fenced one is away, and KRaft's controller knows it nevertheless."""

    node_id: int
    rack: str | None = None
    fenced: bool = False


def check_new(assignment: Mapping[int, Sequence[int]], broker_problems: Sequence[str] = ()) -> None:
    """Check an assignment of a new topic, made by hand, against the rules that both kinds of controllers have.

    Args:
        assignment: broker IDs by partition.
        broker_problems: reasons against its brokers, which each placement finds by its own rules.

    Raises:
        AssignmentError: 39 for partitions that are not 0, 1, 2 …, a partition without replicas, a broker twice in a
            partition, a negative broker ID, or partitions with different numbers of replicas; the message has every
            reason.
    """
    reasons = _replica_problems(assignment)
    if sorted(assignment) != list(range(len(assignment))):
        reasons.insert(0, f"the partitions are {sorted(assignment)} and not 0, 1, 2 …")
    if len({len(replicas) for replicas in assignment.values()}) > 1:
        reasons.append("not all partitions have the same number of replicas")
    if not assignment:
        reasons.append("it is empty")
    _refuse([*reasons, *broker_problems])


def check_added(
    assignment: Mapping[int, Sequence[int]],
    broker_problems: Sequence[str],
    *,
    existing: int,
    wanted: int,
    factor: int,
) -> None:
    """Check an assignment, made by hand, of partitions that are added to the ``existing`` ones of a topic.

    The assignment has the new partitions alone, up to ``wanted``, each with as many replicas as the others have.

    Raises:
        AssignmentError: 39 when a rule is broken; the message has every reason.
    """
    reasons = _replica_problems(assignment)
    if sorted(assignment) != list(range(existing, wanted)):
        reasons.append(f"partitions {existing} to {wanted - 1} are new, and {sorted(assignment)} are assigned")
    if any(len(replicas) != factor for replicas in assignment.values()):
        reasons.append(f"the topic's partitions have {factor} replicas, and so must the new ones")
    _refuse([*reasons, *broker_problems])


def _replica_problems(assignment: Mapping[int, Sequence[int]]) -> list[str]:
    reasons = []
    for partition, replicas in sorted(assignment.items()):
        if not replicas:
            reasons.append(f"partition {partition} has no replicas")
        if len(set(replicas)) < len(replicas):
            reasons.append(f"partition {partition} has a broker twice: {list(replicas)}")
        if any(broker < 0 for broker in replicas):
            reasons.append(f"partition {partition} has a negative broker ID: {list(replicas)}")
    return reasons


def _refuse(reasons: Sequence[str]) -> None:
    if reasons:
        text = "; ".join(reasons)
        raise AssignmentError(KafkaError.INVALID_REPLICA_ASSIGNMENT, f"the replica assignment cannot be used: {text}")
