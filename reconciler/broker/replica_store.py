"""What handling a control request needs of a store: a ``LogStore`` has it, and so has a rehearsal that changes nothing.

Each method means what it means in :class:`logstore.store.LogStore`, raises what it raises there, and takes full
names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from layout.errors import LayoutError
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import STALE_DELAY, KafkaError, LogStoreError
from logstore.staging import OnCommitted, Staged, StagingOutcome
from logstore.store import Entry, Replica


class ReplicaStore(Protocol):
    """Live replicas by name and by topic ID, what lies staged, and the changes that a request may ask for."""

    @property
    def doubled(self) -> Sequence[Replica]:
        """Replicas of partitions that are live in another log dir too."""

    @property
    def offline(self) -> Mapping[str, str]:
        """Path of each log dir that is offline → why."""

    def entries(self) -> dict[tuple[str, int], Entry]:
        """Every live replica by (topic, partition)."""

    def topic_of(self, topic_id: TopicId) -> str | None:
        """The topic that has this ID here; None: none has."""

    def fence(self, partition: TopicPartition, topic_id: TopicId | None = None) -> KafkaError:
        """What a request for this partition under this topic ID is answered."""

    def staged(self) -> list[Staged]:
        """Everything that lies staged, and every stray."""

    def stage_each(
        self,
        reasons: Mapping[TopicPartition, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        settled: OnCommitted | None = None,
    ) -> StagingOutcome:
        """Stage live replicas, each with its verdict and evidence; ``settled`` is told of them as they are."""

    def stage_copies(self, copies: Mapping[Replica, tuple[str, str]], *, setting: str = STALE_DELAY) -> StagingOutcome:
        """Stage just these of the copies of partitions that are live in several log dirs."""

    def restore(self, staged: Staged, partition: TopicPartition | None = None) -> Replica:
        """Bring a staged or stray replica back."""

    def create_many(
        self, wanted: Mapping[TopicPartition, TopicId | None]
    ) -> dict[TopicPartition, Replica | LogStoreError | LayoutError]:
        """Make empty replicas; for each, the replica, or why it was not made."""

    def assign_topic_ids(
        self, wanted: Mapping[TopicPartition, TopicId]
    ) -> dict[TopicPartition, Replica | LogStoreError]:
        """Write the topic IDs of replicas that have none; for each, the replica, or why it got none."""
