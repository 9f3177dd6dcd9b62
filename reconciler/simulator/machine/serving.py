"""What a leader answers: produce, fetch, list-offsets, epoch-end; and what waits there for replicas, records or time.

Every request is fenced by its topic ID first (KIP516-8): 103 where the replica has another, 100 where none is known,
3 where a request by name alone finds nothing; 56 while the disk is away. Then comes the leader epoch, 74 where the
asker's is older, 75 where it is newer, and 6 where this broker does not lead. Source: FACTS §4.4; DESIGN §4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError, LogStoreError
from reconciler.broker import Broker
from reconciler.simulator.kernel import (
    CONSUMER,
    Answer,
    EpochEndRequest,
    EpochEndResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
    Timer,
)
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.hosted_replicas import HostedReplicas
from reconciler.simulator.machine.partition import HostedPartition


@dataclass(slots=True)
class _DelayedRequest:
    """A request that is not answered yet: of a producer until its record is committed, of a fetch until there is one.

    Attributes:
        offset: a producer's record, or the first that a fetch wants.
        fetch: None: it is a producer's.
    """

    offset: int
    fetch: FetchRequest | None
    answer: Answer
    timer: Timer


class LeaderRequests:
    """The leader's side of one broker."""

    def __init__(self, host: Host, broker: Broker, replicas: HostedReplicas) -> None:
        """Serve what these replicas lead.

        Args:
            host: whose they are.
            broker: fences requests by topic ID.
            replicas: with their roles.
        """
        self._host, self._broker, self._replicas = host, broker, replicas
        self._waiting: dict[TopicPartition, list[_DelayedRequest]] = {}
        self.caught_up: Callable[[HostedPartition, int], None] = lambda partition, broker: None
        """Told of each fetch of a follower, for the in-sync set may grow by it."""

    def produce(self, request: ProduceRequest, answer: Answer) -> None:
        """Append a record, and answer when all in-sync replicas have it."""
        partition, error = self._find(request.partition, request.topic_id, -1)
        settings = self._host.settings
        if partition is not None and len(partition.isr) < settings.min_insync_replicas:
            error = KafkaError.NOT_ENOUGH_REPLICAS
        if partition is None or error is not KafkaError.NONE:
            answer(ProduceResponse(error))
            return
        try:
            offset = partition.write(request.value)
            if settings.flush_records is not None:
                self._flush_when_due(partition)
        except LogStoreError as failed:
            self._host.say(f"{partition.at}: {failed}")
            answer(ProduceResponse(failed.kafka_error))
            return
        self._wait(partition, offset, None, answer, settings.request_timeout_ms)
        self._has_grown(partition)
        self.advance(partition)

    def fetch(self, request: FetchRequest, answer: Answer) -> None:
        """Answer with records; where there are none yet, wait for them for a while."""
        partition, error = self._find(request.partition, request.topic_id, request.leader_epoch)
        if partition is None:
            answer(FetchResponse(error))
            return
        consumes = request.replica_id == CONSUMER
        if not consumes and request.replica_id not in partition.followers:
            answer(FetchResponse(KafkaError.NOT_LEADER_OR_FOLLOWER))
            return
        if not 0 <= request.offset <= partition.log.end:
            end, watermark = partition.log.end, partition.high_watermark
            answer(FetchResponse(KafkaError.OFFSET_OUT_OF_RANGE, (), watermark, end))
            return
        if not consumes:
            now_ms = self._host.timers.now_ms()
            if not partition.note_fetch(request.replica_id, request.offset, request.broker_epoch, now_ms):
                answer(FetchResponse(KafkaError.STALE_BROKER_EPOCH))
                return
            self.advance(partition)
            self.caught_up(partition, request.replica_id)
        if request.offset < self._visible(partition, request):
            answer(self._records(partition, request))
        else:
            self._wait(partition, request.offset, request, answer, self._host.settings.fetch_wait_ms)

    def list_offsets(self, request: ListOffsetsRequest, answer: Answer) -> None:
        """Say where a partition begins and ends."""
        partition, error = self._find(request.partition, request.topic_id, -1)
        watermark = 0 if partition is None else partition.high_watermark
        answer(ListOffsetsResponse(error, 0, watermark))

    def epoch_end(self, request: EpochEndRequest, answer: Answer) -> None:
        """Say where an epoch ended in the leader's log (KIP-101)."""
        partition, error = self._find(request.partition, request.topic_id, request.leader_epoch)
        if partition is None:
            answer(EpochEndResponse(error))
        else:
            answer(EpochEndResponse(error, *partition.log.epochs.end_of(request.of_epoch, partition.log.end)))

    def advance(self, partition: HostedPartition) -> None:
        """Raise the high watermark as far as it goes, and answer whoever waited for that."""
        if partition.advance():
            self._answer_those(partition, lambda each: each.offset < self._visible(partition, each.fetch))

    def ended(self, partition: HostedPartition) -> None:
        """Tell whoever waits that this broker does not lead any more."""
        offline = self._broker.fence(partition.at) is KafkaError.KAFKA_STORAGE_ERROR
        error = KafkaError.KAFKA_STORAGE_ERROR if offline else KafkaError.NOT_LEADER_OR_FOLLOWER
        for each in self._waiting.pop(partition.at, []):
            each.timer.cancel()
            each.answer(ProduceResponse(error) if each.fetch is None else FetchResponse(error))

    def _find(
        self, at: TopicPartition, topic_id: TopicId | None, leader_epoch: int
    ) -> tuple[HostedPartition | None, KafkaError]:
        """The partition, if it may be asked; otherwise why not."""
        error = self._broker.fence(at, topic_id)
        if error is not KafkaError.NONE:
            return None, error
        partition = self._replicas.get(at)
        error = KafkaError.NOT_LEADER_OR_FOLLOWER if partition is None else partition.check(leader_epoch)
        return (partition if error is KafkaError.NONE else None), error

    def _visible(self, partition: HostedPartition, fetch: FetchRequest | None) -> int:
        """Up to where a follower, a consumer, or a producer who waits, can see."""
        follows = fetch is not None and fetch.replica_id != CONSUMER
        return partition.log.end if follows else partition.high_watermark

    def _records(self, partition: HostedPartition, request: FetchRequest) -> FetchResponse:
        end = min(self._visible(partition, request), request.offset + self._host.settings.fetch_records)
        records = partition.log.read(request.offset, end)
        return FetchResponse(KafkaError.NONE, records, partition.high_watermark, partition.log.end)

    def _has_grown(self, partition: HostedPartition) -> None:
        """Answer the followers that waited for a record."""
        self._answer_those(
            partition,
            lambda each: each.fetch is not None and each.offset < self._visible(partition, each.fetch),
        )

    def _wait(
        self, partition: HostedPartition, offset: int, fetch: FetchRequest | None, answer: Answer, wait_ms: int
    ) -> None:
        """Keep a request, and answer it when its time is over."""
        label = "produce times out" if fetch is None else "fetch times out"
        waiting: list[_DelayedRequest] = self._waiting.setdefault(partition.at, [])
        timer = self._host.after(wait_ms, label, lambda: self._time_out(partition, kept))
        kept = _DelayedRequest(offset, fetch, answer, timer)
        waiting.append(kept)

    def _time_out(self, partition: HostedPartition, kept: _DelayedRequest) -> None:
        waiting = self._waiting.get(partition.at, [])
        if any(each is kept for each in waiting):
            self._waiting[partition.at] = [each for each in waiting if each is not kept]
            if kept.fetch is None:
                kept.answer(ProduceResponse(KafkaError.REQUEST_TIMED_OUT))
            else:
                kept.answer(self._records(partition, kept.fetch))

    def _answer_those(self, partition: HostedPartition, ready: Callable[[_DelayedRequest], bool]) -> None:
        waiting = self._waiting.get(partition.at, [])
        done = [each for each in waiting if ready(each)]
        self._waiting[partition.at] = [each for each in waiting if not any(each is one for one in done)]
        for each in done:
            each.timer.cancel()
            if each.fetch is not None:
                each.answer(self._records(partition, each.fetch))
            elif len(partition.isr) < self._host.settings.min_insync_replicas:
                # It is in the log of all that are in sync, which are too few by now: the producer may try again.
                each.answer(ProduceResponse(KafkaError.NOT_ENOUGH_REPLICAS))
            else:
                each.answer(ProduceResponse(KafkaError.NONE, each.offset))

    def _flush_when_due(self, partition: HostedPartition) -> None:
        due = self._host.settings.flush_records
        if due is not None and partition.log.end - partition.log.recovery_point >= due:
            partition.log.flush()
