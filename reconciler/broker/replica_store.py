"""The store interface that control requests need: ``LogStore`` has it, and so has the store of a dry run.

Each method means the same and raises the same errors as in :class:`logstore.store.LogStore`, and takes full names.
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
    """Live replicas by name and by topic ID, staged replicas, and the changes that a request may ask for."""

    @property
    def duplicates(self) -> Sequence[Replica]:
        """Replicas of partitions that are live in another log dir too."""

    @property
    def offline(self) -> Mapping[str, str]:
        """Path of each offline log dir → why."""

    def entries(self) -> dict[tuple[str, int], Entry]:
        """Return every live replica by topic and partition."""

    def topic_of(self, topic_id: TopicId) -> str | None:
        """Return the topic with this ID here; None: there is none."""

    def fence(self, partition: TopicPartition, topic_id: TopicId | None = None) -> KafkaError:
        """Return the answer to a request for this partition under this topic ID."""

    def staged(self) -> list[Staged]:
        """Return every staged replica and every stray."""

    def stage_each(
        self,
        reasons: Mapping[TopicPartition, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        on_committed: OnCommitted | None = None,
    ) -> StagingOutcome:
        """Stage live replicas, each with its verdict and evidence; ``on_committed`` is called with each batch."""

    def stage_copies(self, copies: Mapping[Replica, tuple[str, str]], *, setting: str = STALE_DELAY) -> StagingOutcome:
        """Stage the given copies of partitions that are live in several log dirs."""

    def restore(self, staged: Staged, partition: TopicPartition | None = None) -> Replica:
        """Restore a staged or stray replica."""

    def create_many(
        self, wanted: Mapping[TopicPartition, TopicId | None]
    ) -> dict[TopicPartition, Replica | LogStoreError | LayoutError]:
        """Create empty replicas; return for each the replica, or the error."""

    def assign_topic_ids(
        self, wanted: Mapping[TopicPartition, TopicId]
    ) -> dict[TopicPartition, Replica | LogStoreError]:
        """Write the topic IDs of replicas that have none; return for each the replica, or the error."""
