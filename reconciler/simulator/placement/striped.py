"""KRaft's striped placement: leaders go round the racks, and followers go on from rack to rack.

Every rack has a list of its brokers that are up and one of its fenced brokers, each begun at a drawn place; racks too
are begun at a drawn one. A partition's leader is the next broker of the next rack that has one up. Its followers come
from the racks in turn, a fenced broker only where its rack has no other left. Once each broker that is up could have
led, everything is shuffled, so that the same brokers do not meet again and again. Source: FACTS §9.4, §10.10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logstore import KafkaError
from reconciler.simulator.placement.assignment import Assignment, AssignmentError, KnownBroker
from reconciler.simulator.placement.java_random import JavaRandom, hash_map_order


class BrokerList:
    """Brokers that are taken in turn, each once in an epoch; a new epoch begins one broker further on."""

    def __init__(self, brokers: Iterable[int], offset: int = 0) -> None:
        """Begin in epoch 0 at the broker of index ``offset``, in the order of the IDs."""
        self._brokers = sorted(brokers)
        self._offset, self._epoch, self._taken = offset, 0, 0

    def next(self, epoch: int) -> int | None:
        """Take the next broker; None: there is none left in this epoch."""
        if self._brokers and epoch != self._epoch:
            self._epoch, self._taken = epoch, 0
            self._offset = (self._offset + 1) % len(self._brokers)
        if self._taken == len(self._brokers):
            return None
        self._taken += 1
        return self._brokers[(self._offset + self._taken - 1) % len(self._brokers)]

    def shuffle(self, random: JavaRandom) -> None:
        """Put the brokers into a drawn order, and keep the place in it."""
        random.shuffle(self._brokers)


class _Rack:
    """The brokers of one rack."""

    def __init__(self, brokers: Sequence[KnownBroker], random: JavaRandom) -> None:
        fenced = [broker.node_id for broker in brokers if broker.fenced]
        unfenced = [broker.node_id for broker in brokers if not broker.fenced]
        self.fenced = BrokerList(fenced, random.next_int(len(fenced)) if fenced else 0)
        self.unfenced = BrokerList(unfenced, random.next_int(len(unfenced)) if unfenced else 0)

    def next(self, epoch: int) -> int | None:
        """Take a broker that is up, or else a fenced one."""
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class RackList:
    """The racks of a cluster, from which one partition after the other gets its replicas.

    Attributes:
        names: of the racks, sorted until they are shuffled; None, the rack of brokers without one, comes first.
    """

    def __init__(self, brokers: Sequence[KnownBroker], random: JavaRandom) -> None:
        """Draw where each list begins, and in which rack the first partition does; there is a broker."""
        self._racks = {
            name: _Rack([broker for broker in brokers if broker.rack == name], random)
            for name in hash_map_order(broker.rack for broker in brokers)
        }
        self.names = sorted(self._racks, key=lambda name: (name is not None, name or ""))
        self._unfenced = sum(not broker.fenced for broker in brokers)
        self._random, self._epoch = random, 0
        self._offset = random.next_int(len(self.names))

    def place(self, factor: int) -> tuple[int, ...]:
        """Choose the replicas of the next partition, its leader first.

        The factor is positive, there are as many brokers, and one of them is up.
        """
        if self._epoch == self._unfenced > 1:
            self._shuffle()
            self._epoch = 0
        first = self._offset % len(self.names)
        leading, leader = first, self._rack(first).unfenced.next(self._epoch)
        while leader is None:
            leading = (leading + 1) % len(self.names)
            leader = self._rack(leading).unfenced.next(self._epoch)
        replicas, turn = [leader], first
        has_passed_leader = False
        while len(replicas) < factor:
            if turn == leading and not has_passed_leader:
                has_passed_leader = True
            elif (broker := self._rack(turn).next(self._epoch)) is not None:
                replicas.append(broker)
            turn = (turn + 1) % len(self.names)
        self._epoch += 1
        self._offset = first + 1
        return tuple(replicas)

    def _rack(self, index: int) -> _Rack:
        return self._racks[self.names[index]]

    def _shuffle(self) -> None:
        self._random.shuffle(self.names)
        for rack in self._racks.values():
            rack.fenced.shuffle(self._random)
            rack.unfenced.shuffle(self._random)


def place_striped(
    brokers: Sequence[KnownBroker], partitions: int, factor: int, random: JavaRandom, *, first_partition: int = 0
) -> Assignment:
    """Place the replicas of new partitions as KRaft's controller does; the order of the brokers does not matter.

    Raises:
        AssignmentError: 38 for a factor that is not positive, where all brokers are fenced, or for a factor greater
            than the number of brokers; 37 without partitions. Each begins with Kafka's own words.
    """
    if factor <= 0:
        raise _no_factor(f"Invalid replication factor {factor}: the replication factor must be positive.")
    if all(broker.fenced for broker in brokers):
        raise _no_factor("All brokers are currently fenced. Start one, or more.")
    if factor > len(brokers):
        raise _no_factor(
            f"The target replication factor of {factor} cannot be reached because only {len(brokers)} broker(s) are "
            "registered. Register more, or ask for fewer replicas."
        )
    if partitions <= 0:
        raise AssignmentError(
            KafkaError.INVALID_PARTITIONS,
            f"Number of partitions was set to an invalid non-positive value. It is {partitions}; ask for 1 or more.",
        )
    racks = RackList(sorted(brokers, key=lambda broker: broker.node_id), random)
    return {partition: racks.place(factor) for partition in range(first_partition, first_partition + partitions)}


def _no_factor(message: str) -> AssignmentError:
    return AssignmentError(KafkaError.INVALID_REPLICATION_FACTOR, message)
