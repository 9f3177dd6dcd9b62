"""Changes that an instruction asks for, and batches: each instruction by itself, none for a subject named twice."""

from __future__ import annotations

import pytest

from layout.errors import InvalidNameError
from logstore import KafkaError
from reconciler.simulator.admin import AlterTopic, CommandOutcome
from reconciler.simulator.admin.commands import CommandRefusedError, carry_out, outcome_of
from reconciler.simulator.controller import AssignmentError


@pytest.mark.parametrize(
    ("wanted", "changes"),
    [
        (AlterTopic("t"), []),
        (AlterTopic("t", 3), ["partitions"]),
        (AlterTopic("t", 3, assignment={2: [1]}), ["partitions"]),
        (AlterTopic("t", assignment={0: [1]}), ["replica assignment"]),
        (AlterTopic("t", factor=2), ["replication factor"]),
        (AlterTopic("t", configs={"segment.ms": "1"}), ["configs"]),
        (AlterTopic("t", deleted_configs=["segment.ms"]), ["configs"]),
        (AlterTopic("t", 3, 2, {0: [1]}, {"a": "b"}), ["partitions", "replication factor", "configs"]),
    ],
)
def test_minus_one_is_absent_and_all_else_is_a_change(wanted: AlterTopic, changes: list[str]) -> None:  # KIP4-3
    assert wanted.changes() == changes


def test_what_is_named_once_is_carried_out_in_order_and_what_is_named_twice_is_not() -> None:  # KIP4-2
    done: list[str] = []
    outcomes = carry_out(["a", "b", "a", "c"], lambda each: each, done.append)
    assert done == ["b", "c"]
    assert [(key, outcome.error) for key, outcome in outcomes.items()] == [
        ("a", KafkaError.INVALID_REQUEST),
        ("b", KafkaError.NONE),
        ("c", KafkaError.NONE),
    ]


def test_one_that_is_refused_stops_no_other() -> None:  # KIP4-1
    def do(number: int) -> None:
        if number == 2:
            raise CommandRefusedError(KafkaError.INVALID_CONFIG, "no")

    assert carry_out([1, 2, 3], lambda each: each, do) == {
        1: CommandOutcome(),
        2: CommandOutcome(KafkaError.INVALID_CONFIG, "no"),
        3: CommandOutcome(),
    }


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (CommandRefusedError(KafkaError.NOT_CONTROLLER, "text"), 41),
        (AssignmentError(KafkaError.INVALID_PARTITIONS, "text"), 37),
        (InvalidNameError("text"), 17),
    ],
)
def test_each_kind_of_refusal_has_its_number(raised: Exception, error: int) -> None:
    def do() -> None:
        raise raised

    assert outcome_of(do) == CommandOutcome(KafkaError(error), "text")


def test_a_mistake_of_ours_is_not_taken_for_a_refusal() -> None:
    def do() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        outcome_of(do)
