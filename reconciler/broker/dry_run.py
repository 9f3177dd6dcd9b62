"""The effects of a control request on a store, and the dry run of a request.

Effects are the differences between two snapshots of a store, before and after a request. They come from the replicas
and not from the intended changes, so they also hold for a request that failed half-way.

A dry run handles a request by the same code as always, over a store that only remembers changes. So a dry run and a
real request cannot decide differently. The dry run reads the disks where the answer depends on them: a name that is
taken, or a namespace that was never created. It cannot foresee a failing or full disk. Source: DESIGN §4, §6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from layout.directory_name import staged_name
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.scheme import Scheme, check_namespace_fits, partition_path
from layout.topic import Namespace, TopicPartition
from logstore import (
    STALE_DELAY,
    ChangeFailedError,
    InconsistentTopicIdError,
    InvalidNamespaceError,
    KafkaError,
    LogStoreError,
    NameTakenError,
    OfflineLogDirError,
    UnknownReplicaError,
)
from logstore.journal import is_namespace_dir
from logstore.log_dir import LogDir
from logstore.rows import MetadataState
from logstore.staging import (
    STAGING_BATCH_SIZE,
    Candidate,
    OnCommitted,
    Placement,
    Refused,
    Staged,
    StagingOutcome,
    choose_placement,
    name_below_log_dir,
    planned_restore,
)
from logstore.store import Entry, LogStore, Replica, ReplicaIndex, spread_over_log_dirs
from reconciler.broker.broker import staleness
from reconciler.broker.judgement import PartitionKey
from reconciler.broker.leader_and_isr import handle_leader_and_isr
from reconciler.broker.memory import BrokerMemory, KnownEpochs
from reconciler.broker.replica_store import ReplicaStore
from reconciler.broker.stop_replica import handle_stop_replica
from reconciler.protocol import ControlRequest, ControlResponse, StopReplicaRequest, StopReplicaResponse, error_response


class EffectKind(StrEnum):
    """Kind of a change of a replica, in the order in which a request makes them."""

    STAGED = "staged"
    RESTORED = "restored"
    CREATED = "created"
    TOPIC_ID_WRITTEN = "topic_id_written"


@dataclass(frozen=True, slots=True)
class Effect:
    """One change of a replica.

    Attributes:
        kind: of the change.
        topic: full name.
        partition: of the topic.
        topic_id: of the replica after the change; None: it has none.
        log_dir: path of its log dir.
        location: path after the change: below the log dir, or as ``logstore staged`` shows it.
        verdict: why the replica was staged; empty for other kinds.
        evidence: the sentence that goes with the verdict.
        due_ms: when a purge may delete the staged replica, in ms since 1970; None for other kinds.
    """

    kind: EffectKind
    topic: str
    partition: int
    topic_id: str | None
    log_dir: str
    location: str
    verdict: str = ""
    evidence: str = ""
    due_ms: int | None = None

    @property
    def key(self) -> PartitionKey:
        """Topic and partition."""
        return self.topic, self.partition


class StoreSnapshot(NamedTuple):
    """The live and staged replicas of a store at one moment."""

    entries: Mapping[PartitionKey, Entry]
    staged: Mapping[tuple[str, str], Staged]
    """By log dir and location."""

    @classmethod
    def of(cls, store: ReplicaStore) -> StoreSnapshot:
        """Take a snapshot of a store."""
        return cls(store.entries(), {(each.log_dir, each.location): each for each in store.staged()})


def effects(before: StoreSnapshot, after: StoreSnapshot) -> list[Effect]:
    """List every change between two snapshots, by kind, topic and partition."""
    order = list(EffectKind)
    staged = list(_staged(before, after))
    found = [*staged, *_live(before, after, {effect.key for effect in staged})]
    return sorted(found, key=lambda each: (order.index(each.kind), each.topic, each.partition))


def _staged(before: StoreSnapshot, after: StoreSnapshot) -> Iterator[Effect]:
    for place, staged in after.staged.items():
        if place not in before.staged and staged.record is not None:
            record = staged.record
            at = (record.topic, record.partition, _text_unless_zero(record.topic_id), staged.log_dir, staged.location)
            yield Effect(EffectKind.STAGED, *at, record.verdict, record.evidence, record.due_ms)


def _live(before: StoreSnapshot, after: StoreSnapshot, moved: set[PartitionKey]) -> Iterator[Effect]:
    left = {
        (each.log_dir, _text_unless_zero(each.topic_id), each.inode)
        for at, each in before.staged.items()
        if at not in after.staged
    }
    for key, entry in after.entries.items():
        was = None if key in moved else before.entries.get(key)
        if was is not None and was.topic_id == entry.topic_id:
            continue
        kind = EffectKind.TOPIC_ID_WRITTEN
        if was is None:
            is_back = (entry.log_dir, entry.topic_id, entry.inode) in left
            kind = EffectKind.RESTORED if is_back else EffectKind.CREATED
        yield Effect(kind, *key, entry.topic_id, entry.log_dir, entry.path)


def _text_unless_zero(topic_id: TopicId | None) -> str | None:
    return None if topic_id is None or topic_id.is_zero else str(topic_id)


class DryRunStore:
    """A store that only remembers changes: it starts as a copy of an open store, which stays as it is."""

    def __init__(self, store: LogStore) -> None:
        """Start with the replicas of an open store, which must not change meanwhile."""
        self.offline = store.offline
        self._store = store
        self._log_dirs = {each.path: each for each in store.log_dirs if each.path not in self.offline}
        self._places = {path: choose_placement(log_dir) for path, log_dir in self._log_dirs.items()}
        self._index = ReplicaIndex()
        for replica in store.replicas():
            self._index.put(replica)
        self._index.duplicates = store.duplicates
        for second in self._index.duplicates:
            # The second copy has no entry of its own, but it counts for the load of its disk.
            self._index.counts[second.log_dir] = self._index.counts.get(second.log_dir, 0) + 1
        self._staged = {(each.log_dir, each.location): each for each in store.staged()}
        self._vacated: set[tuple[str, str]] = set()
        """Log dir and path of replicas that were staged here: their names are free here, though not on the disk."""

    @property
    def duplicates(self) -> list[Replica]:
        """Replicas of partitions that are live in another log dir too."""
        return list(self._index.duplicates)

    def entries(self) -> dict[tuple[str, int], Entry]:
        """Return every live replica; see :class:`reconciler.broker.replica_store.ReplicaStore`, here and below."""
        return self._index.entries()

    def topic_of(self, topic_id: TopicId) -> str | None:
        """Return the topic with this ID; None: there is none."""
        return self._index.topic_of(topic_id)

    def fence(self, partition: TopicPartition, topic_id: TopicId | None = None) -> KafkaError:
        """Return the answer of the store itself: a request asks for it before any change."""
        return self._store.fence(partition, topic_id)

    def staged(self) -> list[Staged]:
        """Return every staged replica and every stray."""
        return list(self._staged.values())

    def stage_each(
        self,
        reasons: Mapping[TopicPartition, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        on_committed: OnCommitted | None = None,
    ) -> StagingOutcome:
        """Move replicas from the live to the staged replicas."""
        outcome, duplicates = StagingOutcome(), {replica.partition for replica in self.duplicates}
        now_ms = self._store.clock.now_ms()
        for partition, (verdict, evidence) in reasons.items():
            replica = self._index.get(partition)
            delay_ms = self._store.settings.of(partition.topic, setting)
            if replica is None or replica.log_dir in self.offline or partition in duplicates:
                candidate = Candidate("", partition, None, verdict, evidence, delay_ms)
                outcome.refused.append(Refused(candidate, f"{partition} is not live, lives twice, or is offline"))
                continue
            outcome.staged.append(self._stage(replica, _record(replica, verdict, evidence, now_ms, delay_ms)))
        if on_committed is not None and outcome.staged:
            on_committed(outcome.staged)
        return outcome

    def stage_copies(self, copies: Mapping[Replica, tuple[str, str]], *, setting: str = STALE_DELAY) -> StagingOutcome:
        """Move the given copies to the staged replicas."""
        outcome, now_ms = StagingOutcome(), self._store.clock.now_ms()
        for copy, (verdict, evidence) in copies.items():
            delay_ms = self._store.settings.of(copy.partition.topic, setting)
            if copy.log_dir in self.offline:
                candidate = Candidate(copy.path, copy.partition, copy.topic_id, verdict, evidence, delay_ms)
                outcome.refused.append(Refused(candidate, f"{copy.log_dir} is offline"))
                continue
            outcome.staged.append(self._stage(copy, _record(copy, verdict, evidence, now_ms, delay_ms)))
        return outcome

    def restore(self, staged: Staged, partition: TopicPartition | None = None) -> Replica:
        """Move a staged replica back to the live replicas, if the engine would."""
        known = partition or staged.partition
        taken = None if known is None else self._index.get(known)
        if taken is not None:
            raise NameTakenError(f"{known} is live in {taken.log_dir}/{taken.path}")
        log_dir = self._log_dirs[staged.log_dir]
        try:
            back = planned_restore(log_dir, staged, partition)
            at, path = back.partition, back.path
        except NameTakenError:
            if known is None:
                raise
            at, path = known, partition_path(log_dir.scheme, known, staged.topic_id)
            if (log_dir.path, path) not in self._vacated:
                raise
        except OSError as error:
            raise ChangeFailedError(f"{staged.location} cannot be looked at: {error.strerror}") from error
        del self._staged[staged.log_dir, staged.location]
        state = MetadataState.MISSING if staged.topic_id is None or staged.topic_id.is_zero else MetadataState.OK
        return self._add(Replica(at, staged.topic_id, log_dir.path, path, state.value, staged.inode))

    def create_many(
        self, wanted: Mapping[TopicPartition, TopicId | None]
    ) -> dict[TopicPartition, Replica | LogStoreError | LayoutError]:
        """Add new replicas, spread over the log dirs as the store spreads them."""
        found: dict[TopicPartition, Replica | LogStoreError | LayoutError] = {}
        if not self._log_dirs:
            return dict.fromkeys(wanted, OfflineLogDirError("every log dir of this store is offline"))
        left = dict(wanted)
        for partition in wanted:
            taken = self._index.get(partition)
            if taken is not None:
                found[partition] = NameTakenError(f"{partition} is live already in {taken.log_dir}")
                del left[partition]
        counts = {path: self._index.counts.get(path, 0) for path in self._log_dirs}
        for log_dir, batch in spread_over_log_dirs(counts, left, STAGING_BATCH_SIZE):
            for partition, topic_id in batch.items():
                try:
                    path = self._home_of_new(self._log_dirs[log_dir], partition, topic_id)
                except (LogStoreError, LayoutError) as error:
                    found[partition] = error
                    continue
                state = MetadataState.MISSING if topic_id is None else MetadataState.OK
                found[partition] = self._add(Replica(partition, topic_id, log_dir, path, state.value, 0))
        return found

    def assign_topic_ids(
        self, wanted: Mapping[TopicPartition, TopicId]
    ) -> dict[TopicPartition, Replica | LogStoreError]:
        """Set the topic IDs of replicas that have none."""
        found: dict[TopicPartition, Replica | LogStoreError] = {}
        for partition, topic_id in wanted.items():
            try:
                found[partition] = self._assign(partition, topic_id)
            except LogStoreError as error:
                found[partition] = error
        return found

    def _assign(self, partition: TopicPartition, topic_id: TopicId) -> Replica:
        replica = self._index.get(partition)
        if replica is None:
            raise UnknownReplicaError(f"no log dir of this store has a live replica of {partition}")
        if replica.topic_id != topic_id and replica.metadata_state != MetadataState.MISSING:
            raise InconsistentTopicIdError(f"{partition} holds {replica.topic_id or 'what cannot be read'}")
        written = (partition, topic_id, replica.log_dir, replica.path, MetadataState.OK.value, replica.inode)
        return self._add(Replica(*written))

    def _add(self, replica: Replica) -> Replica:
        self._index.put(replica)
        return replica

    def _stage(self, replica: Replica, record: StagedRecord) -> Staged:
        """Stage a replica. A stray's name has random digits, which are shown as ``*`` because they are not drawn."""
        log_dir, placement, copy = self._log_dirs[replica.log_dir], self._places[replica.log_dir], 1
        if placement is Placement.IN_PLACE:
            location = name = f"{replica.partition.local_topic}-{record.partition}.*-stray"
        else:
            name = staged_name(record.topic_id, record.partition, copy)
            while (log_dir.path, location := name_below_log_dir(log_dir, placement, name)) in self._staged:
                copy += 1
                name = staged_name(record.topic_id, record.partition, copy)
        staged = Staged(
            *(log_dir.path, placement, name, location, record, None),
            *(record.topic_id, replica.partition, replica.inode),
        )
        self._staged[log_dir.path, location] = staged
        self._vacated.add((log_dir.path, replica.path))
        self._index.drop_copy(replica.partition, replica.log_dir, replica.inode)
        return staged

    def _home_of_new(self, log_dir: LogDir, partition: TopicPartition, topic_id: TopicId | None) -> str:
        """Return the path of a new replica below its log dir; raise the error of a real creation."""
        path = partition_path(log_dir.scheme, partition, topic_id)
        folder, _, name = path.rpartition("/")
        try:
            if partition.namespace and log_dir.scheme is Scheme.NAMESPACED:
                check_namespace_fits(log_dir.path, Namespace.parse(partition.namespace))
                if not is_namespace_dir(log_dir.root, folder):
                    raise InvalidNamespaceError(
                        f"namespace {partition.namespace} was not created in {log_dir.path}: create it first"
                    )
            with log_dir.root.below(folder) as home:
                if home.holds(name) and (log_dir.path, path) not in self._vacated:
                    raise NameTakenError(f"{home.path_of(name)} is there already; nothing is ever overwritten")
        except FileNotFoundError:
            return path  # the prefix directory of a topic ID is created when it is needed
        except OSError as error:
            raise ChangeFailedError(f"{log_dir.path}/{folder} cannot be looked at: {error.strerror}") from error
        return path


def dry_run_request(
    store: LogStore, request: ControlRequest, node_id: int, known: KnownEpochs | None = None
) -> tuple[ControlResponse, list[Effect]]:
    """Return the answer of a broker that has just started, and the effects of the request. Nothing is changed.

    Args:
        store: open; it must not change meanwhile.
        request: checked.
        node_id: of the broker.
        known: of requests before this one; None: the request is believed.

    Raises:
        LogStoreError: a disk cannot be listed, so nobody knows what the request would do.
    """
    known = known or KnownEpochs()
    stale = staleness(request, known.broker_epoch, known.controller_epoch)
    if stale is not None:
        stopping = isinstance(request, StopReplicaRequest)
        return (StopReplicaResponse(stale) if stopping else error_response(request, stale)), []
    copy = DryRunStore(store)
    before = StoreSnapshot.of(copy)
    response: ControlResponse
    if isinstance(request, StopReplicaRequest):
        response = handle_stop_replica(copy, request, BrokerMemory(known=known))
    else:
        response = handle_leader_and_isr(copy, request, node_id, BrokerMemory(known=known))
    return response, effects(before, StoreSnapshot.of(copy))


def _record(replica: Replica, verdict: str, evidence: str, now_ms: int, delay_ms: int) -> StagedRecord:
    return StagedRecord(
        *(replica.partition.topic, replica.partition.partition, replica.topic_id or TopicId.ZERO, replica.path),
        *(verdict, evidence, now_ms, now_ms + delay_ms),
    )
