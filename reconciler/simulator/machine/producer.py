"""A client that writes records, each with a value of its own, and remembers which of them it was promised.

It sends by topic ID to the leader that it knows of, passes over partitions that may not be written to (KIP694-1), and
asks for metadata again after every error. A record that failed is not sent again: nobody knows whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.kernel import (
    Network,
    PartitionMetadata,
    PartitionMode,
    ProduceRequest,
    ProduceResponse,
    Response,
    broker_endpoint,
)
from reconciler.simulator.machine.client_metadata import ClientMetadata


@dataclass(frozen=True, slots=True)
class AcknowledgedRecord:
    """A record that must be there from now on, for as long as its topic is."""

    partition: TopicPartition
    topic_id: TopicId | None
    offset: int
    value: str


class Producer:
    """One producer.

    Attributes:
        acknowledged: in the order in which the answers came.
        unsure: values that were sent and of which nobody knows; by the answer, or that there was none.
    """

    def __init__(self, endpoint: str, metadata: ClientMetadata, network: Network, random: Random) -> None:
        """Write nothing yet.

        Args:
            endpoint: where it sits, for example ``client-1``; goes into its values too.
            metadata: what it knows of topics.
            network: by which it sends.
            random: chooses partitions.
        """
        self.acknowledged: list[AcknowledgedRecord] = []
        self.unsure: dict[str, str] = {}
        self.told: Callable[[AcknowledgedRecord], None] = lambda record: None
        self._endpoint, self._metadata, self._network, self._random = endpoint, metadata, network, random
        self._sent = 0

    def send(self, topic: str) -> str | None:
        """Write one record to any partition that takes one; gives its value, None where there is no such partition."""
        takes = [each for each in self._metadata.partitions(topic) if _takes_records(each)]
        if not takes:
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
            ProduceRequest(at, topic_id, value),
            lambda response: self._answered(at, topic_id, value, response),
        )
        return value

    def _answered(self, at: TopicPartition, topic_id: TopicId | None, value: str, response: Response | None) -> None:
        if isinstance(response, ProduceResponse) and response.error is KafkaError.NONE:
            del self.unsure[value]
            record = AcknowledgedRecord(at, topic_id, response.offset, value)
            self.acknowledged.append(record)
            self.told(record)
            return
        self.unsure[value] = response.error.name if isinstance(response, ProduceResponse) else "no answer"
        self._metadata.refresh()


def _takes_records(partition: PartitionMetadata) -> bool:
    return partition.leader >= 0 and partition.mode is PartitionMode.READ_WRITE
