"""One partition on a broker: leader or follower, who is in sync, and how far all of them have come. No I/O but its log.

As in Kafka since 2.7, a leader that has asked for another in-sync set counts on the larger of the two until it hears
what came of it, so that the high watermark is safe either way. A role is never changed back by what comes late: each
has a number, :attr:`Partition.role`, and whoever waits for something remembers it. Source: FACTS §4.2, §8; KIP-101,
KIP-279, KIP-497 for the in-sync set.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import PartitionState
from reconciler.simulator.kernel import Record
from reconciler.simulator.machine.replica_log import ReplicaLog

NO_LEADER = -1
"""The leader of a partition that has none."""


@dataclass(slots=True)
class FollowerState:
    """What a leader knows of one follower. Times are of the leader's clock, in ms."""

    caught_up_ms: int
    """When it last had everything."""
    position: int = -1
    """The offset after its last record; -1: it did not fetch yet."""
    fetched_ms: int = 0
    end_then: int = 0
    """Where the leader's log ended when it fetched last."""
    broker_epoch: int = -1


@dataclass(slots=True)
class HostedPartition:
    """One partition that this broker was told to lead or to follow.

    Attributes:
        at: which one.
        topic_id: of its topic; None: the replica has none.
        log: its records.
        role: counts up with every change of role, and when the partition is dropped.
        isr: the in-sync set in force.
        proposed: the one that the controller was asked for; None: it was asked for none.
    """

    at: TopicPartition
    topic_id: TopicId | None
    log: ReplicaLog
    high_watermark: int = 0
    role: int = 0
    dropped: bool = False
    leads: bool = False
    leader: int = NO_LEADER
    leader_epoch: int = -1
    partition_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    proposed: tuple[int, ...] | None = None
    followers: dict[int, FollowerState] = field(default_factory=dict)
    diverged: bool = False
    """Whether a follower must ask where its log left the leader's, before it fetches."""

    def take_role(self, state: PartitionState, node_id: int, now_ms: int) -> None:
        """Lead or follow, as a LeaderAndIsr request says."""
        self.role += 1
        self.leads = state.leader == node_id
        self.leader, self.leader_epoch, self.partition_epoch = state.leader, state.leader_epoch, state.partition_epoch
        self.replicas, self.isr, self.proposed = state.replicas, state.isr, None
        self.diverged = not self.leads
        self.followers = {}
        if self.leads:
            self.log.epochs.assign(state.leader_epoch, self.log.end)
            others = [each for each in state.replicas if each != node_id]
            self.followers = {each: FollowerState(now_ms if each in state.isr else 0) for each in others}
            self.advance()

    def drop(self) -> None:
        """Have no role any more."""
        self.role += 1
        self.dropped, self.leads = True, False

    def check(self, leader_epoch: int) -> KafkaError:
        """Whether somebody who believes in a leader epoch may ask this broker as the leader; -1: believes in none."""
        if self.dropped:
            return KafkaError.NOT_LEADER_OR_FOLLOWER
        if leader_epoch not in (-1, self.leader_epoch):
            older = leader_epoch < self.leader_epoch
            return KafkaError.FENCED_LEADER_EPOCH if older else KafkaError.UNKNOWN_LEADER_EPOCH
        return KafkaError.NONE if self.leads else KafkaError.NOT_LEADER_OR_FOLLOWER

    @property
    def counted(self) -> frozenset[int]:
        """The replicas that the high watermark waits for: those in sync, and those that may be by now."""
        return frozenset(self.isr) | frozenset(self.proposed or ())

    def advance(self) -> bool:
        """Raise a leader's high watermark to what all that count have; whether it rose."""
        positions = [each.position for broker, each in self.followers.items() if broker in self.counted]
        reached = min([self.log.end, *positions])
        if not self.leads or reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    def write(self, value: str) -> int:
        """Append a producer's record to the leader's log; gives its offset. Raises as :meth:`ReplicaLog.append`."""
        offset = self.log.end
        self.log.append([Record(offset, self.leader_epoch, self.topic_id, value)])
        return offset

    def note_fetch(self, broker: int, offset: int, broker_epoch: int, now_ms: int) -> bool:
        """A follower has all before an offset; False: that was sent before the follower's last restart."""
        follower = self.followers[broker]
        if broker_epoch < follower.broker_epoch:
            return False
        if offset >= self.log.end:
            follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
        elif offset >= follower.end_then:
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        follower.position, follower.broker_epoch = offset, broker_epoch
        follower.fetched_ms, follower.end_then = now_ms, self.log.end
        return True

    def joins(self, broker: int) -> bool:
        """Whether a follower that just fetched may be in the in-sync set, and is not.

        It must have everything that is committed, and the start of this leader's epoch: what it has before that may
        not be what the leader has.
        """
        position = self.followers[broker].position
        enough = position >= self.high_watermark and position >= self.log.epochs.last_start
        return self.leads and self.proposed is None and broker not in self.isr and enough

    def lagging(self, now_ms: int, lag_ms: int) -> list[int]:
        """The followers in sync that have not caught up for too long."""
        if not self.leads or self.proposed is not None:
            return []
        behind = [
            broker
            for broker, each in self.followers.items()
            if each.position < self.log.end and now_ms - each.caught_up_ms > lag_ms
        ]
        return [broker for broker in behind if broker in self.isr]

    def agree(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Take over the in-sync set that is in force by the controller's word."""
        self.isr, self.partition_epoch, self.proposed = isr, partition_epoch, None
