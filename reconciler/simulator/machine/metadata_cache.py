"""What a broker may tell clients: what the controller told it last, by topic, with IDs and modes (KIP516-9, KIP694-1).

An UpdateMetadata request names some partitions and leaves the others as they were; a leader of -2 takes a partition
out, and another topic ID the whole topic that was known under the name. Source: FACTS §5.4, §8.
"""

from __future__ import annotations

from layout.ids import TopicId
from reconciler.simulator.kernel import (
    DURING_DELETE,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    UpdateMetadataRequest,
)


class MetadataCache:
    """Topics, brokers and the controller, as of the last request."""

    def __init__(self) -> None:
        """Know nothing."""
        self._ids: dict[str, TopicId | None] = {}
        self._partitions: dict[str, dict[int, PartitionMetadata]] = {}
        self.live_brokers: tuple[int, ...] = ()
        self.controller_id = -1

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take over what a controller says."""
        self.live_brokers, self.controller_id = request.live_brokers, request.controller_id
        for topic in request.topics:
            if self._ids.get(topic.topic) != topic.topic_id:
                self._partitions.pop(topic.topic, None)
            self._ids[topic.topic] = topic.topic_id
            known = self._partitions.setdefault(topic.topic, {})
            for each in topic.partitions:
                known.pop(each.partition, None)
                if each.leader != DURING_DELETE:
                    known[each.partition] = each
            if not known:
                del self._partitions[topic.topic], self._ids[topic.topic]

    def answer(self, request: MetadataRequest) -> MetadataResponse:
        """What a client asked for; all topics where it names none."""
        wanted = request.topics or tuple(sorted(self._partitions))
        unknown = tuple(topic for topic in wanted if topic not in self._partitions)
        found = tuple(self._topic(topic) for topic in wanted if topic in self._partitions)
        return MetadataResponse(found, self.live_brokers, self.controller_id, unknown)

    def _topic(self, topic: str) -> TopicMetadata:
        known = self._partitions[topic]
        return TopicMetadata(topic, self._ids[topic], tuple(known[number] for number in sorted(known)))
