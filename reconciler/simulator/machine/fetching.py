"""A broker's followers: each finds where its log diverged from its leader's, cuts off the rest, and then fetches.

A partition has one request on its way at a time. The next one is sent at once after records, and after a pause on
errors. A late answer, from an earlier role, is ignored. When the leader does not know the follower's epoch, it answers
with the greatest epoch below it; a follower that does not have that one cuts its log down to its own greatest epoch
below, and asks again (KIP-101, KIP-279). The errors are those of ``serving``. After 74, an epoch that is too old, the
follower asks no more until the controller sends a newer one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from logstore import KafkaError, LogStoreError
from reconciler.simulator.kernel import (
    EpochEndRequest,
    EpochEndResponse,
    FetchRequest,
    FetchResponse,
    Record,
    Response,
    broker_endpoint,
)
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.partition import NO_LEADER, HostedPartition
from reconciler.simulator.machine.replica_log import UNDEFINED

_TakesAnswer: TypeAlias = Callable[[HostedPartition, Response], bool]
"""Takes an answer, and returns whether the next request is sent at once."""


class FollowerFetching:
    """Fetches for the partitions that one broker follows."""

    def __init__(self, host: Host, broker_epoch: Callable[[], int]) -> None:
        """Fetch for this broker; each request carries its epoch."""
        self._host, self._broker_epoch = host, broker_epoch

    def start(self, partition: HostedPartition) -> None:
        """Begin to follow in a new role; a partition without a leader waits for one."""
        if not partition.leads and partition.leader != NO_LEADER:
            self._next(partition, partition.role)

    def _next(self, partition: HostedPartition, role: int) -> None:
        """Send the next request, if the partition still has the role that it was meant for."""
        if partition.role != role or partition.dropped:
            return
        at, topic_id, epoch = partition.at, partition.topic_id, partition.leader_epoch
        take: _TakesAnswer
        request: EpochEndRequest | FetchRequest
        if partition.diverged and partition.log.end:
            request = EpochEndRequest(at, topic_id, epoch, partition.log.epochs.last)
            take = self._cut
        else:
            node_id = self._host.node_id
            request = FetchRequest(node_id, at, topic_id, epoch, partition.log.end, self._broker_epoch())
            take = self._take
        endpoint = broker_endpoint(partition.leader)
        self._host.call(endpoint, request, lambda response: self._answered(partition, role, take, response))

    def _answered(self, partition: HostedPartition, role: int, take: _TakesAnswer, response: Response | None) -> None:
        if partition.role != role or partition.dropped:
            return
        try:
            at_once = response is not None and take(partition, response)
        except LogStoreError as error:
            self._host.say(f"{partition.at}: {error}")
            at_once = False
        if at_once:
            self._next(partition, role)
        elif not _is_fenced(response):
            label = f"fetch {partition.at} again"
            self._host.after(self._host.settings.backoff_ms, label, lambda: self._next(partition, role))

    def _cut(self, partition: HostedPartition, response: Response) -> bool:
        """Cut off the records that the leader does not have (KIP-101, KIP-279)."""
        if not isinstance(response, EpochEndResponse) or response.error is not KafkaError.NONE:
            return False
        log = partition.log
        if response.epoch == UNDEFINED:
            # The leader knows no epoch up to ours: only committed records are sure to be the same.
            end, done = partition.high_watermark, True
        else:
            epoch, own_end = log.epochs.end_of(response.epoch, log.end)
            end = response.end if epoch == UNDEFINED else min(own_end, response.end)
            done = epoch in (UNDEFINED, response.epoch)
        self._truncate(partition, end)
        partition.diverged = not done
        return True

    def _take(self, partition: HostedPartition, response: Response) -> bool:
        """Append the fetched records."""
        if not isinstance(response, FetchResponse):
            return False
        if response.error is KafkaError.OFFSET_OUT_OF_RANGE and partition.log.end < response.log_start:
            # The leader has deleted what comes next, as old, and all that is here is older.
            partition.log.restart(response.log_start)
            partition.high_watermark, partition.diverged = response.log_start, False
            self._host.say(f"{partition.at} begins anew at {response.log_start}, where its leader's log begins")
            return True
        if response.error is KafkaError.OFFSET_OUT_OF_RANGE:
            # The leader's log ends before this one: it lost records, or this log has records that it never had.
            self._truncate(partition, response.log_end)
            partition.diverged = True
            return False
        if response.error is not KafkaError.NONE:
            return False
        new = _going_on_at(partition.log.end, response.records)
        if new:
            partition.log.append(new)
            due = self._host.settings.flush_records
            if due is not None and partition.log.end - partition.log.recovery_point >= due:
                partition.log.flush()
        partition.diverged = False
        partition.high_watermark = max(partition.high_watermark, min(response.high_watermark, partition.log.end))
        partition.log.delete_before(min(response.log_start, partition.high_watermark))
        return True

    def _truncate(self, partition: HostedPartition, end: int) -> None:
        before = partition.log.end
        if partition.log.truncate(end):
            self._host.say(f"{partition.at} is cut off from {before} to {partition.log.end}")
        partition.high_watermark = min(partition.high_watermark, partition.log.end)


def _going_on_at(end: int, records: tuple[Record, ...]) -> list[Record]:
    """The fetched records from the end of a log on; none if they do not begin there."""
    new = [record for record in records if record.offset >= end]
    return new if new and new[0].offset == end else []


def _is_fenced(response: Response | None) -> bool:
    """Whether the leader's epoch is newer than this follower's, so that only the controller can help."""
    answers = (EpochEndResponse, FetchResponse)
    return isinstance(response, answers) and response.error is KafkaError.FENCED_LEADER_EPOCH
