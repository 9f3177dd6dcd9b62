"""The command that gives a topic another number of partitions, and what it warns of (KIP694-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandOutcome
from reconciler.simulator.admin.delete_partitions import PartitionOutcome

UNDER_CHANGE = "WARNING: The topic is currently under changes"
SWITCHED_OFF = (
    "WARNING: This feature is only enabled with Metadata version above 10 and delete.topic.partition.enable turned on"
)
GROWING = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages "
    "will be affected"
)

_BESIDE_ERRORS = {
    KafkaError.REASSIGNMENT_IN_PROGRESS: UNDER_CHANGE,
    KafkaError.TOPIC_DELETION_DISABLED: SWITCHED_OFF,
}


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """What became of the command."""

    outcome: CommandOutcome
    going: tuple[int, ...] = ()
    """The partitions that will go."""
    warnings: tuple[str, ...] = ()
    """In the proposal's words."""


def outcome_of_more(outcome: CommandOutcome) -> PartitionCount:
    """The answer where more partitions were asked for."""
    grows = outcome.error is KafkaError.NONE
    return PartitionCount(outcome, warnings=(GROWING,) if grows else _warnings(outcome))


def outcome_of_fewer(outcomes: Sequence[PartitionOutcome]) -> PartitionCount:
    """The answer where fewer partitions were asked for."""
    outcome = outcomes[0].outcome
    going = tuple(each.partition for each in outcomes) if outcome.error is KafkaError.NONE else ()
    return PartitionCount(outcome, going, _warnings(outcome))


def _warnings(outcome: CommandOutcome) -> tuple[str, ...]:
    warning = _BESIDE_ERRORS.get(outcome.error)
    return () if warning is None else (warning,)
