"""The in-sync set of what a broker leads: it shrinks by who lags and grows by who caught up, through the controller.

One request for each partition at a time; until its answer came the leader counts on both sets (``partition``). The
controller is whoever ``/controller`` names. What it refuses for good (an older leader epoch or version, an unknown
partition) is waited out: a LeaderAndIsr request will come. Anything else is tried again, for nobody knows what became
of the first try. Source: KIP-497; FACTS §8.
"""

from __future__ import annotations

from collections.abc import Callable

from logstore import KafkaError
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse, Response, broker_endpoint
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.partition import HostedPartition

_FINAL_ERRORS = (
    KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.INCONSISTENT_TOPIC_ID,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.INVALID_UPDATE_VERSION,
)


class InSyncSets:
    """The in-sync sets of one broker's partitions."""

    def __init__(self, host: Host, broker_epoch: Callable[[], int], controller: Callable[[], int | None]) -> None:
        """Ask for changes in this broker's name.

        Args:
            host: the broker.
            broker_epoch: of its registration.
            controller: who is the active one; None: nobody is.
        """
        self._host, self._broker_epoch, self._controller = host, broker_epoch, controller
        self.agreed: Callable[[HostedPartition], None] = lambda partition: None
        """Told of a set that is in force, for the high watermark may rise by it."""

    def caught_up(self, partition: HostedPartition, broker: int) -> None:
        """A follower fetched: it joins, if it has come far enough."""
        if partition.joins(broker):
            self._propose(partition, (*partition.isr, broker), f"{broker} caught up")

    def shrink(self, partition: HostedPartition) -> None:
        """Leave out who has not caught up for too long."""
        lagging = partition.lagging(self._host.timers.now_ms(), self._host.settings.replica_lag_ms)
        if lagging:
            left = tuple(each for each in partition.isr if each not in lagging)
            self._propose(partition, left, f"{', '.join(map(str, lagging))} lags")

    def _propose(self, partition: HostedPartition, isr: tuple[int, ...], why: str) -> None:
        self._host.say(f"{partition.at}: {why}, so {list(isr)} should be in sync")
        partition.proposed = isr
        self._send(partition, partition.role)

    def _send(self, partition: HostedPartition, role: int) -> None:
        """Ask the controller for what is proposed."""
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
