"""The store that changes a broker's log dirs: create, stage, restore, move and purge replicas, and write checkpoints.

Rules for callers. Every method may be called from any thread. Changes happen one after the other; look-ups never wait
for a disk. A method that raises has changed nothing, unless it says otherwise or the log dir went offline; in that case
opening the store again recovers it. Nobody else may change the log dirs while the store is open; the lock keeps out
brokers and other users of this engine. Use the store as a context manager, or call :meth:`LogStore.close`.
Source: DESIGN §2, §5; KIP516-3, -6, -8, -11; FACTS §1.5, §1.7, §4.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from layout.errors import LayoutError
from layout.ids import DirectoryId, TopicId
from layout.scheme import Scheme, partition_path
from layout.topic import TopicPartition
from logstore.arguments import check_argument, check_each
from logstore.errors import (
    InconsistentTopicIdError,
    InvalidArgumentError,
    LogStoreError,
    NamespaceClashError,
    NameTakenError,
    OfflineLogDirError,
)
from logstore.fs import Progress
from logstore.journal import check_no_tier
from logstore.log_dir import LogDir
from logstore.parallel import paused_gc
from logstore.purge import Purged, Purger, PurgeReport, PurgeRules, Throttle, purge, purge_steps
from logstore.rows import MetadataState
from logstore.settings import DELETE_DELAY
from logstore.staging import STAGING_BATCH_SIZE
from logstore.store.create import create_replica, create_replicas, spread_over_log_dirs, write_topic_ids
from logstore.store.index import Replica
from logstore.store.move import is_source_live, move_replica
from logstore.store.staged import StagingStore
from logstore.tunables import FILES_AT_ONCE

logger = logging.getLogger(__name__)


class LogStore(StagingStore):
    """One broker's log dirs, open to be changed; made by :meth:`LogStore.open`."""

    def create(
        self, partition: TopicPartition, topic_id: TopicId | None, *, directory_id: DirectoryId | None = None
    ) -> Replica:
        """Create an empty replica, in the log dir with the fewest replicas or in a given one.

        Args:
            partition: by the topic's full name; its namespace must have been created.
            topic_id: None: the replica gets no topic ID, as before Kafka 2.8.
            directory_id: of the log dir that gets the replica. None or a reserved ID means any log dir (FACTS §10.3,
                rows 37 and 38): when a disk fails, the next one gets the replica.

        Raises:
            InvalidArgumentError: what was given is no partition, or no topic ID.
            NameTakenError: there is a live replica of this partition.
            NamespaceClashError: there is a namespace of this partition's name.
            InvalidNamespaceError, InvalidNameError: the name cannot be used here.
            UnknownReplicaError: no log dir has that directory ID.
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        _check_topic_id(topic_id)
        with self.changing:
            taken = self.find(partition)
            if taken is not None:
                raise NameTakenError(f"{partition} is live already in {taken.log_dir}")
            named = None if directory_id is None or directory_id.is_reserved else self.log_dir_of(directory_id)
            if named is None:
                made = self.create_many({partition: topic_id})[partition]
                if isinstance(made, Replica):
                    return made
                raise made
            check_no_tier(self.log_dirs, partition)
            path = create_replica(named, partition, topic_id)
            state = MetadataState.MISSING if topic_id is None else MetadataState.OK
            return self._entered(Replica(partition, topic_id, named.path, path, state.value, 0))

    def create_many(
        self, wanted: Mapping[TopicPartition, TopicId | None]
    ) -> dict[TopicPartition, Replica | LogStoreError | LayoutError]:
        """Create many empty replicas, each in the log dir with the fewest replicas, with one barrier for a batch.

        ``wanted``: partition, by full name → its topic ID; None: it gets none.

        Returns:
            The replica of each partition, or the error that :meth:`create` would have raised.

        Raises:
            InvalidArgumentError: something else than partitions and topic IDs was given.
        """
        check_argument("wanted", wanted, Mapping, InvalidArgumentError)
        for topic_id in wanted.values():
            _check_topic_id(topic_id)
        found: dict[TopicPartition, Replica | LogStoreError | LayoutError] = {}
        with self.changing, paused_gc():
            left = dict(wanted)
            for partition in wanted:
                try:
                    taken = self.find(partition)
                except OfflineLogDirError as error:
                    found[partition] = error
                else:
                    if taken is None:
                        continue
                    found[partition] = NameTakenError(f"{partition} is live already in {taken.log_dir}")
                del left[partition]
            while left:
                try:
                    self._least_loaded()
                except OfflineLogDirError as error:
                    return found | dict.fromkeys(left, error)
                counts = {log_dir.path: self._index.counts.get(log_dir.path, 0) for log_dir in self._online()}
                for path, batch in spread_over_log_dirs(counts, left, STAGING_BATCH_SIZE):
                    done = self._create_batch(self._log_dirs[path], batch)
                    found |= done
                    # Replicas meant for a disk that failed just now are left, and go to the next one.
                    for partition in done:
                        left.pop(partition, None)
        return found

    def assign_topic_id(self, partition: TopicPartition, topic_id: TopicId) -> Replica:
        """Write the topic ID of a replica that has none (KIP516-11); nothing happens when it has this ID already.

        Raises:
            InconsistentTopicIdError: the replica has another ID, or an unreadable one, which is never overwritten.
            UnknownReplicaError: there is no such replica.
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        if isinstance(found := self.assign_topic_ids({partition: topic_id})[partition], Replica):
            return found
        raise found

    def assign_topic_ids(
        self, wanted: Mapping[TopicPartition, TopicId]
    ) -> dict[TopicPartition, Replica | LogStoreError]:
        """Write the topic IDs of many replicas that have none, with two barriers for each batch.

        Returns:
            The replica of each partition as it is now, or the error that :meth:`assign_topic_id` would have raised.
        """
        check_argument("wanted", wanted, Mapping, InvalidArgumentError)
        check_each("the topic IDs", wanted.values(), TopicId, InvalidArgumentError)
        found: dict[TopicPartition, Replica | LogStoreError] = {}
        by_log_dir: dict[str, list[Replica]] = {}
        with self.changing:
            for partition, topic_id in wanted.items():
                try:
                    found[partition] = replica = self._without_id(partition, topic_id)
                except LogStoreError as error:
                    found[partition] = error
                else:
                    if replica.topic_id is None:
                        by_log_dir.setdefault(replica.log_dir, []).append(replica)
            for path, replicas in by_log_dir.items():
                for start in range(0, len(replicas), FILES_AT_ONCE):
                    batch = replicas[start : start + FILES_AT_ONCE]
                    found |= self._assign_batch(self._log_dirs[path], {each: wanted[each.partition] for each in batch})
        return found

    def _assign_batch(
        self, log_dir: LogDir, wanted: Mapping[Replica, TopicId]
    ) -> dict[TopicPartition, Replica | LogStoreError]:
        try:
            write_topic_ids(log_dir, {each.path: (each.partition, topic_id) for each, topic_id in wanted.items()})
        except LogStoreError as error:
            if len(wanted) > 1 and log_dir.offline is None:  # one bad replica must not keep the others from theirs
                alone = [self._assign_batch(log_dir, {replica: topic_id}) for replica, topic_id in wanted.items()]
                return {partition: outcome for each in alone for partition, outcome in each.items()}
            return dict.fromkeys((replica.partition for replica in wanted), error)
        state = MetadataState.OK.value
        written = (replace(replica, topic_id=topic_id, metadata_state=state) for replica, topic_id in wanted.items())
        return {replica.partition: self._entered(replica) for replica in written}

    def _without_id(self, partition: TopicPartition, topic_id: TopicId) -> Replica:
        """Find a live replica that has no topic ID or this one; raises as :meth:`assign_topic_id`."""
        replica = self.get(partition)
        if replica.topic_id != topic_id and replica.metadata_state != MetadataState.MISSING:
            held = replica.topic_id or f"a partition.metadata that is {replica.metadata_state}"
            raise InconsistentTopicIdError(f"{partition} holds {held} in {replica.log_dir}, and not {topic_id}")
        return replica

    def move(
        self, partition: TopicPartition, directory_id: DirectoryId, *, progress: Progress | None = None
    ) -> Replica:
        """Move a replica to another disk: copy, verify, swap; the original is staged (KIP516-3).

        Nobody may write to the replica meanwhile, and other changes wait until the move is done.

        Args:
            partition: by full name.
            directory_id: of the log dir that gets the replica; nothing happens when it has the replica already.
            progress: called with the number of bytes copied; may wait, to hold the copy to a rate.

        Raises:
            InvalidArgumentError: what was given is no partition, or no directory ID.
            UnknownReplicaError: there is no such replica or no such log dir.
            ChangeRefusedError, NameTakenError: the replica does not fit there, or its name is taken.
            OfflineLogDirError, ChangeFailedError: a disk fails, or the system refuses.
        """
        check_argument("partition", partition, TopicPartition, InvalidArgumentError)
        check_argument("directory_id", directory_id, DirectoryId, InvalidArgumentError)
        with self.changing:
            replica, target = self.get(partition), self.log_dir_of(directory_id)
            if replica.log_dir == target.path:
                return replica
            check_no_tier([target], partition)
            source, delay = self._log_dirs[replica.log_dir], self.settings.of(partition.topic, DELETE_DELAY)
            path = partition_path(target.scheme, partition, replica.topic_id)
            moved = Replica(partition, replica.topic_id, target.path, path, replica.metadata_state, 0)
            try:
                move_replica(
                    source, target, replica, self.clock.now_ms(), delay, fallback=self.fallback, progress=progress
                )
            except LogStoreError:
                with suppress(OSError):
                    if is_source_live(source, replica.path) is False:
                        self._entered(moved)  # the copy is the replica now, and its disk failed
                raise
            return self._entered(moved)

    def purge(
        self,
        *,
        throttle: Throttle | None = None,
        cancel: threading.Event | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> PurgeReport:
        """Delete for ever what is staged and due, on all online disks at the same time; other changes wait.

        Errors of one disk stand in its part of the report.

        Args:
            throttle: limits the rate; None: no limit.
            cancel: set it to stop the purge in order; the next purge goes on.
            progress: called from several threads with the directories and bytes removed since the last call.
        """
        with self.changing:
            rules = PurgeRules(self.clock.now_ms(), throttle, cancel or threading.Event(), progress=progress)
            return purge(self._online(), rules, fallback=self.fallback)

    def purge_step(self) -> Purged | None:
        """Delete one due directory, for simulations that do other things in between; None: nothing is due.

        Raises:
            OfflineLogDirError, ChangeFailedError: a disk fails, or the system refuses.
        """
        with self.changing:
            rules = PurgeRules(self.clock.now_ms())
            for log_dir in self._online():
                for gone in purge_steps(log_dir, rules, fallback=self.fallback):
                    return gone
        return None

    def start_purger(self) -> None:
        """Start a thread that purges directories when they become due; :meth:`close` ends it."""
        if self._purger is None:
            self._purger = Purger(self._purge_due, self.clock)
            self._purger.start()

    def close(self) -> None:
        """Stop the purger, and release all locks; every change is on disk already. A second call does nothing."""
        if self._purger is not None:
            self._purger.stop()
            self._purger = None
        super().close()

    def _purge_due(self, cancel: threading.Event) -> int | None:
        report = self.purge(cancel=cancel)
        for part in report.log_dirs:
            if part.error is not None:
                logger.error("%s: what is due was not purged: %s", part.log_dir, part.error)
        return min((part.next_due_ms for part in report.log_dirs if part.next_due_ms is not None), default=None)

    def write_offsets(self, file: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write offsets of live replicas to a checkpoint of their log dirs, as a broker does now and then (FACTS §2.4).

        ``file``: one of :data:`layout.checkpoint.OFFSET_CHECKPOINTS`.

        Raises:
            UnknownReplicaError: a partition is not live here.
            ChangeRefusedError: the file is no offset checkpoint or is damaged, or cannot hold one of the entries.
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        check_argument("file", file, str, InvalidArgumentError)
        check_argument("offsets", offsets, Mapping, InvalidArgumentError)
        with self.changing:
            of_log_dir: dict[str, dict[TopicPartition, int]] = {}
            for partition, offset in offsets.items():
                of_log_dir.setdefault(self.get(partition).log_dir, {})[partition] = offset
            for path, entries in of_log_dir.items():
                log_dir = self._log_dirs[path]
                with log_dir.changing(f"{file} cannot be written"):
                    log_dir.checkpoints.update(file, entries)
                    log_dir.checkpoints.write(log_dir.disk)

    def _create_batch(
        self, log_dir: LogDir, batch: Mapping[TopicPartition, TopicId | None]
    ) -> dict[TopicPartition, Replica | LogStoreError | LayoutError]:
        """Create one batch in one log dir; a partition that is left out may be created on another disk."""
        found: dict[TopicPartition, Replica | LogStoreError | LayoutError] = {}
        with_tiers = [each for each in self.log_dirs if each.scheme is Scheme.NAMESPACED]
        for partition in batch if with_tiers else ():
            try:
                check_no_tier(with_tiers, partition)
            except NamespaceClashError as error:
                found[partition] = error
        allowed = (
            {partition: topic_id for partition, topic_id in batch.items() if partition not in found} if found else batch
        )
        try:
            made = create_replicas(log_dir, allowed, held=self._index.counts.get(log_dir.path, 0))
        except LogStoreError as error:
            return found | dict.fromkeys(allowed, error)
        with_id, without_id = MetadataState.OK.value, MetadataState.MISSING.value
        for partition, path in made.items():
            if isinstance(path, str):
                topic_id = batch[partition]
                state = without_id if topic_id is None else with_id
                found[partition] = self._entered(Replica(partition, topic_id, log_dir.path, path, state, 0))
            else:
                found[partition] = path
        return found


def _check_topic_id(topic_id: TopicId | None) -> None:
    if topic_id is not None and type(topic_id) is not TopicId:
        check_argument("topic_id", topic_id, TopicId, InvalidArgumentError)
