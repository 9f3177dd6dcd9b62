"""Followers: each asks its leader where their logs parted, cuts off what the leader never had, and then fetches.

A partition has one request on its way at a time; the next one goes out when it was answered, at once after records and
after a while on errors. What comes late, from an earlier role, is passed over. An epoch that the leader does not know
comes back as the greatest one below it; a follower that does not have that one cuts off down to what it has, and asks
again (KIP-101, KIP-279). Errors are those of ``serving``; an epoch that is too old (74) ends the asking until the
controller says something newer.
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
from reconciler.simulator.machine.epoch_starts import UNDEFINED
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.partition import NO_LEADER, HostedPartition

_TakesAnswer: TypeAlias = Callable[[HostedPartition, Response], bool]
"""Takes an answer; whether the next request goes out at once."""


class FollowerFetching:
    """The follower's side of one broker."""

    def __init__(self, host: Host, broker_epoch: Callable[[], int]) -> None:
        """Fetch for this broker, whose epoch goes with each request."""
        self._host, self._broker_epoch = host, broker_epoch

    def start(self, partition: HostedPartition) -> None:
        """Follow, from a new role on; a partition without a leader waits for one."""
        if not partition.leads and partition.leader != NO_LEADER:
            self._next(partition, partition.role)

    def _next(self, partition: HostedPartition, role: int) -> None:
        """Send the next request, if the partition is still in the role for which it was meant."""
        if partition.role != role or partition.dropped:
            return
        at, topic_id, epoch = partition.at, partition.topic_id, partition.leader_epoch
        told: _TakesAnswer
        request: EpochEndRequest | FetchRequest
        if partition.diverged and partition.log.end:
            request = EpochEndRequest(at, topic_id, epoch, partition.log.epochs.last)
            told = self._cut
        else:
            node_id = self._host.node_id
            request = FetchRequest(node_id, at, topic_id, epoch, partition.log.end, self._broker_epoch())
            told = self._take
        endpoint = broker_endpoint(partition.leader)
        self._host.call(endpoint, request, lambda response: self._answered(partition, role, told, response))

    def _answered(self, partition: HostedPartition, role: int, told: _TakesAnswer, response: Response | None) -> None:
        if partition.role != role or partition.dropped:
            return
        try:
            at_once = response is not None and told(partition, response)
        except LogStoreError as error:
            self._host.say(f"{partition.at}: {error}")
            at_once = False
        if at_once:
            self._next(partition, role)
        elif not _is_fenced(response):
            label = f"fetch {partition.at} again"
            self._host.after(self._host.settings.backoff_ms, label, lambda: self._next(partition, role))

    def _cut(self, partition: HostedPartition, response: Response) -> bool:
        """Cut off what the leader does not have (KIP-101, KIP-279)."""
        if not isinstance(response, EpochEndResponse) or response.error is not KafkaError.NONE:
            return False
        log = partition.log
        if response.epoch == UNDEFINED:
            # The leader knows of no epoch as new as ours: only what is committed is sure to be the same.
            end, done = partition.high_watermark, True
        else:
            epoch, own_end = log.epochs.end_of(response.epoch, log.end)
            end = response.end if epoch == UNDEFINED else min(own_end, response.end)
            done = epoch in (UNDEFINED, response.epoch)
        self._truncate(partition, end)
        partition.diverged = not done
        return True

    def _take(self, partition: HostedPartition, response: Response) -> bool:
        """Append what was fetched."""
        if not isinstance(response, FetchResponse):
            return False
        if response.error is KafkaError.OFFSET_OUT_OF_RANGE:
            # The leader ends before this log does, so it lost records, or this log has some that it never had.
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
        return True

    def _truncate(self, partition: HostedPartition, end: int) -> None:
        before = partition.log.end
        if partition.log.truncate(end):
            self._host.say(f"{partition.at} is cut off from {before} to {partition.log.end}")
        partition.high_watermark = min(partition.high_watermark, partition.log.end)


def _going_on_at(end: int, records: tuple[Record, ...]) -> list[Record]:
    """Those of the records that go on where a log ends."""
    new = [record for record in records if record.offset >= end]
    return new if new and new[0].offset == end else []


def _is_fenced(response: Response | None) -> bool:
    """Whether the leader is ahead of this follower's epoch, so that only the controller can help."""
    answers = (EpochEndResponse, FetchResponse)
    return isinstance(response, answers) and response.error is KafkaError.FENCED_LEADER_EPOCH
