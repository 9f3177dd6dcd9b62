"""Handle a LeaderAndIsr request: stage stale replicas, answer each partition, create missing replicas (DESIGN §4).

Staging comes first, in one step: a replica of a re-created topic must be staged before its successor can be created.
Then each partition is answered in Kafka's order (FACTS §4.2), and new replicas are created at the end.
Source: KIP516-4, -5, -6, -11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import STALE_DELAY, KafkaError
from logstore.staging import Staged
from logstore.store import Replica, replica_of
from reconciler.broker import carry_out
from reconciler.broker.judgement import (
    LOOKS_UNWANTED,
    Judged,
    Judgement,
    LiveReplicas,
    OfflineReplica,
    PartitionKey,
    judge,
)
from reconciler.broker.memory import BrokerMemory
from reconciler.broker.replica_store import ReplicaStore
from reconciler.protocol import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionState,
    RequestType,
    TopicErrors,
    TopicState,
)
from reconciler.verdicts import Verdict

STAGED_BY = {
    RequestType.FULL: LOOKS_UNWANTED,
    RequestType.INCREMENTAL: frozenset({Verdict.STALE_ID}),
    RequestType.UNSPECIFIED: frozenset[Verdict](),
}
"""Type of request → verdicts whose replicas it stages (KIP516-5)."""

LEFT_ALONE = {
    Verdict.DAMAGED: KafkaError.KAFKA_STORAGE_ERROR,
    Verdict.DUPLICATE: KafkaError.KAFKA_STORAGE_ERROR,
    Verdict.RENAMED: KafkaError.INCONSISTENT_TOPIC_ID,
    Verdict.STALE_ID: KafkaError.INCONSISTENT_TOPIC_ID,
}
"""Verdict → error number where an existing replica is in the way and is left for a person."""

_UNKNOWN_EPOCH = -1


def handle_leader_and_isr(
    store: ReplicaStore, request: LeaderAndIsrRequest, node_id: int, memory: BrokerMemory
) -> LeaderAndIsrResponse:
    """Handle a checked request whose epochs are not stale.

    Args:
        store: of the broker.
        request: of the controller.
        node_id: of the broker.
        memory: of earlier requests; updated.
    """
    return _LeaderAndIsrHandling(store, request, node_id, memory).answer()


class _PendingReplica(NamedTuple):
    """A partition whose replica is to be created or to get its topic ID; ``place`` is the index of its answer."""

    place: int
    at: TopicPartition
    topic_id: TopicId | None
    state: PartitionState


class _LeaderAndIsrHandling:
    """One LeaderAndIsr request while it is handled."""

    def __init__(self, store: ReplicaStore, request: LeaderAndIsrRequest, node_id: int, memory: BrokerMemory) -> None:
        self.store, self.request, self.node_id = store, request, node_id
        self.epochs, self.kept_back, self.known = memory.epochs, memory.kept_back, memory.known
        self.staged: set[PartitionKey] = set()
        self.in_the_way: set[PartitionKey] = set()
        self.answers: list[int] = []
        self.new: list[_PendingReplica] = []
        self.nameless: list[_PendingReplica] = []
        """Existing replicas that get their topic ID."""

    def answer(self) -> LeaderAndIsrResponse:
        """Judge and stage replicas, then answer each partition."""
        carry_out.stage_copies(self.store, self._find_stale_copies(), STALE_DELAY)
        entries = self.store.entries()
        duplicates = {(each.partition.topic, each.partition.partition) for each in self.store.duplicates}
        judged = judge(
            self.request, self.node_id, LiveReplicas(entries, duplicates, self.store.offline, self.store.topic_of)
        )
        self.staged = carry_out.stage(self.store, self._find_stale(judged), entries, STALE_DELAY)
        for topic, partition in self.staged:
            self.epochs.get(topic, {}).pop(partition, None)
        verdicts = iter(judged.named)
        for each in self.request.topics:
            known = self.epochs.setdefault(each.topic, {})
            for state in each.partitions:
                self.answers.append(self._partition(each, state, next(verdicts), known))
        self._write_topic_ids()
        self._restore_or_create()
        for name in [name for name, known in self.epochs.items() if not known]:
            del self.epochs[name]
        return LeaderAndIsrResponse(KafkaError.NONE, tuple(self._answers_by_topic()))

    def _find_stale_copies(self) -> dict[Replica, tuple[str, str]]:
        """Find the copies under another topic ID than the request's, of partitions that are live in several log dirs.

        Such a copy appears when a topic was re-created while a disk was offline. Copies under the same topic ID are
        left alone: a request does not say which of them is the better one.
        """
        if self.request.type is RequestType.UNSPECIFIED or not self.store.duplicates:
            return {}
        ids = {
            TopicPartition(topic.topic, state.partition): topic.topic_id
            for topic in self.request.topics
            for state in topic.partitions
        }
        entries = self.store.entries()
        found = dict[Replica, tuple[str, str]]()
        for second in self.store.duplicates:
            wanted = ids.get(second.partition)
            entry = entries.get((second.partition.topic, second.partition.partition))
            for copy in (second, None if entry is None else replica_of(second.partition, entry)):
                if wanted is not None and copy is not None and copy.topic_id not in (None, wanted):
                    evidence = f"the disk holds topic ID {copy.topic_id}; it was re-created as {wanted}, here too"
                    found[copy] = (Verdict.STALE_ID.value, evidence)
        return found

    def _find_stale(self, judged: Judgement) -> dict[PartitionKey, tuple[str, str]]:
        """Find the replicas to stage, with verdict and evidence; note the replicas that have another name here."""
        stale, reasons = dict[PartitionKey, tuple[str, str]](), dict[Judged, tuple[str, str]]()
        of_type = STAGED_BY[self.request.type]
        for key, each in (*self._named(judged), *judged.others):
            if each.verdict in of_type:
                if each not in reasons:
                    reasons[each] = (each.verdict.value, each.evidence)
                stale[key] = reasons[each]
            elif each.verdict is Verdict.RENAMED:
                self.in_the_way.add((each.row.id_topic, key[1]))
        return stale

    def _named(self, judged: Judgement) -> Iterator[tuple[PartitionKey, Judged]]:
        """Yield the judged replicas that the request names and that are not in order."""
        verdicts = iter(judged.named)
        for topic in self.request.topics:
            for state in topic.partitions:
                found, key = next(verdicts), (topic.topic, state.partition)
                if not isinstance(found, Judged) or found.verdict is Verdict.OK:
                    continue
                if not self.known.is_older(key, topic.topic_id, state.leader_epoch):
                    yield key, found

    def _partition(
        self, topic: TopicState, state: PartitionState, judged: Judged | OfflineReplica | None, known: dict[int, int]
    ) -> int:
        """Return the answer for one partition, in the order of FACTS §4.2, 5; replicas to be created are put off."""
        if isinstance(judged, OfflineReplica):
            return KafkaError.KAFKA_STORAGE_ERROR
        key = (topic.topic, state.partition)
        verdict = None if judged is None or key in self.staged else judged.verdict
        gone = verdict is None or verdict is Verdict.MISSING
        if verdict in LEFT_ALONE:
            failed = verdict is Verdict.STALE_ID and self.request.type is not RequestType.UNSPECIFIED
            return KafkaError.KAFKA_STORAGE_ERROR if failed else LEFT_ALONE[verdict]
        if gone and key in self.in_the_way:
            return KafkaError.INCONSISTENT_TOPIC_ID
        hosted = self.node_id in state.replicas
        current = known.get(state.partition, _UNKNOWN_EPOCH)
        if state.leader_epoch < current or self.known.is_older(key, topic.topic_id, state.leader_epoch):
            return KafkaError.STALE_CONTROLLER_EPOCH
        news = self.request.is_kraft_controller or verdict is Verdict.NO_ID or (gone and hosted)
        if state.leader_epoch == current and not news:
            # A follower in a request without a topic ID goes on without one, as after a downgrade of the controller.
            forgets = topic.topic_id is None and state.leader != self.node_id and not gone
            has_id = isinstance(judged, Judged) and judged.row.disk_topic_id != ""
            return KafkaError.NONE if forgets and has_id else KafkaError.STALE_CONTROLLER_EPOCH
        if not hosted:
            return KafkaError.UNKNOWN_TOPIC_OR_PARTITION
        if gone:
            self.new.append(_PendingReplica(len(self.answers), TopicPartition(*key), topic.topic_id, state))
            return KafkaError.NONE
        if verdict is Verdict.NO_ID and topic.topic_id is not None:
            self.nameless.append(_PendingReplica(len(self.answers), TopicPartition(*key), topic.topic_id, state))
            return KafkaError.NONE
        known[state.partition] = state.leader_epoch
        return KafkaError.NONE

    def _write_topic_ids(self) -> None:
        """Write the topic IDs of the request for replicas that have none (KIP516-11)."""
        wanted = {each.at: each.topic_id for each in self.nameless if each.topic_id is not None}
        answers = carry_out.write_topic_ids(self.store, wanted)
        for each in self.nameless:
            self.answers[each.place] = answers[each.at]
            if answers[each.at] is KafkaError.NONE:
                self.epochs[each.at.topic][each.at.partition] = each.state.leader_epoch

    def _restore_or_create(self) -> None:
        """Restore or create the wanted replicas that are missing."""
        back: dict[TopicPartition, list[Staged]] | None = {}
        if self.request.type is not RequestType.UNSPECIFIED:
            back = carry_out.candidates(
                self.store, ((each.at, each.topic_id) for each in self.new if each.topic_id is not None)
            )
        empty = dict[TopicPartition, TopicId | None]()
        for each in self.new:
            if self._may_lie_on_a_bad_disk(each, listed=back is not None):
                self.answers[each.place] = KafkaError.KAFKA_STORAGE_ERROR
                continue
            answer = carry_out.restore_first(self.store, each.at, (back or {}).get(each.at, []))
            if answer is None:
                empty[each.at] = each.topic_id
                continue
            self.answers[each.place] = answer
            if each.topic_id is not None:
                update = self.kept_back.discard if answer is KafkaError.NONE else self.kept_back.add
                update((each.at, each.topic_id))
        created = carry_out.create(self.store, empty)
        for each in self.new:
            if each.at in created:
                self.answers[each.place] = created[each.at]
            if self.answers[each.place] == KafkaError.NONE:
                self.epochs[each.at.topic][each.at.partition] = each.state.leader_epoch

    def _may_lie_on_a_bad_disk(self, each: _PendingReplica, *, listed: bool) -> bool:
        """Whether a disk that fails may hold the replica: a second one would be in the way when the disk comes back.

        What the controller calls new lies on no disk, unless it is staged there and is wanted again.
        """
        if each.topic_id is not None and not listed:
            self.kept_back.add((each.at, each.topic_id))
            return True
        kept_back = each.topic_id is not None and (each.at, each.topic_id) in self.kept_back
        return bool(self.store.offline) and (kept_back or not each.state.is_new)

    def _answers_by_topic(self) -> Iterator[TopicErrors]:
        answers = iter(self.answers)
        for topic in self.request.topics:
            errors = tuple(PartitionError(state.partition, next(answers)) for state in topic.partitions)
            yield TopicErrors(topic.topic, topic.topic_id, errors)
