"""The administrator's instructions and their outcomes as values, and how a batch is carried out (KIP4-1..3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

from layout.errors import LayoutError
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError, check_fields
from reconciler.errors import ReconcilerError, UsageError
from reconciler.simulator.kernel import PartitionMetadata
from reconciler.simulator.placement import AssignmentError

NOT_GIVEN = -1
"""In place of a number that is not given."""

NOT_ASKED = -(1 << 31)
"""In place of the bits of operations, where there are none."""


class CommandRefusedError(ReconcilerError):
    """One instruction cannot be carried out; nothing was changed. ``error`` is Kafka's number for it."""

    def __init__(self, error: KafkaError, message: str) -> None:
        """Keep the number beside the sentence."""
        super().__init__(message)
        self.error = error


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The result of one instruction; NONE: it was written into ZooKeeper, and is being carried out."""

    error: KafkaError = KafkaError.NONE
    message: str = ""


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A new topic, by counts or by an assignment; with an assignment the counts are ignored, as KIP-4 says."""

    topic: str
    partitions: int = NOT_GIVEN
    factor: int = NOT_GIVEN
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Broker IDs of each partition, 0, 1, 2 …; empty: not given."""
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, UsageError)


@dataclass(frozen=True, slots=True)
class AlterTopic:
    """One change of a topic: more partitions, another factor, other replicas, or other configs."""

    topic: str
    partitions: int = NOT_GIVEN
    """The new number, which must be greater than the old one."""
    factor: int = NOT_GIVEN
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """With ``partitions``, the replicas of the new partitions; alone, new replicas of existing ones."""
    configs: Mapping[str, str] = field(default_factory=dict)
    deleted_configs: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_fields(self, UsageError)

    def changes(self) -> list[str]:
        """Name the kinds of changes that are asked for."""
        found = []
        if self.partitions != NOT_GIVEN:
            found.append("partitions")
        if self.factor != NOT_GIVEN:
            found.append("replication factor")
        if self.assignment and self.partitions == NOT_GIVEN:
            found.append("replica assignment")
        if self.configs or self.deleted_configs:
            found.append("configs")
        return found


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A topic by its full name, by its ID, or by both; the empty name and the zero ID are not given."""

    topic: str = ""
    topic_id: TopicId | None = None


GivenTopic: TypeAlias = str | TopicId | TopicKey
GivenPartition: TypeAlias = TopicPartition | tuple[GivenTopic, int]


def key_of(given: GivenTopic) -> TopicKey:
    """Bring a topic that is given in any way into one form, in which the zero ID is None."""
    if isinstance(given, str):
        return TopicKey(given)
    key = TopicKey("", given) if isinstance(given, TopicId) else given
    return TopicKey(key.topic) if key.topic_id is not None and key.topic_id.is_zero else key


def name_of(given: GivenTopic, known: Callable[[], Mapping[str, TopicId | None]]) -> str:
    """The full name of a topic, as requests are fenced (KIP516-8); ``known`` gives all topics, and is called for IDs.

    A name alone is answered as it is, whether there is such a topic or not. A topic without an ID fits every ID.

    Raises:
        CommandRefusedError: 42, neither is given; 100, no topic has the ID; 103, the topic of this name has another,
            or the ID is another topic's.
    """
    key = key_of(given)
    if key.topic_id is None:
        if not key.topic:
            raise CommandRefusedError(
                KafkaError.INVALID_REQUEST, "neither a topic's name nor its ID is given: give one"
            )
        return key.topic
    topics = known()
    own = topics.get(key.topic)
    if key.topic in topics:
        if own in (None, key.topic_id):
            return key.topic
        why = f"{key.topic} has the topic ID {own}, and {key.topic_id} is given; ask for one of them alone"
        raise CommandRefusedError(KafkaError.INCONSISTENT_TOPIC_ID, why)
    owner = next((name for name, topic_id in topics.items() if topic_id == key.topic_id), None)
    if owner is None:
        raise CommandRefusedError(KafkaError.UNKNOWN_TOPIC_ID, f"no topic has the ID {key.topic_id}")
    if key.topic:
        # Without the other's name, which this principal may not be allowed to know.
        why = f"there is no topic {key.topic!r:.80}, and {key.topic_id} is the ID of another; ask for the ID alone"
        raise CommandRefusedError(KafkaError.INCONSISTENT_TOPIC_ID, why)
    return owner


@dataclass(frozen=True, slots=True)
class PartitionDescription(PartitionMetadata):
    """A partition as a broker knows it."""

    error: KafkaError = KafkaError.NONE
    """5: it has no leader that is alive, and ``leader`` is -1."""
    lags: Mapping[int, int] = field(default_factory=dict)
    """Broker → how many records its replica lacks of the leader's log, -1 until it fetches; only its leader knows."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as a broker knows it: from the controller's last UpdateMetadata, with its configs."""

    topic: str
    error: KafkaError
    topic_id: TopicId | None = None
    partitions: tuple[PartitionDescription, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    """The topic's own configs, without inherited ones."""
    is_internal: bool = False
    """Whether brokers create it for themselves."""
    authorized_operations: int = NOT_ASKED
    """The bits of the operations that the principal may carry out, as ``operation_bits``; -2147483648 beside an
    error, which is Kafka's answer where nobody asked."""
    message: str = ""
    """Why there is an error."""


Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found", bound=Hashable)
Instruction = TypeVar("Instruction")


def carry_out(
    batch: Sequence[Instruction], key: Callable[[Instruction], Key], do: Callable[[Instruction], None]
) -> dict[Key, CommandOutcome]:
    """Carry out the instructions of a batch in order; a refused instruction does not stop the others (KIP4-1, KIP4-2).

    Instructions that share a key, their subject, are all refused.

    Returns:
        The outcomes in the order of the batch.
    """
    times = Counter(key(instruction) for instruction in batch)
    outcomes: dict[Key, CommandOutcome] = {}
    for instruction in batch:
        about = key(instruction)
        if times[about] > 1:
            text = f"{about} has {times[about]} instructions in one batch, and may have one; send them in turn"
            outcomes[about] = CommandOutcome(KafkaError.INVALID_REQUEST, text)
        else:
            outcomes[about] = outcome_of(partial(do, instruction))
    return outcomes


def resolve(batch: Iterable[Key], find: Callable[[Key], Found]) -> tuple[dict[Key, Found], dict[Key, CommandOutcome]]:
    """Find what each instruction of a batch is about.

    Returns:
        The subjects that were found, and the outcomes of those that were refused, each by what was given.
    """
    found: dict[Key, Found] = {}
    refused: dict[Key, CommandOutcome] = {}

    def put(given: Key) -> None:
        found[given] = find(given)

    for given in batch:
        outcome = outcome_of(partial(put, given))
        if outcome.error is not KafkaError.NONE:
            refused[given] = outcome
    return found, refused


def outcome_of(do: Callable[[], None]) -> CommandOutcome:
    """Carry out one instruction; a refusal becomes its outcome."""
    try:
        do()
    except (CommandRefusedError, AssignmentError) as error:
        return CommandOutcome(error.error, str(error))
    except LayoutError as error:
        return CommandOutcome(KafkaError.INVALID_TOPIC_EXCEPTION, str(error))
    return CommandOutcome()
