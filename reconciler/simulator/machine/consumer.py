"""A client that reads topics from their beginning, and remembers what it saw under which topic ID.

It passes over partitions that nobody may use (KIP694-1). Where a topic has another ID than before, it is another topic:
reading begins anew, and what was seen under the earlier ID stays remembered under that (KIP516-8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.kernel import (
    CONSUMER,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    Network,
    PartitionMetadata,
    PartitionMode,
    Record,
    Request,
    Response,
    broker_endpoint,
)
from reconciler.simulator.machine.client_metadata import ClientMetadata

BelievedPartition: TypeAlias = tuple[TopicPartition, TopicId | None]
"""A partition, of the topic that had this ID when it was asked for."""


class Consumer:
    """One consumer.

    Attributes:
        seen: each partition, under the topic ID that was believed in, with its records in the order of their offsets.
        told: called for every record that is seen.
    """

    def __init__(self, endpoint: str, metadata: ClientMetadata, network: Network, *, by_name: bool = False) -> None:
        """Read nothing yet.

        Args:
            endpoint: where it sits.
            metadata: what it knows of topics.
            network: by which it asks.
            by_name: ask without topic IDs, as clients before KIP-516 do.
        """
        self.seen: dict[BelievedPartition, list[Record]] = {}
        self.told: Callable[[BelievedPartition, Record], None] = lambda believed, record: None
        self._endpoint, self._metadata, self._network, self._by_name = endpoint, metadata, network, by_name
        self._next: dict[BelievedPartition, int] = {}
        self._asking: set[BelievedPartition] = set()

    def poll(self, topics: Iterable[str]) -> int:
        """Ask for what comes next in these topics; gives how many requests that took.

        A partition whose last request was not answered yet is left out.
        """
        asked = 0
        for topic in topics:
            topic_id = self._metadata.topic_id(topic)
            readable = [each for each in self._metadata.partitions(topic) if _gives_records(each)]
            for each in readable:
                believed = (TopicPartition(topic, each.partition), topic_id)
                if believed not in self._asking:
                    asked += 1
                    self._ask(believed, each.leader)
            if not readable:
                self._metadata.refresh()
        return asked

    def _ask(self, believed: BelievedPartition, leader: int) -> None:
        at, topic_id = believed[0], None if self._by_name else believed[1]
        request: Request
        if believed in self._next:
            request = FetchRequest(CONSUMER, at, topic_id, -1, self._next[believed])
        else:
            request = ListOffsetsRequest(at, topic_id)
        self._asking.add(believed)
        endpoint = broker_endpoint(leader)
        self._network.call(self._endpoint, endpoint, request, lambda response: self._answered(believed, response))

    def _answered(self, believed: BelievedPartition, response: Response | None) -> None:
        self._asking.discard(believed)
        if isinstance(response, ListOffsetsResponse) and response.error is KafkaError.NONE:
            self._next[believed] = response.start
        elif isinstance(response, FetchResponse) and response.error is KafkaError.NONE:
            for record in response.records:
                self.seen.setdefault(believed, []).append(record)
                self._next[believed] = record.offset + 1
                self.told(believed, record)
        else:
            if isinstance(response, FetchResponse) and response.error is KafkaError.OFFSET_OUT_OF_RANGE:
                # The log is shorter than it was, so where to go on has to be asked for again.
                self._next.pop(believed, None)
            self._metadata.refresh()


def _gives_records(partition: PartitionMetadata) -> bool:
    return partition.leader >= 0 and partition.mode is not PartitionMode.NONE
