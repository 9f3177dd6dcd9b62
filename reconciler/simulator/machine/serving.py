"""A leader's requests (produce, fetch, list-offsets, epoch-end) and what waits there, and a broker's metadata cache.

Every request is fenced by its topic ID first (KIP516-8): 103 if the replica has another, 100 if no replica has it, 3 if
a request by name alone finds nothing; 56 while the disk is offline. A request without a name asks by ID alone; one with
neither gets 42. Then comes the leader epoch: 74 if the sender's is older, 75 if it is newer, and 6 if this broker does
not lead. Before all of that comes the authorizer, if there is one. Source: FACTS §4.4; DESIGN §4; KIP37-6.

Clients get their metadata from the cache: the newest that controllers sent, by topic, with IDs and modes (KIP516-9,
KIP694-1). An UpdateMetadata request names some partitions and leaves the others as they were. A leader of -2 removes a
partition, and another topic ID removes the whole topic that was known under the name. Source: FACTS §5.4, §8.

With ``delete.topic.partition.enable``, a leader writes only to a partition of which a controller has said, since this
leader was elected, that it is read and written: a new leader may not know yet that the partition is read-only. Any
other write is refused with LEADER_NOT_AVAILABLE (5), after which a producer asks for metadata again. So is a write that
waits for its replicas when the mode comes: nothing is acknowledged from then on. A client whose Metadata requests are
too old for modes gets the same error, and no leader, for each partition that is not both read and written (KIP694-1).
The proposal names this number for the second case, and none for the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError, LogStoreError
from reconciler.broker import Broker
from reconciler.protocol import UpdateMetadataPartition, UpdateMetadataRequest
from reconciler.simulator.kernel import (
    CONSUMER,
    DURING_DELETE,
    METADATA_WITH_MODES,
    Answer,
    EpochEndRequest,
    EpochEndResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    PartitionMode,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
    Timer,
    TopicMetadata,
)
from reconciler.simulator.machine.configs import BrokerConfigs
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.hosted_replicas import HostedReplicas
from reconciler.simulator.machine.partition import NO_LEADER, HostedPartition
from reconciler.simulator.zookeeper import Authorizer
from reconciler.sources.zookeeper import AclOperation


@dataclass(slots=True)
class _DelayedRequest:
    """A request without an answer yet: a produce request until its record is committed, or a fetch until there is one.

    Attributes:
        offset: of a producer's record, or the first that a fetch wants.
        fetch: the fetch; None: it is a produce request.
    """

    offset: int
    fetch: FetchRequest | None
    answer: Answer
    timer: Timer


def refuse_request(
    authorizer: Authorizer | None, request: Request, topic_of: Callable[[TopicId], str | None]
) -> Response | None:
    """Give the answer to a client that may not do what it asks for, 29; None: it may, or is a broker (KIP37-6).

    As in Kafka, this comes before everything else, so that the answer does not say whether there is such a partition.
    A request without a name counts for the topic with its ID; if there is none, there is nothing to refuse.
    """
    if authorizer is None:
        return None
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    operation: AclOperation
    refusal: Response
    match request:
        case ProduceRequest():
            operation, refusal = AclOperation.WRITE, ProduceResponse(refused)
        case FetchRequest(replica_id=replica_id) if replica_id == CONSUMER:
            operation, refusal = AclOperation.READ, FetchResponse(refused)
        case ListOffsetsRequest():
            operation, refusal = AclOperation.DESCRIBE, ListOffsetsResponse(refused)
        case _:
            return None
    topic: str | None = request.partition.topic
    if not topic:
        topic = None if request.topic_id is None else topic_of(request.topic_id)
    return None if topic is None or authorizer.allows(request.principal, operation, topic) else refusal


class LeaderRequests:
    """Answers the requests to the partitions that one broker leads."""

    def __init__(self, host: Host, broker: Broker, replicas: HostedReplicas, configs: BrokerConfigs) -> None:
        """Serve what these replicas lead; the broker fences requests by topic ID."""
        self._host, self._broker, self._replicas, self._configs = host, broker, replicas, configs
        self._waiting: dict[TopicPartition, list[_DelayedRequest]] = {}
        self.caught_up: Callable[[HostedPartition, int], None] = lambda partition, broker: None
        """Called with each fetch of a follower: the in-sync set may grow by it."""
        self.may_write: Callable[[HostedPartition], bool] = lambda partition: True
        """Asked whether producers may write to a partition that this broker leads (KIP694-1)."""

    def produce(self, request: ProduceRequest, answer: Answer) -> None:
        """Append a record, and answer as soon as all in-sync replicas have it; 19 while too few are in sync."""
        partition, error = self._find(request.partition, request.topic_id, -1)
        settings = self._host.settings
        if partition is not None and not self.may_write(partition):
            error = KafkaError.LEADER_NOT_AVAILABLE
        elif partition is not None and self._has_too_few(partition):
            error = KafkaError.NOT_ENOUGH_REPLICAS
        if partition is None or error is not KafkaError.NONE:
            answer(ProduceResponse(error))
            return
        try:
            offset = partition.write(request.value, self._host.timers.now_ms())
            if settings.flush_records is not None:
                self._flush_when_due(partition)
        except LogStoreError as failed:
            self._host.say(f"{partition.at}: {failed}")
            answer(ProduceResponse(failed.kafka_error))
            return
        self._wait(partition, offset, None, answer, settings.request_timeout_ms)
        self._answer_followers(partition)
        self.advance(partition)

    def fetch(self, request: FetchRequest, answer: Answer) -> None:
        """Answer with records; if there are none yet, wait for them for a while."""
        partition, error = self._find(request.partition, request.topic_id, request.leader_epoch)
        if partition is None:
            answer(FetchResponse(error))
            return
        consumes = request.replica_id == CONSUMER
        if not consumes and request.replica_id not in partition.followers:
            answer(FetchResponse(KafkaError.NOT_LEADER_OR_FOLLOWER))
            return
        log = partition.log
        if not log.start <= request.offset <= log.end:
            answer(FetchResponse(KafkaError.OFFSET_OUT_OF_RANGE, (), partition.high_watermark, log.end, log.start))
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
        """Answer with the first offset of a partition and its high watermark."""
        partition, error = self._find(request.partition, request.topic_id, -1)
        start, watermark = (0, 0) if partition is None else (partition.log.start, partition.high_watermark)
        answer(ListOffsetsResponse(error, start, watermark))

    def epoch_end(self, request: EpochEndRequest, answer: Answer) -> None:
        """Answer with the end of an epoch in the leader's log (KIP-101)."""
        partition, error = self._find(request.partition, request.topic_id, request.leader_epoch)
        if partition is None:
            answer(EpochEndResponse(error))
        else:
            answer(EpochEndResponse(error, *partition.log.epochs.end_of(request.of_epoch, partition.log.end)))

    def advance(self, partition: HostedPartition) -> None:
        """Raise the high watermark as far as possible, and answer the requests that waited for that."""
        if partition.advance():
            self._answer_ready(partition, lambda each: each.offset < self._visible(partition, each.fetch))

    def refuse_writes(self) -> None:
        """Answer the producers that wait at a partition to which nobody may write any more (KIP694-1)."""
        for at, waiting in self._waiting.items():
            writes = [each for each in waiting if each.fetch is None]
            partition = self._replicas.get(at) if writes else None
            if partition is not None and not self.may_write(partition):
                self._waiting[at] = [each for each in waiting if each.fetch is not None]
                for each in writes:
                    each.timer.cancel()
                    each.answer(ProduceResponse(KafkaError.LEADER_NOT_AVAILABLE))

    def ended(self, partition: HostedPartition) -> None:
        """Answer the requests that wait: this broker does not lead the partition any more."""
        offline = self._broker.fence(partition.at) is KafkaError.KAFKA_STORAGE_ERROR
        error = KafkaError.KAFKA_STORAGE_ERROR if offline else KafkaError.NOT_LEADER_OR_FOLLOWER
        for each in self._waiting.pop(partition.at, []):
            each.timer.cancel()
            each.answer(ProduceResponse(error) if each.fetch is None else FetchResponse(error))

    def _has_too_few(self, partition: HostedPartition) -> bool:
        """Whether fewer replicas are in sync than ``min.insync.replicas``, as it is now, demands."""
        return len(partition.isr) < self._configs.min_insync_replicas(partition.at.topic)

    def _find(
        self, at: TopicPartition, topic_id: TopicId | None, leader_epoch: int
    ) -> tuple[HostedPartition | None, KafkaError]:
        """Find the partition that a request may ask; otherwise the error to answer."""
        if not at.topic:
            given = None if topic_id is None or topic_id.is_zero else topic_id
            topic = None if given is None else self._broker.store.topic_of(given)
            if topic is None:
                return None, KafkaError.INVALID_REQUEST if given is None else KafkaError.UNKNOWN_TOPIC_ID
            at = TopicPartition(topic, at.partition)
        error = self._broker.fence(at, topic_id)
        if error is not KafkaError.NONE:
            return None, error
        partition = self._replicas.get(at)
        error = KafkaError.NOT_LEADER_OR_FOLLOWER if partition is None else partition.check(leader_epoch)
        return (partition if error is KafkaError.NONE else None), error

    def _visible(self, partition: HostedPartition, fetch: FetchRequest | None) -> int:
        """The offset up to which a follower, a consumer, or a waiting producer can see records."""
        follows = fetch is not None and fetch.replica_id != CONSUMER
        return partition.log.end if follows else partition.high_watermark

    def _records(self, partition: HostedPartition, request: FetchRequest) -> FetchResponse:
        end = min(self._visible(partition, request), request.offset + self._host.settings.fetch_records)
        log = partition.log
        if request.offset < log.start:  # what it waited for was deleted meanwhile
            return FetchResponse(KafkaError.OFFSET_OUT_OF_RANGE, (), partition.high_watermark, log.end, log.start)
        records = log.read(request.offset, end)
        return FetchResponse(KafkaError.NONE, records, partition.high_watermark, log.end, log.start)

    def _answer_followers(self, partition: HostedPartition) -> None:
        """Answer the followers that wait for a record."""
        self._answer_ready(
            partition,
            lambda each: each.fetch is not None and each.offset < self._visible(partition, each.fetch),
        )

    def _wait(
        self, partition: HostedPartition, offset: int, fetch: FetchRequest | None, answer: Answer, wait_ms: int
    ) -> None:
        """Keep a request; it is answered when its time is over, if not before."""
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

    def _answer_ready(self, partition: HostedPartition, ready: Callable[[_DelayedRequest], bool]) -> None:
        waiting = self._waiting.get(partition.at, [])
        done = [each for each in waiting if ready(each)]
        self._waiting[partition.at] = [each for each in waiting if not any(each is one for one in done)]
        for each in done:
            each.timer.cancel()
            if each.fetch is not None:
                each.answer(self._records(partition, each.fetch))
            elif self._has_too_few(partition):
                # All in-sync replicas have the record, but they are too few by now: the producer may try again.
                each.answer(ProduceResponse(KafkaError.NOT_ENOUGH_REPLICAS))
            else:
                each.answer(ProduceResponse(KafkaError.NONE, each.offset))

    def _flush_when_due(self, partition: HostedPartition) -> None:
        due = self._host.settings.flush_records
        if due is not None and partition.log.end - partition.log.recovery_point >= due:
            partition.log.flush()


class MetadataCache:
    """Topics, live brokers and the controller, as of the last UpdateMetadata request."""

    def __init__(self, *, restricts: bool = False) -> None:
        """Make an empty cache; ``restricts``: modes restrict what leaders write and what older clients get."""
        self._restricts = restricts
        self._ids: dict[str, TopicId | None] = {}
        self._partitions: dict[str, dict[int, PartitionMetadata]] = {}
        self.live_brokers: tuple[LiveBroker, ...] = ()
        self.controller_id = -1

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take over the metadata of a controller's request."""
        self.live_brokers = tuple(
            LiveBroker(each.broker_id, end_point.host, end_point.port)
            for each in request.live_brokers
            for end_point in each.endpoints[:1]
        )
        self.controller_id = request.controller_id
        for topic in request.topics:
            if self._ids.get(topic.topic) != topic.topic_id:
                self._partitions.pop(topic.topic, None)
            self._ids[topic.topic] = topic.topic_id
            known = self._partitions.setdefault(topic.topic, {})
            for each in topic.partitions:
                known.pop(each.partition, None)
                if each.leader != DURING_DELETE:
                    known[each.partition] = _for_clients(each)
            if not known:
                del self._partitions[topic.topic], self._ids[topic.topic]

    def may_write(self, partition: HostedPartition) -> bool:
        """Whether producers may write to a partition, by what was said of it since its leader was elected."""
        if not self._restricts:
            return True
        known = self._partitions.get(partition.at.topic, {}).get(partition.at.partition)
        if known is None or known.leader_epoch < partition.leader_epoch:
            return False
        topic_id = self._ids[partition.at.topic]
        same_topic = topic_id is None or partition.topic_id in (None, topic_id)
        return same_topic and known.mode is PartitionMode.READ_WRITE

    def answer(self, request: MetadataRequest, authorizer: Authorizer | None = None) -> MetadataResponse:
        """Answer a client's request, in the version that it has; with all topics if it names none.

        A topic that the principal may not describe is left out where all are asked for, and answered with 29 where it
        is named, also if there is no such topic (KIP37-6).
        """
        wanted = request.topics or tuple(sorted(self._partitions))
        describe = AclOperation.DESCRIBE
        hidden = (
            ()
            if authorizer is None
            else tuple(topic for topic in wanted if not authorizer.allows(request.principal, describe, topic))
        )
        shown = [topic for topic in wanted if topic not in hidden]
        unknown = tuple(topic for topic in shown if topic not in self._partitions)
        found = tuple(self._topic(topic, request.version) for topic in shown if topic in self._partitions)
        refused = hidden if request.topics else ()
        return MetadataResponse(found, self.live_brokers, self.controller_id, unknown, refused)

    def _topic(self, topic: str, version: int) -> TopicMetadata:
        partitions = tuple(each for _, each in sorted(self._partitions[topic].items()))
        if version < METADATA_WITH_MODES:
            partitions = tuple(map(self._without_mode, partitions))
        return TopicMetadata(topic, self._ids[topic], partitions)

    def _without_mode(self, known: PartitionMetadata) -> PartitionMetadata:
        """A partition as a client that knows no modes may have it."""
        plain = replace(known, mode=PartitionMode.READ_WRITE)
        if known.mode is PartitionMode.READ_WRITE or not self._restricts:
            return plain
        return replace(plain, leader=NO_LEADER, error=KafkaError.LEADER_NOT_AVAILABLE)


def _for_clients(each: UpdateMetadataPartition) -> PartitionMetadata:
    mode = PartitionMode(each.mode)
    return PartitionMetadata(
        each.partition, each.leader, each.leader_epoch, each.isr, each.replicas, each.offline, mode
    )
