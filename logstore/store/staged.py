"""Stage and restore the replicas of a store: single replicas, copies of duplicates, strays.

``logstore.staging`` does the work on one log dir; the store chooses the log dir and keeps its index up to date.
Source: DESIGN §5; KIP516-6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.arguments import check_argument, check_each
from logstore.errors import InvalidArgumentError, NameTakenError, OfflineLogDirError
from logstore.purge import Purger
from logstore.scan import VanishedError, read_topic_id
from logstore.settings import DEFAULTS, STALE_DELAY
from logstore.staging import (
    Candidate,
    OnCommitted,
    Refused,
    Restored,
    Staged,
    StagingOutcome,
    list_staged,
    placements,
    restore,
    stage,
)
from logstore.store.index import Replica
from logstore.store.open import OpenStore


class StagingStore(OpenStore):
    """An open store that stages and restores; :class:`LogStore` adds the other changes."""

    _purger: Purger | None = None

    def stage(
        self, partitions: Iterable[TopicPartition], verdict: str, evidence: str, *, setting: str = STALE_DELAY
    ) -> StagingOutcome:
        """Stage live replicas; each can be restored until its delay is over and a purge deletes it (KIP516-6).

        Args:
            partitions: by full name. A partition is refused, and the others are staged, when it is not live, its log
                dir is offline, or a full disk has no room for its name in the staging root.
            verdict: why, as the comparison calls it.
            evidence: the sentence that goes with the verdict.
            setting: name of the delay: ``delete.stale.topic.delay.ms`` or ``file.delete.delay.ms``.

        Raises:
            InvalidArgumentError: what was given are no partitions, or no texts.
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses. Batches staged before that
                stay staged; the index says which.
        """
        given = list(partitions) if isinstance(partitions, Iterable) else partitions
        check_each("partitions", given, TopicPartition, InvalidArgumentError)
        return self.stage_each(dict.fromkeys(given, (verdict, evidence)), setting=setting)

    def stage_each(
        self,
        reasons: Mapping[TopicPartition, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        on_committed: OnCommitted | None = None,
    ) -> StagingOutcome:
        """Stage live replicas, each with its own verdict and evidence; raises as :meth:`stage`.

        Args:
            reasons: partition → verdict and evidence.
            setting: as for :meth:`stage`.
            on_committed: called with each batch once it is durably staged, whatever is raised later.
        """
        check_argument("reasons", reasons, Mapping, InvalidArgumentError)
        check_each("reasons", reasons, TopicPartition, InvalidArgumentError)
        if setting not in list(DEFAULTS):
            raise InvalidArgumentError(f"setting = {setting!r:.60}, where {' or '.join(DEFAULTS)} is expected")
        outcome = StagingOutcome()
        with self.changing:
            self._stage(self._by_log_dir(reasons, setting, outcome), outcome, on_committed)
        return outcome

    def stage_copies(
        self,
        copies: Mapping[Replica, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        on_committed: OnCommitted | None = None,
    ) -> StagingOutcome:
        """Stage chosen copies of partitions that are live in several log dirs; raises as :meth:`stage`.

        The remaining copy of a partition is its live replica from then on.

        ``copies``: copy → verdict and evidence; the rest is as for :meth:`stage` and :meth:`stage_each`.
        """
        check_argument("copies", copies, Mapping, InvalidArgumentError)
        check_each("copies", copies, Replica, InvalidArgumentError)
        outcome, found = StagingOutcome(), dict[str, list[Candidate]]()
        with self.changing:
            for copy, reason in copies.items():
                delay = self.settings.of(copy.partition.topic, setting)
                candidate = Candidate(copy.path, copy.partition, copy.topic_id, *reason, delay, copy.inode or None)
                log_dir = self._log_dirs.get(copy.log_dir)
                if log_dir is None or log_dir.offline is not None:
                    outcome.refused.append(Refused(candidate, f"{copy.log_dir} is offline, or not of this store"))
                else:
                    found.setdefault(copy.log_dir, []).append(candidate)
            self._stage(found, outcome, on_committed)
        return outcome

    def _stage(
        self,
        by_log_dir: Mapping[str, list[Candidate]],
        outcome: StagingOutcome,
        on_committed: OnCommitted | None = None,
    ) -> None:
        def entered(batch: Sequence[Staged]) -> None:
            with self._looking:
                for staged in batch:
                    partition = staged.partition
                    if partition is not None:
                        self._index.drop_copy(partition, staged.log_dir, staged.inode)
            if on_committed is not None:
                on_committed(batch)

        if self._purger is not None:
            self._purger.wake()  # it looks for the next due time as soon as the store is free
        for path, candidates in by_log_dir.items():
            log_dir = self._log_dirs[path]
            wanted = self._placement
            wanted = wanted.get(log_dir.path) if isinstance(wanted, Mapping) else wanted
            placement = wanted if wanted in placements(log_dir) else None
            done = stage(
                log_dir,
                candidates,
                self.clock.now_ms(),
                placement=placement,
                fallback=self.fallback,
                on_committed=entered,
                partly=True,
                has_purger=self._purger is not None,
            )
            outcome.staged += done.staged
            outcome.refused += done.refused

    def staged(self) -> list[Staged]:
        """List every staged replica and every stray, over all log dirs that are online."""
        with self.changing:
            return [found for log_dir in self._online() for found in list_staged(log_dir, self.fallback)]

    def restore(
        self, staged: Staged, partition: TopicPartition | None = None, topic_id: TopicId | None = None
    ) -> Replica:
        """Make a staged or stray replica live again.

        Args:
            staged: from :meth:`staged`.
            partition: which partition it was, for a stray whose name may be cut; or which it is by now.
            topic_id: of the topic of ``partition``; a replica that holds it takes that name, whatever it was called.
                None: the name must be the one that it had.

        Raises:
            InvalidArgumentError: what was given is nothing that is staged, no partition, or no topic ID.
            NameTakenError: there is a live replica of that partition.
            DamagedRecordError, ChangeRefusedError: the partition cannot be known, or the directory is not what it was.
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        check_argument("staged", staged, Staged, InvalidArgumentError)
        if partition is not None:
            check_argument("partition", partition, TopicPartition, InvalidArgumentError)
        if topic_id is not None:
            check_argument("topic_id", topic_id, TopicId, InvalidArgumentError)
        with self.changing:
            known = partition or staged.partition
            taken = None if known is None else self.find(known)
            if taken is not None:
                raise NameTakenError(f"{known} is live in {taken.log_dir}/{taken.path}: stage that one first")
            log_dir = self._log_dirs[staged.log_dir]
            back = restore(log_dir, staged, partition=partition, topic_id=topic_id, fallback=self.fallback)
            return self._restored(back, staged)

    def _by_log_dir(
        self, reasons: Mapping[TopicPartition, tuple[str, str]], setting: str, outcome: StagingOutcome
    ) -> dict[str, list[Candidate]]:
        """Group the replicas to stage by log dir; refuse a replica that is not live, a duplicate, or offline."""
        duplicates = {replica.partition for replica in self.duplicates}
        found: dict[str, list[Candidate]] = {}
        delays: dict[str, int] = {}
        with self._looking:
            entries = [self._index.entry_of(partition) for partition in reasons]
        for (partition, reason), entry in zip(reasons.items(), entries, strict=True):
            delay = delays.get(partition.topic)
            if delay is None:
                delay = delays[partition.topic] = self.settings.of(partition.topic, setting)
            if entry is None:
                candidate = Candidate("", partition, None, *reason, delay)
                outcome.refused.append(Refused(candidate, f"no log dir has a live replica of {partition}"))
                continue
            topic_id = None if entry.topic_id is None else TopicId.parse(entry.topic_id)
            candidate = Candidate(entry.path, partition, topic_id, *reason, delay)
            offline = self._log_dirs[entry.log_dir].offline
            if offline is not None:
                outcome.refused.append(Refused(candidate, offline))
            elif duplicates and partition in duplicates:
                outcome.refused.append(Refused(candidate, f"{partition} is live in two log dirs: repair that first"))
            else:
                found.setdefault(entry.log_dir, []).append(candidate)
        return found

    def _entered(self, replica: Replica) -> Replica:
        with self._looking:
            self._index.put(replica)
        return replica

    def _restored(self, back: Restored, staged: Staged) -> Replica:
        """Enter a restored replica by what its ``partition.metadata`` says now, which may still be damaged."""
        partition, path = back.partition, f"{back.log_dir}/{back.path}"
        try:
            found, state, _, _ = read_topic_id(path, partition.topic, partition.partition, {})
        except VanishedError as error:
            log_dir = self._log_dirs[back.log_dir]
            log_dir.go_offline(f"{path} was restored, and is gone; {log_dir.path} is offline until it is opened again")
            raise OfflineLogDirError(str(log_dir.offline)) from error
        topic_id = None if found is None else TopicId.parse(found)
        return self._entered(Replica(partition, topic_id, back.log_dir, back.path, state or "", staged.inode))
