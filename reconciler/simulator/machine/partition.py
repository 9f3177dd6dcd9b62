"""One partition on a broker: its role, its in-sync set, and its high watermark. No I/O except its log.

As in Kafka since 2.7, a leader that has proposed another in-sync set counts on the larger of the two until it gets the
answer, so that the high watermark is safe either way. A late answer never changes a role back: each role has a number,
:attr:`HostedPartition.role`, and everything that waits remembers it.

The in-sync set shrinks and grows through the active controller, with one request for each partition at a time. Errors
that another try cannot help (an older leader epoch or version, an unknown partition) are waited out: a LeaderAndIsr
request will come. After any other error the request is sent again, because the leader cannot know what became of the
first one. Source: FACTS §4.2, §8; KIP-101, KIP-279, KIP-497 for the in-sync set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import PartitionState
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse, Record, Response, broker_endpoint
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.replica_log import ReplicaLog

NO_LEADER = -1
"""The leader of a partition that has none."""


@dataclass(slots=True)
class FollowerState:
    """A follower as its leader knows it. Times are of the leader's clock, in ms."""

    caught_up_ms: int
    """When it last had all records."""
    position: int = -1
    """The offset after its last record; -1: it has not fetched yet."""
    fetched_ms: int = 0
    end_then: int = 0
    """The end of the leader's log at the last fetch."""
    broker_epoch: int = -1


@dataclass(slots=True)
class HostedPartition:
    """One partition that this broker leads or follows.

    Attributes:
        at: its topic and number.
        topic_id: of its topic; None: the replica has none.
        log: its records.
        role: counts up with every change of role, and when the partition is dropped.
        isr: the in-sync set in force.
        proposed: the in-sync set that the controller was asked for; None: no request is on its way.
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
    """Whether a follower must ask where its log diverged from the leader's before it fetches."""

    def take_role(self, state: PartitionState, node_id: int, now_ms: int) -> None:
        """Lead or follow, as a LeaderAndIsr request says, under the next role number."""
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
        """End the role."""
        self.role += 1
        self.dropped, self.leads = True, False

    def check(self, leader_epoch: int) -> KafkaError:
        """Check whether a sender with this leader epoch may ask this broker as the leader; -1: it knows no epoch."""
        if self.dropped:
            return KafkaError.NOT_LEADER_OR_FOLLOWER
        if leader_epoch not in (-1, self.leader_epoch):
            older = leader_epoch < self.leader_epoch
            return KafkaError.FENCED_LEADER_EPOCH if older else KafkaError.UNKNOWN_LEADER_EPOCH
        return KafkaError.NONE if self.leads else KafkaError.NOT_LEADER_OR_FOLLOWER

    @property
    def counted(self) -> frozenset[int]:
        """The replicas that the high watermark waits for: the in-sync set and the proposed one."""
        return frozenset(self.isr) | frozenset(self.proposed or ())

    def advance(self) -> bool:
        """Raise a leader's high watermark to the offset that all counted replicas have; returns whether it rose."""
        positions = [each.position for broker, each in self.followers.items() if broker in self.counted]
        reached = min([self.log.end, *positions])
        if not self.leads or reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    def lags(self) -> dict[int, int]:
        """Broker → how many records its replica lacks of this leader's log; -1: it has not fetched since it leads."""
        if not self.leads:
            return {}
        positions = {broker: each.position for broker, each in self.followers.items()} | {self.leader: self.log.end}
        known = [(broker, positions.get(broker, -1)) for broker in self.replicas]
        return {broker: self.log.end - position if position >= 0 else -1 for broker, position in known}

    def write(self, value: str, now_ms: int) -> int:
        """Append a producer's record to the leader's log and return its offset. Raises as :meth:`ReplicaLog.append`."""
        offset = self.log.end
        self.log.append([Record(offset, self.leader_epoch, self.topic_id, value, now_ms)])
        return offset

    def note_fetch(self, broker: int, offset: int, broker_epoch: int, now_ms: int) -> bool:
        """Note that a follower has all records before an offset; False: the fetch is from before its last restart."""
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
        """Whether a follower that just fetched should join the in-sync set.

        It must have all committed records, and the start of this leader's epoch: its records before that may differ
        from the leader's.
        """
        position = self.followers[broker].position
        enough = position >= self.high_watermark and position >= self.log.epochs.last_start
        return self.leads and self.proposed is None and broker not in self.isr and enough

    def lagging(self, now_ms: int, lag_ms: int) -> list[int]:
        """The in-sync followers that have not caught up for too long."""
        if not self.leads or self.proposed is not None:
            return []
        behind = [
            broker
            for broker, each in self.followers.items()
            if each.position < self.log.end and now_ms - each.caught_up_ms > lag_ms
        ]
        return [broker for broker in behind if broker in self.isr]

    def delete_old(self, retention_ms: int, now_ms: int) -> bool:
        """Delete the committed records that are older, and return whether there were any; raises as the log does."""
        return self.log.delete_before(self.log.older_than(now_ms - retention_ms, self.high_watermark))

    def agree(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Take over the in-sync set that the controller decided."""
        self.isr, self.partition_epoch, self.proposed = isr, partition_epoch, None


_FINAL_ERRORS = (
    KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.INCONSISTENT_TOPIC_ID,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.INVALID_UPDATE_VERSION,
)


class InSyncSets:
    """Changes the in-sync sets of the partitions that one broker leads."""

    def __init__(self, host: Host, broker_epoch: Callable[[], int], controller: Callable[[], int | None]) -> None:
        """Send requests in this broker's name, to the active controller; None: there is none."""
        self._host, self._broker_epoch, self._controller = host, broker_epoch, controller
        self.agreed: Callable[[HostedPartition], None] = lambda partition: None
        """Called with a partition whose new set is in force: its high watermark may rise."""

    def caught_up(self, partition: HostedPartition, broker: int) -> None:
        """Propose a follower that just fetched for the in-sync set, if it has come far enough."""
        if partition.joins(broker):
            self._propose(partition, (*partition.isr, broker), f"{broker} caught up")

    def shrink(self, partition: HostedPartition) -> None:
        """Propose a set without the followers that have not caught up for too long."""
        lagging = partition.lagging(self._host.timers.now_ms(), self._host.settings.replica_lag_ms)
        if lagging:
            left = tuple(each for each in partition.isr if each not in lagging)
            self._propose(partition, left, f"{', '.join(map(str, lagging))} lags")

    def _propose(self, partition: HostedPartition, isr: tuple[int, ...], why: str) -> None:
        self._host.say(f"{partition.at}: {why}, so {list(isr)} should be in sync")
        partition.proposed = isr
        self._send(partition, partition.role)

    def _send(self, partition: HostedPartition, role: int) -> None:
        """Ask the controller for the proposed set."""
        if partition.role != role or partition.proposed is None:
            return
        controller = self._controller()
        if controller is None:
            self._again(partition, role)
            return
        request = AlterIsrRequest(
            *(self._host.node_id, self._broker_epoch(), partition.at, partition.topic_id),
            *(partition.leader_epoch, partition.partition_epoch, partition.proposed),
        )
        endpoint = broker_endpoint(controller)
        self._host.call(endpoint, request, lambda response: self._answered(partition, role, response))

    def _answered(self, partition: HostedPartition, role: int, response: Response | None) -> None:
        if partition.role != role or partition.proposed is None:
            return
        if not isinstance(response, AlterIsrResponse):
            self._again(partition, role)
        elif response.error is not KafkaError.NONE:
            self._host.say(f"{partition.at}: the controller refuses another in-sync set: {response.error.name}")
            if response.error not in _FINAL_ERRORS:
                self._again(partition, role)
        elif response.leader_epoch == partition.leader_epoch and response.partition_epoch >= partition.partition_epoch:
            partition.agree(response.isr, response.partition_epoch)
            self.agreed(partition)

    def _again(self, partition: HostedPartition, role: int) -> None:
        label = f"in-sync set of {partition.at} again"
        self._host.after(self._host.settings.backoff_ms, label, lambda: self._send(partition, role))
