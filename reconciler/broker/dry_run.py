"""What a control request did to a store, or would do: two pictures of the store, before and after, side by side. Pure.

It is told from what lies there and not from what was intended, so it is as true of a request that went wrong half-way.
Source: DESIGN §4.

A rehearsal: a control request handled by the same code as ever, over a store that only remembers what it would do.

So what a dry run foretells is decided nowhere but where the request itself is. The disks are looked at where the answer
hangs on them (a name that is taken, a namespace that was never created); that a disk fails or is full, nobody foresees.
Source: DESIGN §4, §6.
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
    ChangeRefusedError,
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
    BATCH,
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
from reconciler.broker.replica_store import ReplicaStore
from reconciler.broker.stop_replica import handle_stop_replica
from reconciler.protocol import ControlRequest, ControlResponse, StopReplicaRequest, StopReplicaResponse, error_response


class EffectKind(StrEnum):
    """What became of a replica, in the order in which a request does it."""

    STAGED = "staged"
    RESTORED = "restored"
    CREATED = "created"
    TOPIC_ID_WRITTEN = "topic_id_written"


@dataclass(frozen=True, slots=True)
class Effect:
    """One change.

    Attributes:
        kind: what was done.
        topic: full name.
        partition: of the topic.
        topic_id: that the replica has; the new one where it was written; None: none.
        log_dir: path of its log dir.
        location: where it lies now: below the log dir, or as ``logstore staged`` has it.
        verdict: why it was staged; empty for the other kinds.
        evidence: the sentence that goes with the verdict.
        due_ms: from when on a purge may take what was staged, in ms since 1970; None for the other kinds.
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
    """What a store holds at one moment."""

    entries: Mapping[PartitionKey, Entry]
    staged: Mapping[tuple[str, str], Staged]
    """By log dir and location."""

    @classmethod
    def of(cls, store: ReplicaStore) -> StoreSnapshot:
        """What it holds now."""
        return cls(store.entries(), {(each.log_dir, each.location): each for each in store.staged()})


def effects(before: StoreSnapshot, after: StoreSnapshot) -> list[Effect]:
    """Every change between two pictures, by kind, topic and partition."""
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
    """What a store holds, and would hold after the changes that were asked for; the store itself stays as it is."""

    def __init__(self, store: LogStore) -> None:
        """Begin with what an open store holds; nobody may change it meanwhile."""
        self.offline = store.offline
        self._store = store
        self._log_dirs = {each.path: each for each in store.log_dirs if each.path not in self.offline}
        self._places = {path: choose_placement(log_dir) for path, log_dir in self._log_dirs.items()}
        self._index = ReplicaIndex()
        for replica in store.replicas():
            self._index.put(replica)
        self._index.doubled = store.doubled
        for second in self._index.doubled:
            # It has no entry of its own, and its disk is as full by it.
            self._index.counts[second.log_dir] = self._index.counts.get(second.log_dir, 0) + 1
        self._staged = {(each.log_dir, each.location): each for each in store.staged()}
        self._vacated: set[tuple[str, str]] = set()
        """Log dir and path of live replicas that were staged: their names are free by then, though not on the disk."""

    @property
    def doubled(self) -> list[Replica]:
        """Replicas of partitions that are live in another log dir too, by then."""
        return list(self._index.doubled)

    def entries(self) -> dict[tuple[str, int], Entry]:
        """See :class:`reconciler.broker.replica_store.ReplicaStore`, here and below."""
        return self._index.entries()

    def topic_of(self, topic_id: TopicId) -> str | None:
        """The topic that has this ID by then."""
        return self._index.topic_of(topic_id)

    def fence(self, partition: TopicPartition, topic_id: TopicId | None = None) -> KafkaError:
        """What the store itself answers: a request asks for this before anything is changed."""
        return self._store.fence(partition, topic_id)

    def staged(self) -> list[Staged]:
        """What lies staged by then."""
        return list(self._staged.values())

    def stage_each(
        self,
        reasons: Mapping[TopicPartition, tuple[str, str]],
        *,
        setting: str = STALE_DELAY,
        settled: OnCommitted | None = None,
    ) -> StagingOutcome:
        """Move replicas from the live to the staged ones."""
        outcome, doubled = StagingOutcome(), {replica.partition for replica in self.doubled}
        now_ms = self._store.clock.now_ms()
        for partition, (verdict, evidence) in reasons.items():
            replica = self._index.get(partition)
            delay_ms = self._store.settings.of(partition.topic, setting)
            if replica is None or replica.log_dir in self.offline or partition in doubled:
                candidate = Candidate("", partition, None, verdict, evidence, delay_ms)
                outcome.refused.append(Refused(candidate, f"{partition} is not live, lives twice, or is offline"))
                continue
            outcome.staged.append(self._set_aside(replica, _record(replica, verdict, evidence, now_ms, delay_ms)))
        if settled is not None and outcome.staged:
            settled(outcome.staged)
        return outcome

    def stage_copies(self, copies: Mapping[Replica, tuple[str, str]], *, setting: str = STALE_DELAY) -> StagingOutcome:
        """Move some of several copies to the staged ones."""
        outcome, now_ms = StagingOutcome(), self._store.clock.now_ms()
        for copy, (verdict, evidence) in copies.items():
            delay_ms = self._store.settings.of(copy.partition.topic, setting)
            if copy.log_dir in self.offline:
                candidate = Candidate(copy.path, copy.partition, copy.topic_id, verdict, evidence, delay_ms)
                outcome.refused.append(Refused(candidate, f"{copy.log_dir} is offline"))
                continue
            outcome.staged.append(self._set_aside(copy, _record(copy, verdict, evidence, now_ms, delay_ms)))
        return outcome

    def restore(self, staged: Staged, partition: TopicPartition | None = None) -> Replica:
        """Move what is staged back to the live ones, where the engine would."""
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
            raise ChangeRefusedError(f"{staged.location} cannot be looked at: {error.strerror}") from error
        del self._staged[staged.log_dir, staged.location]
        state = MetadataState.MISSING if staged.topic_id is None or staged.topic_id.is_zero else MetadataState.OK
        return self._entered(Replica(at, staged.topic_id, log_dir.path, path, state.value, staged.inode))

    def create_many(
        self, wanted: Mapping[TopicPartition, TopicId | None]
    ) -> dict[TopicPartition, Replica | LogStoreError | LayoutError]:
        """Enter new replicas, spread over the log dirs as the store spreads them."""
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
        for log_dir, batch in spread_over_log_dirs(counts, left, BATCH):
            for partition, topic_id in batch.items():
                try:
                    path = self._home_of_new(self._log_dirs[log_dir], partition, topic_id)
                except (LogStoreError, LayoutError) as error:
                    found[partition] = error
                    continue
                state = MetadataState.MISSING if topic_id is None else MetadataState.OK
                found[partition] = self._entered(Replica(partition, topic_id, log_dir, path, state.value, 0))
        return found

    def assign_topic_ids(
        self, wanted: Mapping[TopicPartition, TopicId]
    ) -> dict[TopicPartition, Replica | LogStoreError]:
        """Enter the topic IDs of replicas that have none."""
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
        return self._entered(Replica(*written))

    def _entered(self, replica: Replica) -> Replica:
        self._index.put(replica)
        return replica

    def _set_aside(self, replica: Replica, record: StagedRecord) -> Staged:
        """Where it would be staged; a stray's name holds random digits, which stand as ``*`` until they are drawn."""
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
        """The path of a replica that would be made, below its log dir; raises what would stand in the way."""
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
            return path  # the prefix directory of a topic ID, which is made when it is needed
        except OSError as error:
            raise ChangeRefusedError(f"{log_dir.path}/{folder} cannot be looked at: {error.strerror}") from error
        return path


def dry_run_request(
    store: LogStore, request: ControlRequest, node_id: int, broker_epoch: int = -1
) -> tuple[ControlResponse, list[Effect]]:
    """What a broker that has just started would answer, and what it would do. Nothing is changed.

    Args:
        store: open, and left alone meanwhile.
        request: a good one.
        node_id: of the broker.
        broker_epoch: of its registration.
    """
    stale = staleness(request, broker_epoch, 0)
    if stale is not None:
        stopping = isinstance(request, StopReplicaRequest)
        return (StopReplicaResponse(stale) if stopping else error_response(request, stale)), []
    rehearsal = DryRunStore(store)
    before = StoreSnapshot.of(rehearsal)
    response: ControlResponse
    if isinstance(request, StopReplicaRequest):
        response = handle_stop_replica(rehearsal, request, {})
    else:
        response = handle_leader_and_isr(rehearsal, request, node_id, {})
    return response, effects(before, StoreSnapshot.of(rehearsal))


def _record(replica: Replica, verdict: str, evidence: str, now_ms: int, delay_ms: int) -> StagedRecord:
    return StagedRecord(
        *(replica.partition.topic, replica.partition.partition, replica.topic_id or TopicId.ZERO, replica.path),
        *(verdict, evidence, now_ms, now_ms + delay_ms),
    )
