"""Decide a LeaderAndIsr request: which replicas are staged, restored and created, and the answers (DESIGN §4). Pure.

Staging comes first, in one step: a replica of a re-created topic must be staged before its successor can be created.
Each partition is answered in Kafka's order (FACTS §4.2), and new replicas are created at the end.
Source: KIP516-4, -5, -6, -11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum, auto
from itertools import islice

from logstore import STALE_DELAY, KafkaError
from logstore.store import Replica, entry_of, replica_of
from reconciler.broker.decision import NOT_NAMED, DecidedAction, Decision, action_on
from reconciler.broker.judgement import LOOKS_UNWANTED, Judged, Judgement, OfflineReplica, judge
from reconciler.broker.memory import BrokerMemory, PartitionKey
from reconciler.broker.restorable import RestorableReplica, choose_restorable
from reconciler.broker.snapshot import DiskSnapshot
from reconciler.plan import Action, ActionKind
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
    request: LeaderAndIsrRequest, node_id: int, present: DiskSnapshot, memory: BrokerMemory
) -> Decision:
    """Decide what a request changes and answers.

    The request is checked, and its epochs are not stale; ``memory``, of earlier requests, is only read.
    """
    return _LeaderAndIsrDecision(request, node_id, present, memory).decide()


class _Then(Enum):
    """What follows for the replica of a partition that is answered with no error."""

    NOTHING = auto()
    REMEMBER = auto()
    WRITE_TOPIC_ID = auto()
    MAKE = auto()


class _LeaderAndIsrDecision:
    """The decision about one LeaderAndIsr request, while it is made."""

    def __init__(self, request: LeaderAndIsrRequest, node_id: int, present: DiskSnapshot, memory: BrokerMemory) -> None:
        self.request, self.node_id, self.present, self.memory = request, node_id, present, memory
        self.decision = Decision(request, STALE_DELAY)
        self.stages = STAGED_BY[request.type]
        self.is_by_hand = bool(memory.known.reached)
        self.in_the_way: set[PartitionKey] = set()
        self.vacated: set[tuple[str, str]] = set()
        """Log dir and path of the replicas that are staged."""
        self.staged: list[DecidedAction] = []
        self.nameless: list[DecidedAction] = []
        self.wanted: list[tuple[TopicState, PartitionState, Judged, int]] = []

    def decide(self) -> Decision:
        """Judge every replica as it will be when the stale copies are staged, then answer each partition."""
        copies = self._stage_stale_copies()
        judged = judge(self.request, self.node_id, self.present)
        self.in_the_way = self._under_another_name(judged)
        verdicts = iter(judged.named)
        for topic in self.request.topics:
            self._topic(topic, islice(verdicts, len(topic.partitions)))
        for key, each in judged.others:
            if each.verdict in self.stages:
                self._stage(key, each)
        staged = [*copies, *self.staged]
        if any(self.present.restorable.values()):
            self.vacated = {(each.action.log_dir, each.action.name) for each in staged}
        restored, created = self._restore_or_create()
        self.decision.actions = [*staged, *restored, *self.nameless, *created]
        return self.decision

    def _stage_stale_copies(self) -> list[DecidedAction]:
        """Stage copies under another topic ID than the request's, of partitions that are live in several log dirs.

        Such a copy appears when a topic was re-created while a disk was offline. Copies under the same topic ID are
        left alone: a request does not say which of them is the better one.
        """
        if self.request.type is RequestType.UNSPECIFIED or not self.present.duplicates:
            return []
        ids = {
            (topic.topic, each.partition): topic.topic_id for topic in self.request.topics for each in topic.partitions
        }
        places = {key: place for place, key in enumerate(ids)}
        found = dict[Replica, DecidedAction]()
        for second in self.present.duplicates:
            key = (second.partition.topic, second.partition.partition)
            entry, wanted = self.present.entries.get(key), ids.get(key)
            for copy in (second, None if entry is None else replica_of(second.partition, entry)):
                if wanted is None or copy is None or copy.topic_id in (None, wanted):
                    continue
                if copy.log_dir not in self.present.offline:
                    evidence = f"the disk holds topic ID {copy.topic_id}; it was re-created as {wanted}, here too"
                    reason = (Verdict.STALE_ID.value, evidence)
                    action = action_on(ActionKind.STAGE, key, entry_of(copy), str(wanted), reason)
                    found[copy] = DecidedAction(action, places[key], found=copy)
        self._take_out(found)
        return list(found.values())

    def _take_out(self, copies: Iterable[Replica]) -> None:
        """Go on as if copies were staged; a remaining copy becomes the replica of its partition."""
        entries, duplicates = dict(self.present.entries), list(self.present.duplicates)
        for copy in copies:
            if copy in duplicates:
                duplicates.remove(copy)
                continue
            key = (copy.partition.topic, copy.partition.partition)
            del entries[key]
            others = [each for each in duplicates if each.partition == copy.partition]
            if others:
                duplicates.remove(others[0])
                entries[key] = entry_of(others[0])
        topics = dict[str, dict[str, None]]()  # in the order of the replicas, so that one seed gives one history
        for (topic, _), entry in entries.items():
            if entry.topic_id is not None:
                topics.setdefault(entry.topic_id, {})[topic] = None
        self.present = replace(self.present, entries=entries, duplicates=duplicates, topics=topics)

    def _under_another_name(self, judged: Judgement) -> set[PartitionKey]:
        """Find the partitions, by the request's names, whose data is here under another topic name."""
        distinct = {*judged.named, *(each for _, each in judged.others)}
        if not any(isinstance(each, Judged) and each.verdict is Verdict.RENAMED for each in distinct):
            return set()
        named = zip(self.decision.keys(), judged.named, strict=True)
        return {
            (each.row.id_topic, key[1])
            for key, each in (*named, *judged.others)
            if isinstance(each, Judged) and each.verdict is Verdict.RENAMED
        }

    def _topic(self, topic: TopicState, verdicts: Iterable[Judged | OfflineReplica | None]) -> None:
        """Decide the answer for each partition of a topic, and what follows for its replica."""
        known, remembered = self.memory.epochs.get(topic.topic, {}), dict[int, int]()
        answers = self.decision.answers
        for state, judged in zip(topic.partitions, verdicts, strict=True):
            key, current = (topic.topic, state.partition), known.get(state.partition, _UNKNOWN_EPOCH)
            older = self.is_by_hand and self.memory.known.is_older(key, topic.topic_id, state.leader_epoch)
            answer, then = self._answer(topic, state, judged, current, older=older)
            if isinstance(judged, Judged) and judged.verdict in self.stages and not older:
                self._stage(key, judged, len(answers), answer)
                # What is staged is gone then, and has no leader epoch any more.
                answer, then = self._answer(topic, state, None, _UNKNOWN_EPOCH, older=False)
            if then is _Then.REMEMBER:
                remembered[state.partition] = state.leader_epoch
            elif then is _Then.WRITE_TOPIC_ID and isinstance(judged, Judged):
                self._write_topic_id(topic, state, judged)
            elif then is _Then.MAKE and isinstance(judged, Judged):
                self.wanted.append((topic, state, judged, len(answers)))
            answers.append(answer)
        if remembered:
            self.decision.epochs[topic.topic] = remembered

    def _stage(
        self, key: PartitionKey, judged: Judged, place: int = NOT_NAMED, otherwise: int = KafkaError.KAFKA_STORAGE_ERROR
    ) -> None:
        wanted_id = judged.row.wanted_topic_id or None
        action = action_on(ActionKind.STAGE, key, self.present.entries[key], wanted_id, judged.reason)
        self.staged.append(DecidedAction(action, place, otherwise))

    def _write_topic_id(self, topic: TopicState, state: PartitionState, judged: Judged) -> None:
        key = (topic.topic, state.partition)
        entry, wanted_id = self.present.entries[key], str(topic.topic_id)
        action = action_on(ActionKind.WRITE_TOPIC_ID, key, entry, wanted_id, judged.reason)
        self.nameless.append(DecidedAction(action, len(self.decision.answers), leader_epoch=state.leader_epoch))

    def _answer(
        self,
        topic: TopicState,
        state: PartitionState,
        judged: Judged | OfflineReplica | None,
        current: int,
        *,
        older: bool,
    ) -> tuple[int, _Then]:
        """Return the answer for one partition, in the order of FACTS §4.2, 5, and what follows.

        Args:
            topic: of the request.
            state: of the partition.
            judged: its replica here; None: there is none and none is wanted, or it is staged by then.
            current: the last leader epoch.
            older: whether the request is older than the records of the replica.
        """
        if isinstance(judged, OfflineReplica):
            return KafkaError.KAFKA_STORAGE_ERROR, _Then.NOTHING
        verdict = None if judged is None else judged.verdict
        gone = verdict is None or verdict is Verdict.MISSING
        if verdict in LEFT_ALONE:
            failed = verdict is Verdict.STALE_ID and self.request.type is not RequestType.UNSPECIFIED
            return KafkaError.KAFKA_STORAGE_ERROR if failed else LEFT_ALONE[verdict], _Then.NOTHING
        may_get_the_id = gone or (verdict is Verdict.NO_ID and topic.topic_id is not None)
        if may_get_the_id and (topic.topic, state.partition) in self.in_the_way:
            return KafkaError.INCONSISTENT_TOPIC_ID, _Then.NOTHING
        hosted = self.node_id in state.replicas
        if older or state.leader_epoch < current:
            return KafkaError.STALE_CONTROLLER_EPOCH, _Then.NOTHING
        news = self.request.is_kraft_controller or verdict is Verdict.NO_ID or (gone and hosted)
        if state.leader_epoch == current and not news:
            # A follower in a request without a topic ID goes on without one, as after a downgrade of the controller.
            forgets = topic.topic_id is None and state.leader != self.node_id and not gone
            has_id = judged is not None and judged.row.disk_topic_id != ""
            return KafkaError.NONE if forgets and has_id else KafkaError.STALE_CONTROLLER_EPOCH, _Then.NOTHING
        if not hosted:
            return KafkaError.UNKNOWN_TOPIC_OR_PARTITION, _Then.NOTHING
        if gone:
            return KafkaError.NONE, _Then.MAKE
        needs_id = verdict is Verdict.NO_ID and topic.topic_id is not None
        return KafkaError.NONE, _Then.WRITE_TOPIC_ID if needs_id else _Then.REMEMBER

    def _restore_or_create(self) -> tuple[list[DecidedAction], list[DecidedAction]]:
        """Restore each wanted replica that lies staged under its topic ID, and create the others empty.

        While a disk is offline, only replicas that cannot lie on it are made. A staged replica is restored or left, and
        never replaced by an empty one while a disk refuses to say what it is.
        """
        restored, created = list[DecidedAction](), list[DecidedAction]()
        for topic, state, judged, place in self.wanted:
            key, topic_id = (topic.topic, state.partition), None if topic.topic_id is None else str(topic.topic_id)
            found, problem = (None, None) if topic_id is None else self._look_for_staged(key)
            may_lie_staged = found is not None or problem is not None
            may_be_elsewhere = not state.is_new or (*key, topic_id) in self.memory.kept_back
            if may_be_elsewhere and self.present.offline:
                problem = KafkaError.KAFKA_STORAGE_ERROR
            if problem is not None:
                self.decision.answers[place] = problem
                if may_lie_staged:
                    self.decision.kept_back.add((*key, topic_id or ""))
            elif found is None:
                action = Action(ActionKind.CREATE, "", "", *key, None, topic_id, *judged.reason)
                created.append(DecidedAction(action, place, 0, state.leader_epoch, may_be_elsewhere))
            else:
                staged = found.staged
                held = None if staged.topic_id is None or staged.topic_id.is_zero else str(staged.topic_id)
                lies = (staged.log_dir, staged.location, *key, held, topic_id)
                action = Action(ActionKind.RESTORE, *lies, *judged.reason, inode=staged.inode)
                restored.append(
                    DecidedAction(action, place, 0, state.leader_epoch, may_be_elsewhere, staged, found.path)
                )
        return restored, created

    def _look_for_staged(self, key: PartitionKey) -> tuple[RestorableReplica | None, KafkaError | None]:
        """Return the staged replica to restore, or the problem that prevents it; neither: there is none."""
        if self.request.type is RequestType.UNSPECIFIED:
            return None, None
        known = self.present.restorable.get(key)
        if known is None:
            return None, KafkaError.KAFKA_STORAGE_ERROR
        found, remarks = choose_restorable(known, self.vacated) if known else (None, [])
        self.decision.remarks += remarks
        return found, None if found is None else found.problem
