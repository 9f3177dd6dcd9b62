"""Decide a LeaderAndIsr request: which replicas are staged, restored and created, and the answers (DESIGN §4).

Staging comes first, in one step: a replica of a re-created topic must be staged before its successor can be created.
Each partition is answered in Kafka's order (FACTS §4.2), and new replicas are created at the end.
Source: KIP516-4, -5, -6, -11.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from layout.topic import TopicPartition
from logstore import STALE_DELAY, KafkaError
from logstore.store import Entry, LogStore, Replica, entry_of, replica_of
from reconciler.broker.decision import Decision, NamelessReplica, StaleReplica, WantedReplica
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
from reconciler.broker.restorable import candidates, first_restorable
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState
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


def decide_leader_and_isr(
    store: LogStore, request: LeaderAndIsrRequest, node_id: int, memory: BrokerMemory
) -> Decision:
    """Decide what a request changes and answers. Nothing is changed.

    Args:
        store: of the broker; it is only read.
        request: of the controller, checked; its epochs are not stale.
        node_id: of the broker.
        memory: of earlier requests.
    """
    return _LeaderAndIsrDecision(store, request, node_id, memory).decide()


class _Then(Enum):
    """What follows for the replica of a partition that is answered with no error."""

    NOTHING = auto()
    REMEMBER = auto()
    WRITE_TOPIC_ID = auto()
    MAKE = auto()


class _LeaderAndIsrDecision:
    """The decision about one LeaderAndIsr request, while it is made."""

    def __init__(self, store: LogStore, request: LeaderAndIsrRequest, node_id: int, memory: BrokerMemory) -> None:
        self.store, self.request, self.node_id, self.memory = store, request, node_id, memory
        self.decision = Decision(request, STALE_DELAY)
        self.in_the_way: set[PartitionKey] = set()
        self.entries: dict[PartitionKey, Entry] = store.entries()
        self.duplicates = list(store.duplicates)

    def decide(self) -> Decision:
        """Judge every replica as it will be when the stale copies are staged, then answer each partition."""
        decision, request = self.decision, self.request
        decision.copies = self._find_stale_copies()
        for copy in decision.copies:
            self._take_out(copy)
        judged = judge(request, self.node_id, self._present())
        decision.stale = self._find_stale(judged)
        verdicts = iter(judged.named)
        for topic in request.topics:
            # What is staged has no leader epoch any more.
            known = self.memory.epochs.get(topic.topic, {})
            remembered: dict[int, int] = {}
            for state in topic.partitions:
                self._partition(topic, state, next(verdicts), known, remembered)
            if remembered:
                decision.epochs[topic.topic] = remembered
        self._find_staged()
        return decision

    def _present(self) -> LiveReplicas:
        duplicates = {(each.partition.topic, each.partition.partition) for each in self.duplicates}
        topic_of = self.store.topic_of
        if self.decision.copies:
            topics = {entry.topic_id: topic for (topic, _), entry in self.entries.items()}
            return LiveReplicas(
                self.entries, duplicates, self.store.offline, lambda topic_id: topics.get(str(topic_id))
            )
        return LiveReplicas(self.entries, duplicates, self.store.offline, topic_of)

    def _find_stale_copies(self) -> dict[Replica, tuple[str, str]]:
        """Find the copies under another topic ID than the request's, of partitions that are live in several log dirs.

        Such a copy appears when a topic was re-created while a disk was offline. Copies under the same topic ID are
        left alone: a request does not say which of them is the better one.
        """
        if self.request.type is RequestType.UNSPECIFIED or not self.duplicates:
            return {}
        ids = {
            TopicPartition(topic.topic, state.partition): topic.topic_id
            for topic in self.request.topics
            for state in topic.partitions
        }
        found = dict[Replica, tuple[str, str]]()
        for second in self.duplicates:
            wanted = ids.get(second.partition)
            entry = self.entries.get((second.partition.topic, second.partition.partition))
            for copy in (second, None if entry is None else replica_of(second.partition, entry)):
                if wanted is None or copy is None or copy.topic_id in (None, wanted):
                    continue
                if copy.log_dir not in self.store.offline:
                    evidence = f"the disk holds topic ID {copy.topic_id}; it was re-created as {wanted}, here too"
                    found[copy] = (Verdict.STALE_ID.value, evidence)
        return found

    def _take_out(self, copy: Replica) -> None:
        """Go on as if a copy were staged; a remaining copy becomes the replica of its partition."""
        if copy in self.duplicates:
            self.duplicates.remove(copy)
            return
        key = (copy.partition.topic, copy.partition.partition)
        others = [each for each in self.duplicates if each.partition == copy.partition]
        if others:
            self.duplicates.remove(others[0])
            self.entries[key] = entry_of(others[0])
        else:
            del self.entries[key]

    def _find_stale(self, judged: Judgement) -> dict[PartitionKey, StaleReplica]:
        """Find the replicas to stage, with verdict and evidence; note the replicas that have another name here."""
        stale, reasons = dict[PartitionKey, StaleReplica](), dict[Judged, tuple[str, str]]()
        of_type = STAGED_BY[self.request.type]
        for key, each in (*self._named(judged), *judged.others):
            if each.verdict in of_type:
                if each not in reasons:
                    reasons[each] = (each.verdict.value, each.evidence)
                stale[key] = StaleReplica(self.entries[key], *reasons[each])
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
                if not self.memory.known.is_older(key, topic.topic_id, state.leader_epoch):
                    yield key, found

    def _partition(
        self,
        topic: TopicState,
        state: PartitionState,
        judged: Judged | OfflineReplica | None,
        known: dict[int, int],
        remembered: dict[int, int],
    ) -> None:
        """Decide the answer for one partition, and what follows for its replica."""
        decision, place, key = self.decision, len(self.decision.answers), (topic.topic, state.partition)
        staged = key in decision.stale
        current = _UNKNOWN_EPOCH if staged else known.get(state.partition, _UNKNOWN_EPOCH)
        answer, then = self._answer(topic, state, judged, current, staged=staged)
        decision.answers.append(answer)
        if staged:
            current = known.get(state.partition, _UNKNOWN_EPOCH)
            decision.unless_staged[key] = (place, self._answer(topic, state, judged, current, staged=False)[0])
        if then is _Then.REMEMBER:
            remembered[state.partition] = state.leader_epoch
        elif then is _Then.WRITE_TOPIC_ID and topic.topic_id is not None:
            nameless = NamelessReplica(place, TopicPartition(*key), topic.topic_id, state.leader_epoch)
            decision.nameless.append(nameless)
        elif then is _Then.MAKE:
            kept_back = (TopicPartition(*key), topic.topic_id) in self.memory.kept_back
            wanted = (place, TopicPartition(*key), topic.topic_id, state.leader_epoch, kept_back or not state.is_new)
            decision.wanted.append(WantedReplica(*wanted))

    def _answer(
        self,
        topic: TopicState,
        state: PartitionState,
        judged: Judged | OfflineReplica | None,
        current: int,
        *,
        staged: bool,
    ) -> tuple[int, _Then]:
        """Return the answer for one partition, in the order of FACTS §4.2, 5, and what follows."""
        if isinstance(judged, OfflineReplica):
            return KafkaError.KAFKA_STORAGE_ERROR, _Then.NOTHING
        key = (topic.topic, state.partition)
        verdict = None if judged is None or staged else judged.verdict
        gone = verdict is None or verdict is Verdict.MISSING
        if verdict in LEFT_ALONE:
            failed = verdict is Verdict.STALE_ID and self.request.type is not RequestType.UNSPECIFIED
            return KafkaError.KAFKA_STORAGE_ERROR if failed else LEFT_ALONE[verdict], _Then.NOTHING
        if gone and key in self.in_the_way:
            return KafkaError.INCONSISTENT_TOPIC_ID, _Then.NOTHING
        hosted = self.node_id in state.replicas
        if state.leader_epoch < current or self.memory.known.is_older(key, topic.topic_id, state.leader_epoch):
            return KafkaError.STALE_CONTROLLER_EPOCH, _Then.NOTHING
        news = self.request.is_kraft_controller or verdict is Verdict.NO_ID or (gone and hosted)
        if state.leader_epoch == current and not news:
            # A follower in a request without a topic ID goes on without one, as after a downgrade of the controller.
            forgets = topic.topic_id is None and state.leader != self.node_id and not gone
            has_id = isinstance(judged, Judged) and judged.row.disk_topic_id != ""
            return KafkaError.NONE if forgets and has_id else KafkaError.STALE_CONTROLLER_EPOCH, _Then.NOTHING
        if not hosted:
            return KafkaError.UNKNOWN_TOPIC_OR_PARTITION, _Then.NOTHING
        if gone:
            return KafkaError.NONE, _Then.MAKE
        needs_id = verdict is Verdict.NO_ID and topic.topic_id is not None
        return KafkaError.NONE, _Then.WRITE_TOPIC_ID if needs_id else _Then.REMEMBER

    def _find_staged(self) -> None:
        """Look for the wanted replicas among the staged ones, unless the request names no topic IDs by its type."""
        wanted = self.decision.wanted
        if self.request.type is RequestType.UNSPECIFIED:
            return
        back = candidates(self.store, ((each.at, each.topic_id) for each in wanted if each.topic_id is not None))
        if back == {}:
            return
        vacated = {(each.entry.log_dir, each.entry.path) for each in self.decision.stale.values()}
        vacated |= {(copy.log_dir, copy.path) for copy in self.decision.copies}
        for index, each in enumerate(wanted):
            if back is None:
                if each.topic_id is not None:
                    wanted[index] = each._replace(problem=KafkaError.KAFKA_STORAGE_ERROR)
            elif each.at in back:
                found = first_restorable(self.store, each.at, back[each.at], vacated)
                wanted[index] = each._replace(staged=found.staged, back=found.back, problem=found.problem)
