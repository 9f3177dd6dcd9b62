"""The clients of a simulated cluster: a producer that remembers acknowledgements, a consumer that remembers records.

Both find topics and leaders by metadata, for which they ask one broker after the other (KIP516-9), and ask for it again
after every error. A client of an older release asks with an older version of Metadata, which has no modes (KIP694-1). A
client believes the topic ID of the last answer. A later answer may have an older ID, as in Kafka, because it comes from
a broker with older metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.kernel import (
    ANONYMOUS,
    CONSUMER,
    METADATA_WITH_MODES,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    Network,
    PartitionMetadata,
    PartitionMode,
    ProduceRequest,
    ProduceResponse,
    Record,
    Request,
    Response,
    Timers,
    TopicMetadata,
    broker_endpoint,
)

_BACKOFF_MS = 500


class ClientMetadata:
    """Topics as a client believes them to be.

    Attributes:
        topics: by name, as the last broker that answered knew them.
        principal: in whose name the client asks.
        unauthorized: the topics that the last broker that answered would not describe to it (KIP37-6).
    """

    def __init__(
        self,
        endpoint: str,
        brokers: Sequence[int],
        network: Network,
        timers: Timers,
        *,
        principal: str = ANONYMOUS,
        by_name: bool = False,
        version: int = METADATA_WITH_MODES,
    ) -> None:
        """Begin without any metadata; the brokers are asked in turn, in this version of Metadata.

        ``by_name``: ask for the topics that somebody wants, and not for all, so that a refusal names the topic.
        """
        self.topics: dict[str, TopicMetadata] = {}
        self.principal, self._version, self.unauthorized = principal, version, frozenset[str]()
        self._wanted: dict[str, None] | None = {} if by_name else None
        self._endpoint, self._brokers, self._network, self._timers = endpoint, tuple(brokers), network, timers
        self._turn = 0
        self._asking = False
        self._then: list[Callable[[], None]] = []

    def topic_id(self, topic: str) -> TopicId | None:
        """The ID of a topic; None: it has no ID, or is not known."""
        known = self.topics.get(topic)
        return None if known is None else known.topic_id

    def partitions(self, topic: str) -> tuple[PartitionMetadata, ...]:
        """The partitions of a topic; none if it is not known."""
        if self._wanted is not None:
            self._wanted[topic] = None
        known = self.topics.get(topic)
        return () if known is None else known.partitions

    def refresh(self, then: Callable[[], None] | None = None) -> None:
        """Ask for the topics again, until a broker answers, and then call ``then``; one request at a time."""
        if then is not None:
            self._then.append(then)
        if not self._asking:
            self._asking = True
            self._ask()

    def _ask(self) -> None:
        broker = self._brokers[self._turn % len(self._brokers)]
        self._turn += 1
        request = MetadataRequest(tuple(self._wanted or ()), self.principal, self._version)
        self._network.call(self._endpoint, broker_endpoint(broker), request, self._answered)

    def _answered(self, response: Response | None) -> None:
        if not isinstance(response, MetadataResponse):
            self._timers.after(_BACKOFF_MS, "ask for metadata again", self._ask)
            return
        self._asking = False
        self.topics = {topic.topic: topic for topic in response.topics}
        self.unauthorized = frozenset(response.unauthorized)
        then, self._then = self._then, []
        for each in then:
            each()


@dataclass(frozen=True, slots=True)
class AcknowledgedRecord:
    """A record that must be readable from now on, as long as its topic exists."""

    partition: TopicPartition
    topic_id: TopicId | None
    offset: int
    value: str


class Producer:
    """Writes records, each with a value of its own, by topic ID to the leader that it knows.

    It skips partitions that may not be written to (KIP694-1). A record that failed is not sent again, because the
    producer cannot know whether it was written.

    Attributes:
        acknowledged: in the order in which the answers came.
        unsure: value → error or "no answer", of each record that may have been written or not.
        unauthorized: the topics that a broker would not let it write to, or describe, at its last try.
        on_acknowledged: called with each record that is acknowledged.
    """

    def __init__(self, endpoint: str, metadata: ClientMetadata, network: Network, random: Random) -> None:
        """Make a producer; its values begin with its endpoint, for example ``client-1``."""
        self.acknowledged: list[AcknowledgedRecord] = []
        self.unsure: dict[str, str] = {}
        self.unauthorized: set[str] = set()
        self.on_acknowledged: Callable[[AcknowledgedRecord], None] = lambda record: None
        self._endpoint, self._metadata, self._network, self._random = endpoint, metadata, network, random
        self._sent = 0

    def send(self, topic: str) -> str | None:
        """Write one record to any writable partition, and return its value; None: there is no such partition."""
        partitions = self._metadata.partitions(topic)
        takes = [each for each in partitions if each.leader >= 0 and each.mode is PartitionMode.READ_WRITE]
        if not takes:
            self.unauthorized |= self._metadata.unauthorized & {topic}
            self._metadata.refresh()
            return None
        chosen = self._random.choice(takes)
        at, topic_id = TopicPartition(topic, chosen.partition), self._metadata.topic_id(topic)
        value = f"{self._endpoint} {self._sent}"
        self._sent += 1
        self.unsure[value] = "on its way"
        self._network.call(
            self._endpoint,
            broker_endpoint(chosen.leader),
            ProduceRequest(at, topic_id, value, self._metadata.principal),
            lambda response: self._answered(at, topic_id, value, response),
        )
        return value

    def _answered(self, at: TopicPartition, topic_id: TopicId | None, value: str, response: Response | None) -> None:
        if isinstance(response, ProduceResponse) and response.error is KafkaError.NONE:
            del self.unsure[value]
            self.unauthorized.discard(at.topic)
            record = AcknowledgedRecord(at, topic_id, response.offset, value)
            self.acknowledged.append(record)
            self.on_acknowledged(record)
            return
        error = response.error if isinstance(response, ProduceResponse) else None
        if error is KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self.unauthorized.add(at.topic)
        self.unsure[value] = "no answer" if error is None else error.name
        self._metadata.refresh()


BelievedPartition: TypeAlias = tuple[TopicPartition, TopicId | None]
"""A partition, and the topic ID that the client believed when it asked."""


class Consumer:
    """Reads topics from their beginning.

    It skips partitions that may not be read (KIP694-1). A topic with another ID than before is another topic: reading
    begins anew, and the records of the earlier ID stay remembered under that ID (KIP516-8).

    Attributes:
        seen: each partition, under the topic ID that was believed, with its records in the order of their offsets.
        unauthorized: the topics that a broker would not let it read, or describe, at its last try.
        on_record: called with every record that is read.
    """

    def __init__(self, endpoint: str, metadata: ClientMetadata, network: Network, *, by_name: bool = False) -> None:
        """Make a consumer; ``by_name``: it asks without topic IDs, as clients before KIP-516 do."""
        self.seen: dict[BelievedPartition, list[Record]] = {}
        self.unauthorized: set[str] = set()
        self.on_record: Callable[[BelievedPartition, Record], None] = lambda believed, record: None
        self._endpoint, self._metadata, self._network, self._by_name = endpoint, metadata, network, by_name
        self._next: dict[BelievedPartition, int] = {}
        self._asking: set[BelievedPartition] = set()

    def poll(self, topics: Iterable[str]) -> int:
        """Ask for the next records of these topics, and return the number of requests sent.

        A partition whose last request has no answer yet is skipped.
        """
        asked = 0
        for topic in topics:
            topic_id = self._metadata.topic_id(topic)
            partitions = self._metadata.partitions(topic)
            readable = [each for each in partitions if each.leader >= 0 and each.mode is not PartitionMode.NONE]
            for each in readable:
                believed = (TopicPartition(topic, each.partition), topic_id)
                if believed not in self._asking:
                    asked += 1
                    self._ask(believed, each.leader)
            if not readable:
                self.unauthorized |= self._metadata.unauthorized & {topic}
                self._metadata.refresh()
        return asked

    def _ask(self, believed: BelievedPartition, leader: int) -> None:
        at, topic_id = believed[0], None if self._by_name else believed[1]
        request: Request
        if believed in self._next:
            request = FetchRequest(CONSUMER, at, topic_id, -1, self._next[believed], principal=self._metadata.principal)
        else:
            request = ListOffsetsRequest(at, topic_id, self._metadata.principal)
        self._asking.add(believed)
        endpoint = broker_endpoint(leader)
        self._network.call(self._endpoint, endpoint, request, lambda response: self._answered(believed, response))

    def _answered(self, believed: BelievedPartition, response: Response | None) -> None:
        self._asking.discard(believed)
        if isinstance(response, ListOffsetsResponse) and response.error is KafkaError.NONE:
            self._next[believed] = response.start
        elif isinstance(response, FetchResponse) and response.error is KafkaError.NONE:
            self.unauthorized.discard(believed[0].topic)
            for record in response.records:
                self.seen.setdefault(believed, []).append(record)
                self._next[believed] = record.offset + 1
                self.on_record(believed, record)
        else:
            if isinstance(response, FetchResponse) and response.error is KafkaError.OFFSET_OUT_OF_RANGE:
                # The log is shorter than it was, so the consumer asks again where it begins.
                self._next.pop(believed, None)
            refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
            if isinstance(response, (FetchResponse, ListOffsetsResponse)) and response.error is refused:
                self.unauthorized.add(believed[0].topic)
            self._metadata.refresh()
