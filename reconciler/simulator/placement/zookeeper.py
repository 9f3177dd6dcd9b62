"""The assignment of new partitions to brokers by Kafka's rules with ZooKeeper, without racks and with racks.

Without racks, the leaders go round the brokers from a random start, and the other replicas follow at a distance that
grows by one each round. With racks the brokers are first put in an order that changes the rack at every step, and no
rack or broker gets a second replica of a partition while another one has none.
Source: FACTS §9.1, §9.2; CREATE-1, CREATE-2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from logstore import KafkaError
from reconciler.simulator.placement.assignment import Assignment, AssignmentError


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


def _no_factor(message: str) -> AssignmentError:
    return AssignmentError(KafkaError.INVALID_REPLICATION_FACTOR, message)
