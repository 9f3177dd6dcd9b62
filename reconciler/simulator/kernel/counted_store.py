"""A store that counts what is done with it: each public operation of the engine, and each error that it raises.

The counts belong to the history of a run, and say at the end of a soak what the simulator plays of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from layout.errors import LayoutError
from layout.ids import DirectoryId, TopicId
from layout.topic import TopicPartition
from logstore import STALE_DELAY, LogStoreError
from logstore.fs import Progress
from logstore.purge import Purged
from logstore.staging import OnCommitted, Staged, StagingOutcome
from logstore.store import LogStore, Replica


class CountedStore(LogStore):
    """A store whose operations are counted.

    Attributes:
        reach: called with each operation by name and the number of replicas that it was done to, and with each error.
    """

    reach: Callable[[str, int], None] = staticmethod(lambda what, times: None)

    def create_many(
        self, wanted: Mapping[TopicPartition, TopicId | None]
    ) -> dict[TopicPartition, Replica | LogStoreError | LayoutError]:
        """As the engine does."""
        with self._counted("create"):
            made = super().create_many(wanted)
        self.reach("operation create", sum(isinstance(each, Replica) for each in made.values()))
        for each in made.values():
            if isinstance(each, Exception):
                self.reach(f"error create {type(each).__name__}", 1)
        return made

    def assign_topic_ids(
        self, wanted: Mapping[TopicPartition, TopicId]
    ) -> dict[TopicPartition, Replica | LogStoreError]:
        """As the engine does."""
        with self._counted("write_topic_id"):
            given = super().assign_topic_ids(wanted)
        self.reach("operation write_topic_id", sum(isinstance(each, Replica) for each in given.values()))
        return given

    def stage_each(
        self,
        reasons: Mapping[TopicPartition, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        on_committed: OnCommitted | None = None,
    ) -> StagingOutcome:
        """As the engine does."""
        with self._counted("stage"):
            outcome = super().stage_each(reasons, setting=setting, on_committed=on_committed)
        self._staged(outcome)
        return outcome

    def stage_copies(
        self,
        copies: Mapping[Replica, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        on_committed: OnCommitted | None = None,
    ) -> StagingOutcome:
        """As the engine does."""
        with self._counted("stage_copy"):
            outcome = super().stage_copies(copies, setting=setting, on_committed=on_committed)
        self.reach("operation stage_copy", len(outcome.staged))
        return outcome

    def restore(
        self, staged: Staged, partition: TopicPartition | None = None, topic_id: TopicId | None = None
    ) -> Replica:
        """As the engine does."""
        with self._counted("restore"):
            back = super().restore(staged, partition, topic_id)
        self.reach("operation restore", 1)
        return back

    def move(
        self, partition: TopicPartition, directory_id: DirectoryId, *, progress: Progress | None = None
    ) -> Replica:
        """As the engine does."""
        with self._counted("move"):
            moved = super().move(partition, directory_id, progress=progress)
        self.reach("operation move", 1)
        return moved

    def purge_step(self) -> Purged | None:
        """As the engine does."""
        with self._counted("purge"):
            gone = super().purge_step()
        self.reach("operation purge", int(gone is not None))
        return gone

    def _staged(self, outcome: StagingOutcome) -> None:
        self.reach("operation stage", len(outcome.staged))
        self.reach("operation stage_refused", len(outcome.refused))
        if len(outcome.staged) > _MANY:
            self.reach("operation stage_batch", 1)

    @contextmanager
    def _counted(self, operation: str) -> Iterator[None]:
        """Count the error that an operation raises."""
        try:
            yield
        except LogStoreError as error:
            self.reach(f"error {operation} {type(error).__name__}", 1)
            raise


_MANY = 20
"""A staging of more replicas than this counts as a batch."""
