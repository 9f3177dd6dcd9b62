"""What a client knows of topics, and how it finds out more: it asks one broker after the other (KIP516-9).

A client believes in the topic ID of the answer that it had last. An older one may still come, from a broker that was
told less, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout.ids import TopicId
from reconciler.simulator.kernel import (
    MetadataRequest,
    MetadataResponse,
    Network,
    PartitionMetadata,
    Response,
    Timers,
    TopicMetadata,
    broker_endpoint,
)

_BACKOFF_MS = 500


class ClientMetadata:
    """Topics as a client believes that they are.

    Attributes:
        topics: by name; one that the last broker did not know is not there.
    """

    def __init__(self, endpoint: str, brokers: Sequence[int], network: Network, timers: Timers) -> None:
        """Know nothing yet.

        Args:
            endpoint: the client's.
            brokers: whom it may ask, in turn.
            network: by which.
            timers: of the client's machine.
        """
        self.topics: dict[str, TopicMetadata] = {}
        self._endpoint, self._brokers, self._network, self._timers = endpoint, tuple(brokers), network, timers
        self._turn = 0
        self._asking = False
        self._then: list[Callable[[], None]] = []

    def topic_id(self, topic: str) -> TopicId | None:
        """The ID of a topic; None: it has none, or is not known."""
        known = self.topics.get(topic)
        return None if known is None else known.topic_id

    def partitions(self, topic: str) -> tuple[PartitionMetadata, ...]:
        """The partitions of a topic; none where it is not known."""
        known = self.topics.get(topic)
        return () if known is None else known.partitions

    def refresh(self, then: Callable[[], None] | None = None) -> None:
        """Ask for all topics again, until a broker answers; one request at a time.

        Args:
            then: what to do when the answer came.
        """
        if then is not None:
            self._then.append(then)
        if not self._asking:
            self._asking = True
            self._ask()

    def _ask(self) -> None:
        broker = self._brokers[self._turn % len(self._brokers)]
        self._turn += 1
        self._network.call(self._endpoint, broker_endpoint(broker), MetadataRequest(), self._answered)

    def _answered(self, response: Response | None) -> None:
        if not isinstance(response, MetadataResponse):
            self._timers.after(_BACKOFF_MS, "ask for metadata again", self._ask)
            return
        self._asking = False
        self.topics = {topic.topic: topic for topic in response.topics}
        then, self._then = self._then, []
        for each in then:
            each()
