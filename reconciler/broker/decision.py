"""What a control request changes and answers: decided as a whole, before anything is changed. Pure.

A decision is made from the request, from a snapshot of the disks and from the epochs of earlier requests. Its actions
are those of plans, in the order in which they are carried out::

    stage             stale copies of partitions that are live twice, then stale replicas: each makes room
    restore           what lies staged under the wanted topic ID
    write_topic_id    for replicas without one
    create            what is wanted and lies nowhere; the store chooses the log dir

:func:`reconciler.broker.carry_out.carry_out` does them and :mod:`reconciler.broker.dry_run` foresees them. Both give
one :class:`ActionResult` for each action, from which the broker makes its answer. Source: DESIGN §4, §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from layout.ids import TopicId
from logstore import KafkaError
from logstore.staging import Staged
from logstore.store import Entry, Replica
from reconciler.broker.memory import BrokerMemory, Epochs, KeptBack, PartitionKey
from reconciler.plan import Action, ActionKind
from reconciler.protocol import ControlRequest, PartitionError, TopicErrors

NOT_NAMED: Final = -1
"""In place of the index of an answer: the request does not name the replica."""


class DecidedAction(NamedTuple):
    """One action of a decision, with what the answer to its partition needs.

    Attributes:
        action: its log dir and name are empty for a creation.
        place: index of the answer of its partition, or :data:`NOT_NAMED`.
        otherwise: the answer if a replica cannot be staged.
        leader_epoch: to be remembered when it is done; None: none.
        may_be_elsewhere: whether a disk that fails may hold the replica. A second one would be in the way when the disk
            is back.
        found: the copy to be staged, of a partition that is live twice; or the staged replica to be restored.
        path: where the restored replica will lie, below its log dir.
    """

    action: Action
    place: int = NOT_NAMED
    otherwise: int = KafkaError.KAFKA_STORAGE_ERROR
    leader_epoch: int | None = None
    may_be_elsewhere: bool = False
    found: Replica | Staged | None = None
    path: str = ""

    @property
    def key(self) -> PartitionKey:
        """Topic and partition."""
        return self.action.topic, self.action.partition

    @property
    def wanted_id(self) -> TopicId | None:
        """The topic ID under which the replica is wanted; None: the request names none, or does not want it."""
        return None if self.action.wanted_topic_id is None else TopicId.parse(self.action.wanted_topic_id)

    def done(self, log_dir: str, location: str, due_ms: int | None = None) -> ActionResult:
        """Make the result of an action that is done, or would be."""
        return ActionResult(self.action, log_dir, location, due_ms)

    def failed(self, answer: int, why: str) -> ActionResult:
        """Make the result of an action that is not done."""
        return ActionResult(self.action, answer=answer, why_not=why)


class ActionResult(NamedTuple):
    """What became of an action, or would.

    Attributes:
        action: of the decision.
        log_dir: path of the log dir where the replica lies after it; empty if it is not done, as is the next.
        location: path after it: below the log dir, or as ``logstore staged`` shows it.
        due_ms: when a purge may delete a staged replica, in ms since 1970; None for other kinds.
        answer: the error number with which its partition is answered; None: it is done.
        why_not: why it is not done, one sentence.
    """

    action: Action
    log_dir: str = ""
    location: str = ""
    due_ms: int | None = None
    answer: int | None = None
    why_not: str = ""

    @property
    def topic_id(self) -> str | None:
        """The topic ID of the replica after the action; None: it has none."""
        is_given = self.action.kind in (ActionKind.CREATE, ActionKind.WRITE_TOPIC_ID)
        return self.action.wanted_topic_id if is_given else self.action.topic_id


@dataclass(slots=True)
class Decision:
    """The changes of one request, in the order in which they are made, and its answers.

    Attributes:
        request: from which the decision was made.
        delay: name of the setting that says how long a staged replica waits.
        actions: see the table above.
        answers: error number of each partition, in the order of the request, if every action succeeds.
        epochs: leader epochs to remember of partitions that stay as they are.
        forgotten: partitions whose leader epoch is forgotten.
        kept_back: wanted replicas that may lie staged where a disk refuses to say so.
        remarks: why staged replicas are not restored, for the log.
    """

    request: ControlRequest
    delay: str
    actions: list[DecidedAction] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    epochs: Epochs = field(default_factory=dict)
    forgotten: list[PartitionKey] = field(default_factory=list)
    kept_back: KeptBack = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def keys(self) -> Iterator[PartitionKey]:
        """Yield the partitions of the request, in the order of the answers."""
        return ((topic.topic, each.partition) for topic in self.request.topics for each in topic.partitions)


@dataclass(slots=True)
class Outcome:
    """What became of a decision.

    Attributes:
        results: of each action, in the order of the decision.
        answers: index of an answer → the error number that takes the decided one's place.
    """

    results: list[ActionResult] = field(default_factory=list)
    answers: dict[int, int] = field(default_factory=dict)

    def add(self, decided: DecidedAction, result: ActionResult) -> None:
        """Add the result of the next action; where it is not done, its partition gets that answer."""
        self.results.append(result)
        if result.answer is not None and decided.place != NOT_NAMED:
            self.answers[decided.place] = result.answer


def action_on(
    kind: ActionKind, key: PartitionKey, entry: Entry, wanted_id: str | None, reason: tuple[str, str]
) -> Action:
    """Make an action on a live replica; ``reason`` is the verdict and its evidence."""
    return Action(kind, entry.log_dir, entry.path, *key, entry.topic_id, wanted_id, *reason, inode=entry.inode or None)


def remember(memory: BrokerMemory, decision: Decision, outcome: Outcome) -> list[int]:
    """Update what a broker knows after a request, and return the answers in the order of the request."""
    epochs, answers = memory.epochs, list(decision.answers)
    for place, error in outcome.answers.items():
        answers[place] = error
    for topic, partition in decision.forgotten:
        epochs.get(topic, {}).pop(partition, None)
    failed = {key for place, key in enumerate(decision.keys()) if place in outcome.answers} if outcome.answers else ()
    for topic, known in decision.epochs.items():
        kept = known if not failed else {each: epoch for each, epoch in known.items() if (topic, each) not in failed}
        epochs.setdefault(topic, {}).update(kept)
    memory.kept_back |= decision.kept_back
    for decided, result in zip(decision.actions, outcome.results, strict=True):
        _remember_action(memory, decided, result, answers)
    for name in [name for name, known in epochs.items() if not known]:
        del epochs[name]
    return answers


def _remember_action(memory: BrokerMemory, decided: DecidedAction, result: ActionResult, answers: list[int]) -> None:
    (topic, partition), epochs = decided.key, memory.epochs
    if decided.action.kind is ActionKind.STAGE:
        if result.answer is None and decided.found is None:  # the other copy of a duplicate is live
            epochs.get(topic, {}).pop(partition, None)
        return
    is_answered_well = answers[decided.place] == KafkaError.NONE
    if decided.leader_epoch is not None and is_answered_well:
        epochs.setdefault(topic, {})[partition] = decided.leader_epoch
    if decided.action.kind is ActionKind.RESTORE:
        update = memory.kept_back.discard if is_answered_well else memory.kept_back.add
        update((topic, partition, decided.action.wanted_topic_id or ""))


def answers_by_topic(request: ControlRequest, answers: Iterable[int]) -> tuple[TopicErrors, ...]:
    """Give each partition of a request its answer, in the request's order."""
    left = iter(answers)
    return tuple(
        TopicErrors(
            topic.topic,
            topic.topic_id,
            tuple(PartitionError(each.partition, next(left)) for each in topic.partitions),
        )
        for topic in request.topics
    )
