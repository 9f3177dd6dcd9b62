"""Topics created and grown under KRaft's placement: brokers that are away are fenced, and known by their racks."""

from __future__ import annotations

from random import Random

import pytest

from reconciler.simulator.admin import Admin, AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.placement import KnownBroker, Placement
from reconciler.simulator.zookeeper import kafka_paths
from tests.reconciler.simulator.admin.admin_bench import AdminBench

RACKS = {0: "a", 1: "a", 2: "b", 3: "c"}


@pytest.fixture
def kraft() -> AdminBench:
    """Brokers 0, 1, 2 are up, and broker 3, alone in its rack, is away."""
    bench = AdminBench({0: "a", 1: "a", 2: "b"})
    bench.admin = Admin(
        bench.controller,
        lambda: bench.session,
        bench.metadata,
        bench.timers,
        random=Random(7),
        placement=Placement.KRAFT,
        registered=RACKS,
    )
    return bench


def create(bench: AdminBench, wanted: CreateTopic) -> CommandOutcome:
    return bench.admin.create_topics([wanted])[wanted.topic]


def alter(bench: AdminBench, wanted: AlterTopic) -> CommandOutcome:
    return bench.admin.alter_topics([wanted])[wanted.topic]


def test_a_registered_broker_without_a_session_is_fenced_until_it_has_one(kraft: AdminBench) -> None:
    up = [KnownBroker(number, rack) for number, rack in RACKS.items()]
    assert kraft.admin.node.known_brokers() == [*up[:3], KnownBroker(3, "c", fenced=True)]
    kraft.join(3, "c")
    assert kraft.admin.node.known_brokers() == up


def test_without_registrations_only_brokers_with_a_session_are_known(bench: AdminBench) -> None:
    assert bench.admin.node.known_brokers() == [KnownBroker(0), KnownBroker(1), KnownBroker(2)]


def test_a_topic_is_spread_over_all_racks_and_led_by_brokers_that_are_up(kraft: AdminBench) -> None:  # CREATE-2, KIP4-3
    assert create(kraft, CreateTopic("orders", 12, 3)) == CommandOutcome()
    for replicas in kraft.topic("orders").partitions.values():
        assert {RACKS[each] for each in replicas} == {"a", "b", "c"} and replicas[0] != 3


def test_a_topic_grows_by_the_same_rules(kraft: AdminBench) -> None:  # KIP4-3
    create(kraft, CreateTopic("orders", assignment={0: [0, 1, 2]}))
    assert alter(kraft, AlterTopic("orders", 9)) == CommandOutcome()
    partitions = kraft.topic("orders").partitions
    assert partitions.pop(0) == (0, 1, 2) and sorted(partitions) == list(range(1, 9))
    assert all(3 in replicas[1:] for replicas in partitions.values())


def test_a_greater_factor_is_a_reassignment_and_takes_brokers_that_are_up_alone(kraft: AdminBench) -> None:
    create(kraft, CreateTopic("orders", assignment={0: [0]}))
    outcome = alter(kraft, AlterTopic("orders", factor=4))
    assert (outcome.error, "with 3 brokers" in outcome.message) == (38, True)
    assert alter(kraft, AlterTopic("orders", factor=3)) == CommandOutcome()
    ((replicas,),) = (asked.values() for asked in kraft.controller.reassigned)
    assert replicas is not None and sorted(replicas) == [0, 1, 2]


@pytest.mark.parametrize(
    ("wanted", "error", "reason"),
    [
        (CreateTopic("new", 1, 5), 38, "Unable to replicate the partition 5 time(s): The target replication factor"),
        (CreateTopic("new", 1, 0), 38, "Invalid replication factor 0: the replication factor must be positive."),
        (CreateTopic("new", 0, 0), 38, "Invalid replication factor 0: the replication factor must be positive."),
        (CreateTopic("new", 0, 1), 37, "Number of partitions was set to an invalid non-positive value."),
        (CreateTopic("new", assignment={0: [0, 9]}), 39, "includes broker 9, but no such broker is registered"),
        (CreateTopic("new", assignment={0: [3]}), 39, "for partition 0 are fenced: start one of [3]"),
        (CreateTopic("new", assignment={0: [1, 1]}), 39, "twice"),
    ],
)
def test_what_kraft_refuses_changes_nothing(kraft: AdminBench, wanted: CreateTopic, error: int, reason: str) -> None:
    before = kraft.zookeeper.dump()
    outcome = create(kraft, wanted)
    assert (outcome.error, reason in outcome.message) == (error, True), outcome.message
    assert kraft.zookeeper.dump() == before


def test_by_hand_new_partitions_may_be_on_a_fenced_broker_with_another(kraft: AdminBench) -> None:  # KIP4-3
    create(kraft, CreateTopic("orders", assignment={0: [0, 3]}))
    assert alter(kraft, AlterTopic("orders", 2, assignment={1: [3, 2]})) == CommandOutcome()
    outcome = alter(kraft, AlterTopic("orders", 3, assignment={2: [3, 9]}))
    assert (outcome.error, "includes broker 9" in outcome.message) == (39, True)
    assert kraft.topic("orders").partitions == {0: (0, 3), 1: (3, 2)}


def test_a_rack_that_a_broker_registers_with_goes_before_the_one_that_was_known(kraft: AdminBench) -> None:
    kraft.others.delete(kafka_paths.broker_path(2))
    kraft.join(2, "z")
    assert kraft.admin.node.known_brokers()[2] == KnownBroker(2, "z")
