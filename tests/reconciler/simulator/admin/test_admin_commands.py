"""Changes that an instruction asks for, and batches: each instruction by itself, none for a subject named twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from layout.errors import InvalidNameError
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.admin.commands import CommandRefusedError, carry_out, outcome_of
from reconciler.simulator.placement import AssignmentError
from reconciler.simulator.zookeeper import Create, topic_path
from reconciler.sources.zookeeper import encode_topic
from tests.reconciler.simulator.admin.admin_bench import AdminBench


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


FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)

ROWS: dict[str, tuple[KafkaError, Callable[[AdminBench], CommandOutcome], str]] = {
    "TopicAlreadyExists": (
        KafkaError.TOPIC_ALREADY_EXISTS,
        lambda bench: bench.admin.create_topics([CreateTopic("orders", 1, 1)])["orders"],
        "orders exists already; take another name",
    ),
    "InvalidArgumentTopicName": (
        KafkaError.INVALID_TOPIC_EXCEPTION,
        lambda bench: bench.admin.create_topics([CreateTopic("a b", 1, 1)])["a b"],
        "'a b' is no topic name: it has a character other than a-z A-Z 0-9 . _ -",
    ),
    "InvalidArgumentPartitions, create": (
        KafkaError.INVALID_PARTITIONS,
        lambda bench: bench.admin.create_topics([CreateTopic("new", -5, 1)])["new"],
        "-5 partitions: at least 1 is needed",
    ),
    "InvalidArgumentPartitions, not given": (
        KafkaError.INVALID_PARTITIONS,
        lambda bench: bench.admin.create_topics([CreateTopic("new", factor=1)])["new"],
        "new: give the number of partitions, or an assignment",
    ),
    "InvalidArgumentPartitions, alter": (
        KafkaError.INVALID_PARTITIONS,
        lambda bench: bench.admin.alter_topics([AlterTopic("orders", -5)])["orders"],
        "orders: -5 is no number of partitions; ask for more than the 2 that it has",
    ),
    "DecreasePartitionsNotAllowed": (
        KafkaError.INVALID_PARTITIONS,
        lambda bench: bench.admin.alter_topics([AlterTopic("orders", 1)])["orders"],
        "orders has 2 partitions and cannot be altered to 1: ask for more than it has",
    ),
    "InvalidArgumentReplicationFactor": (
        KafkaError.INVALID_REPLICATION_FACTOR,
        lambda bench: bench.admin.create_topics([CreateTopic("new", 1, 4)])["new"],
        "replication factor 4 with 3 brokers: start more, or ask for fewer replicas",
    ),
    "InvalidArgumentReplicaAssignment, create": (
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        lambda bench: bench.admin.create_topics([CreateTopic("new", assignment={0: [1, 1]})])["new"],
        "the replica assignment cannot be used: partition 0 has a broker twice: [1, 1]",
    ),
    "InvalidArgumentReplicaAssignment, reassign": (
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        lambda bench: bench.admin.reassign([(FIRST, (0, 9))])[FIRST],
        "orders-0 cannot have the replicas [0, 9]: brokers [9] are not there",
    ),
    "InvalidArgumentTopicConfig": (
        KafkaError.INVALID_CONFIG,
        lambda bench: bench.admin.alter_topics([AlterTopic("orders", configs={"segment.ms": "soon"})])["orders"],
        "segment.ms is 1 or more, not 'soon'",
    ),
    "PreferredReplicaLeaderElectionInProgress": (
        KafkaError.INVALID_REQUEST,
        lambda bench: [bench.admin.elect_preferred([FIRST])[FIRST] for _ in range(2)][-1],
        "an election of preferred leaders is running for orders-0; wait",
    ),
    "ReassignPartitionsInProgress": (
        KafkaError.REASSIGNMENT_IN_PROGRESS,
        lambda bench: bench.admin.reassign([(SECOND, (0,))])[SECOND],
        "orders-1 is being reassigned already: it gets [1] and loses [2]; wait, or cancel that first",
    ),
    "MultipleInstructionsForOneTopic": (
        KafkaError.INVALID_REQUEST,
        lambda bench: bench.admin.alter_topics([AlterTopic("orders", 3, configs={"segment.ms": "1"})])["orders"],
        "orders: one change at a time, and this changes partitions and configs; split it",
    ),
    "MultipleTopicInstructionsInOnebatch": (
        KafkaError.INVALID_REQUEST,
        lambda bench: bench.admin.alter_topics([AlterTopic("orders", 3), AlterTopic("orders", 4)])["orders"],
        "orders has 2 instructions in one batch, and may have one; send them in turn",
    ),
    "InvalidArgumentPreferredReplicaElectionData": (
        KafkaError.INVALID_REQUEST,
        lambda bench: bench.admin.elect_preferred([FIRST, FIRST])[FIRST],
        "orders-0 has 2 instructions in one batch, and may have one; send them in turn",
    ),
    "no instruction at all": (
        KafkaError.INVALID_REQUEST,
        lambda bench: bench.admin.alter_topics([AlterTopic("orders")])["orders"],
        "orders: this changes nothing; give a number of partitions, a replication factor, an assignment, or configs",
    ),
    "a node that somebody else changed meanwhile": (
        KafkaError.INVALID_REQUEST,
        lambda bench: outcome_of(lambda: bench.admin.node.commit([Create(topic_path("orders"))])),
        "something was changed just now; send this again: /brokers/topics/orders exists already; "
        "set its data, or delete it first",
    ),
}
"""Each row of KIP-4's error table, and ours with the same numbers: the number, a command, and what it is answered."""


@pytest.mark.parametrize("row", ROWS)
def test_every_row_of_the_error_table_has_a_message_that_names_what_was_found(bench: AdminBench, row: str) -> None:
    """KIP4-2."""
    error, command, message = ROWS[row]
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2], 1: [2, 0]})])
    bench.lead(FIRST, 2, [1, 2])
    if row == "ReassignPartitionsInProgress":
        data = encode_topic(None, {0: [1, 2], 1: [2, 0, 1]}, {1: [1]}, {1: [2]})
        bench.session.set(topic_path("orders"), data)
    outcome = command(bench)
    assert outcome.error is error
    assert outcome.message.endswith(message)


def test_rows_that_share_a_number_have_messages_of_their_own() -> None:  # KIP4-2
    plain = [(error, re.sub(r"orders(-\d)?|-?\d|new", "", message)) for error, _, message in ROWS.values()]
    twice = [message for message, count in Counter(plain).items() if count > 1]
    # Only the row of KIP-4's older table is the same as one of the newer: a subject that is named twice in a batch.
    assert [error for error, _ in twice] == [KafkaError.INVALID_REQUEST]


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
