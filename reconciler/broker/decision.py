"""What a control request changes and answers: decided as a whole, before anything is changed.

A decision is made from the request, from what lies on the disks and from the epochs of earlier requests; making it
changes nothing. :func:`reconciler.broker.carry_out.carry_out` makes the changes, and
:func:`reconciler.broker.dry_run.foresee` says where each would lie; both return an :class:`Outcome`, from which the
broker makes its answer. So a dry run and a real request cannot decide differently. Source: DESIGN §4, §6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.staging import Restored, Staged
from logstore.store import Entry, Replica
from reconciler.broker.effects import Effect
from reconciler.broker.judgement import PartitionKey
from reconciler.broker.memory import BrokerMemory, Epochs
from reconciler.protocol import ControlRequest, PartitionError, TopicErrors


class StaleReplica(NamedTuple):
    """A live replica that is to be staged: where it lies, and the verdict and evidence for its record."""

    entry: Entry
    verdict: str
    evidence: str


class NamelessReplica(NamedTuple):
    """A live replica that is to get its topic ID; ``place`` is the index of its answer."""

    place: int
    at: TopicPartition
    topic_id: TopicId
    leader_epoch: int


class WantedReplica(NamedTuple):
    """A replica that is wanted and is not live: it is restored, or created empty.

    Attributes:
        place: index of its answer.
        at: by full name.
        topic_id: under which it is wanted; None: the request names none.
        leader_epoch: of the request.
        may_be_elsewhere: whether a disk that fails may hold it. A second one would be in the way when the disk is back.
        staged: the replica that is restored; None: an empty one is created.
        back: where the restored one will lie.
        problem: why neither is done; None: nothing is known that prevents it.
    """

    place: int
    at: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int
    may_be_elsewhere: bool
    staged: Staged | None = None
    back: Restored | None = None
    problem: KafkaError | None = None

    @property
    def may_come_back(self) -> bool:
        """Whether the replica lies staged, or may lie staged."""
        return self.staged is not None or self.problem is not None


@dataclass(slots=True)
class Decision:
    """The changes of one request, in the order in which they are made, and its answers.

    Attributes:
        request: from which the decision was made.
        delay: name of the setting that says how long a staged replica waits.
        copies: copies to be staged, of partitions that are live in several log dirs. If one cannot be staged, its
            partition is answered with 56.
        stale: replicas to be staged.
        nameless: replicas that get their topic ID.
        wanted: replicas to be restored or created.
        answers: error number of each partition, in the order of the request, if every change succeeds.
        unless_staged: replica to be staged → the index of its answer, and the answer if it cannot be staged.
        epochs: leader epochs to remember of partitions that stay as they are.
        forgotten: partitions whose leader epoch is forgotten.
    """

    request: ControlRequest
    delay: str
    copies: dict[Replica, tuple[str, str]] = field(default_factory=dict)
    stale: dict[PartitionKey, StaleReplica] = field(default_factory=dict)
    nameless: list[NamelessReplica] = field(default_factory=list)
    wanted: list[WantedReplica] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    unless_staged: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    epochs: Epochs = field(default_factory=dict)
    forgotten: list[PartitionKey] = field(default_factory=list)

    def keys(self) -> Iterator[PartitionKey]:
        """Yield the partitions of the request, in the order of the answers."""
        return ((topic.topic, each.partition) for topic in self.request.topics for each in topic.partitions)


@dataclass(slots=True)
class Outcome:
    """What became of a decision.

    Attributes:
        staged: replicas that were staged.
        answers: index of an answer → the error number that takes the decided one's place.
        effects: every change, in the order in which it was made.
    """

    staged: set[PartitionKey] = field(default_factory=set)
    answers: dict[int, int] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)

    def note_unstaged(self, decision: Decision, refused: Collection[PartitionKey]) -> None:
        """Note the answers of the replicas that could not be staged, and of ``refused`` ones."""
        self.answers |= {
            place: answer for key, (place, answer) in decision.unless_staged.items() if key not in self.staged
        }
        if refused:
            storage_error = int(KafkaError.KAFKA_STORAGE_ERROR)
            self.answers |= {place: storage_error for place, key in enumerate(decision.keys()) if key in refused}

    def may_be_made(self, wanted: WantedReplica, *, some_offline: bool) -> bool:
        """Whether a wanted replica may be restored or created now; notes its answer where it may not.

        Args:
            wanted: of the decision.
            some_offline: whether a log dir is offline.
        """
        if wanted.place in self.answers:
            return False
        problem = KafkaError.KAFKA_STORAGE_ERROR if some_offline and wanted.may_be_elsewhere else wanted.problem
        if problem is not None:
            self.answers[wanted.place] = problem
        return problem is None


def remember(memory: BrokerMemory, decision: Decision, outcome: Outcome) -> list[int]:
    """Update what a broker knows after a request, and return the answers in the order of the request."""
    epochs, answers, other = memory.epochs, list(decision.answers), set[PartitionKey]()
    for place, error in outcome.answers.items():
        answers[place] = error
    if outcome.answers:
        other = {key for place, key in enumerate(decision.keys()) if place in outcome.answers}
    for topic, partition in (*outcome.staged, *decision.forgotten):
        epochs.get(topic, {}).pop(partition, None)
    for topic, known in decision.epochs.items():
        kept = known if not other else {each: epoch for each, epoch in known.items() if (topic, each) not in other}
        epochs.setdefault(topic, {}).update(kept)
    made = [(each.at, each.place, each.leader_epoch) for each in decision.nameless]
    made += [(each.at, each.place, each.leader_epoch) for each in decision.wanted]
    for at, place, leader_epoch in made:
        if answers[place] == KafkaError.NONE:
            epochs.setdefault(at.topic, {})[at.partition] = leader_epoch
    for wanted in decision.wanted:
        if wanted.topic_id is not None and wanted.may_come_back:
            update = memory.kept_back.discard if answers[wanted.place] == KafkaError.NONE else memory.kept_back.add
            update((wanted.at, wanted.topic_id))
    for name in [name for name, known in epochs.items() if not known]:
        del epochs[name]
    return answers


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
