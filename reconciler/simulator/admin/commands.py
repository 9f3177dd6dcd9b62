"""Instructions and outcomes of the administrator's commands, as values (KIP4-1..3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.errors import ReconcilerError
from reconciler.simulator.kernel import PartitionMetadata

NOT_GIVEN = -1
"""A number that is not given."""

ANYBODY = "User:ANONYMOUS"
"""Who asks, when nobody says who."""


class CommandRefusedError(ReconcilerError):
    """One instruction cannot be carried out; nothing was changed. ``error`` is Kafka's number for it."""

    def __init__(self, error: KafkaError, message: str) -> None:
        """Keep the number beside the sentence."""
        super().__init__(message)
        self.error = error


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """What became of one instruction; NONE: it was written down, and is being carried out."""

    error: KafkaError = KafkaError.NONE
    message: str = ""


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A new topic, by counts or by an assignment; with an assignment the counts are not looked at, as KIP-4 says."""

    topic: str
    partitions: int = NOT_GIVEN
    factor: int = NOT_GIVEN
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Broker IDs of each partition, 0, 1, 2 …; empty: absent."""
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlterTopic:
    """One change of a topic: more partitions, another factor, other replicas, or other configs."""

    topic: str
    partitions: int = NOT_GIVEN
    """How many there shall be; only more than there are."""
    factor: int = NOT_GIVEN
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """With ``partitions``, the replicas of the new ones; alone, new replicas of those that there are."""
    configs: Mapping[str, str] = field(default_factory=dict)
    deleted_configs: Sequence[str] = ()

    def changes(self) -> list[str]:
        """What it changes, in words."""
        found = []
        if self.partitions != NOT_GIVEN:
            found.append("partitions")
        if self.factor != NOT_GIVEN:
            found.append("replication factor")
        if self.assignment and self.partitions == NOT_GIVEN:
            found.append("replica assignment")
        if self.configs or self.deleted_configs:
            found.append("configs")
        return found


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """What a broker knows of a topic: from the controller's last UpdateMetadata, and its configs."""

    topic: str
    error: KafkaError
    topic_id: TopicId | None = None
    partitions: tuple[PartitionMetadata, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    """The topic's own; what it inherits is not told."""
