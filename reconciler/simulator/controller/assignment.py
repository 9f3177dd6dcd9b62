"""The assignment of new partitions to brokers: Kafka's rules without racks, with racks, and by hand.

Without racks, the leaders go round the brokers from a random start, and the other replicas follow at a distance that
grows by one each round. With racks the brokers are first put in an order that changes the rack at every step, and no
rack or broker gets a second replica of a partition while another one has none.
Source: FACTS §9; CREATE-1, CREATE-2; KIP4-3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

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


def assign(
    brokers: Sequence[int],
    partitions: int,
    factor: int,
    *,
    racks: Mapping[int, str] | None = None,
    random: Random | None = None,
    fixed_start: int = -1,
    start_partition: int = -1,
) -> Assignment:
    """Assign the replicas of new partitions to brokers.

    Args:
        brokers: IDs of the usable brokers, in the order in which they are assigned; with racks, the order does not
            matter.
        partitions: number of new partitions.
        factor: number of replicas of each.
        racks: the rack of each broker; None or empty: no racks.
        random: draws the start and the distance, in this order; not needed with a fixed start.
        fixed_start: both the start and the distance, as an index; -1: drawn.
        start_partition: the number of the first new partition; -1: the first is 0.

    Raises:
        AssignmentError: 37 without partitions; 38 for a factor that is not positive or greater than the number of
            brokers; -1 where only some brokers have a rack.
        ValueError: there is neither a fixed start nor a random generator.
    """
    if partitions <= 0:
        raise AssignmentError(KafkaError.INVALID_PARTITIONS, f"{partitions} partitions: at least 1 is needed")
    if factor <= 0:
        raise _no_factor(f"replication factor {factor}: at least 1 is needed")
    if factor > len(brokers):
        raise _no_factor(
            f"replication factor {factor} with {len(brokers)} brokers: start more, or ask for fewer replicas"
        )
    rack_of = {broker: racks[broker] for broker in brokers if broker in racks} if racks else {}
    if rack_of and len(rack_of) < len(brokers):
        without = sorted(set(brokers) - set(rack_of))
        raise AssignmentError(
            KafkaError.UNKNOWN_SERVER_ERROR,
            f"brokers {without} have no rack and others have; give each broker one, or none",
        )
    order = rack_alternated(rack_of) if rack_of else list(brokers)
    if fixed_start < 0 and random is None:
        raise ValueError("without a fixed start, a random number generator is needed")
    start = shift = fixed_start
    if random is not None and fixed_start < 0:
        start, shift = random.randrange(len(order)), random.randrange(len(order))
    first_partition = max(0, start_partition)
    found: Assignment = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition and partition % len(order) == 0:
            shift += 1
        found[partition] = _replicas(order, (partition + start) % len(order), shift, factor, rack_of)
    return found


def rack_alternated(rack_of: Mapping[int, str]) -> list[int]:
    """Return brokers in an order that changes the rack at each step while it can: racks by name, lowest ID first."""
    names = sorted({*rack_of.values()})
    by_rack = {rack: sorted(broker for broker in rack_of if rack_of[broker] == rack) for rack in names}
    longest = max((len(brokers) for brokers in by_rack.values()), default=0)
    return [brokers[turn] for turn in range(longest) for brokers in by_rack.values() if turn < len(brokers)]


def check_by_hand(assignment: Mapping[int, Sequence[int]]) -> None:
    """Check an assignment made by hand against Kafka's rules.

    As in Kafka, a broker need not exist: its replicas are offline until it does.

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
    _refuse(reasons)


def check_added_by_hand(
    assignment: Mapping[int, Sequence[int]], *, existing: int, wanted: int, factor: int, brokers: Sequence[int]
) -> None:
    """Check an assignment, made by hand, of partitions that are added to the ``existing`` ones of a topic.

    The assignment has the new partitions alone, up to ``wanted``; unlike for a new topic, only live brokers may be
    named.

    Raises:
        AssignmentError: 39 when a rule is broken; the message has every reason.
    """
    reasons = _replica_problems(assignment)
    if sorted(assignment) != list(range(existing, wanted)):
        reasons.append(f"partitions {existing} to {wanted - 1} are new, and {sorted(assignment)} are assigned")
    if any(len(replicas) != factor for replicas in assignment.values()):
        reasons.append(f"the topic's partitions have {factor} replicas, and so must the new ones")
    unknown = sorted({broker for replicas in assignment.values() for broker in replicas} - set(brokers))
    if unknown:
        reasons.append(f"brokers {unknown} are not there")
    _refuse(reasons)


def _replicas(order: Sequence[int], first: int, shift: int, factor: int, rack_of: Mapping[int, str]) -> tuple[int, ...]:
    """Return the replicas of one partition, whose leader has index ``first``."""
    racks = {*rack_of.values()}
    taken = [order[first]]
    step = shift * max(1, len(racks))
    while len(taken) < factor:
        broker = order[(first + 1 + step % (len(order) - 1)) % len(order)]
        used = {rack_of[each] for each in taken} if rack_of else set()
        if not rack_of or ((rack_of[broker] not in used or used == racks) and broker not in taken):
            taken.append(broker)
        step += 1
    return tuple(taken)


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


def _no_factor(message: str) -> AssignmentError:
    return AssignmentError(KafkaError.INVALID_REPLICATION_FACTOR, message)
