"""The table of states, and every pair of states of partitions and of replicas."""

from __future__ import annotations

from enum import Enum
from itertools import product

import pytest

from layout.topic import TopicPartition
from reconciler.simulator.controller.settings import IllegalTransitionError
from reconciler.simulator.controller.states import (
    AssignedReplica,
    PartitionState,
    PartitionStates,
    ReplicaState,
    ReplicaStates,
    StateTable,
)


class Light(Enum):
    OFF = "Off"
    RED = "Red"
    GREEN = "Green"


class Lights(StateTable[str, Light]):
    kind = "light"

    def __init__(self) -> None:
        off, red, green = (frozenset({each}) for each in Light)
        super().__init__({Light.RED: off | green, Light.GREEN: red, Light.OFF: red}, Light.OFF)


def test_what_was_never_heard_of_and_what_is_gone_do_not_exist() -> None:
    lights = Lights()
    assert lights.of("a") is Light.OFF
    lights.move("a", Light.RED)
    assert lights.of("a") is Light.RED
    lights.move("a", Light.OFF)
    assert (lights.of("a"), lights.found_in(*Light)) == (Light.OFF, [])


def test_an_illegal_transition_names_both_states_and_those_that_would_do_and_changes_nothing() -> None:
    # CREATE-3
    lights = Lights()
    with pytest.raises(IllegalTransitionError, match=r"light a is in state Off and cannot go to Green.*first: Red"):
        lights.move("a", Light.GREEN)
    assert lights.of("a") is Light.OFF


def test_what_is_taken_over_at_the_beginning_needs_no_transition_and_is_found_sorted() -> None:
    lights = Lights()
    for name in ("b", "c", "a"):
        lights.begin(name, Light.GREEN)
    lights.move("c", Light.RED)
    assert lights.found_in(Light.GREEN) == ["a", "b"]
    assert lights.found_in(Light.RED, Light.GREEN) == ["a", "b", "c"]


PARTITION = TopicPartition("orders", 0)
NO_PARTITION, NEW_PARTITION, ONLINE_PARTITION, OFFLINE_PARTITION = (
    PartitionState.NON_EXISTENT,
    PartitionState.NEW,
    PartitionState.ONLINE,
    PartitionState.OFFLINE,
)
LEGAL_OF_PARTITIONS = {
    (NO_PARTITION, NEW_PARTITION),
    *((NEW_PARTITION, ONLINE_PARTITION), (ONLINE_PARTITION, ONLINE_PARTITION), (OFFLINE_PARTITION, ONLINE_PARTITION)),
    *(
        (NEW_PARTITION, OFFLINE_PARTITION),
        (ONLINE_PARTITION, OFFLINE_PARTITION),
        (OFFLINE_PARTITION, OFFLINE_PARTITION),
    ),
    (OFFLINE_PARTITION, NO_PARTITION),
}
PAIRS_OF_PARTITION_STATES = list(product(PartitionState, PartitionState))


def partition_in_state(state: PartitionState) -> PartitionStates:
    states = PartitionStates()
    if state is not NO_PARTITION:
        states.begin(PARTITION, state)
    return states


# CREATE-3
@pytest.mark.parametrize(("one", "other"), [pair for pair in PAIRS_OF_PARTITION_STATES if pair in LEGAL_OF_PARTITIONS])
def test_a_legal_transition_puts_the_partition_into_the_other_state(one, other) -> None:
    states = partition_in_state(one)
    states.move(PARTITION, other)
    assert states.of(PARTITION) is other


# CREATE-3
@pytest.mark.parametrize(
    ("one", "other"), [pair for pair in PAIRS_OF_PARTITION_STATES if pair not in LEGAL_OF_PARTITIONS]
)
def test_an_illegal_transition_is_refused_with_both_states_and_leaves_the_partition_where_it_is(one, other) -> None:
    states = partition_in_state(one)
    with pytest.raises(IllegalTransitionError) as refused:
        states.move(PARTITION, other)
    assert f"state {one.value} and cannot go to {other.value}" in str(refused.value)
    assert "orders-0" in str(refused.value)
    assert states.of(PARTITION) is one


def test_partitions_are_found_by_their_states_in_a_fixed_order() -> None:
    states = PartitionStates()
    for topic, state in (("c", NEW_PARTITION), ("a", OFFLINE_PARTITION), ("b", ONLINE_PARTITION)):
        states.begin(TopicPartition(topic, 0), state)
    assert states.found_in(NEW_PARTITION, OFFLINE_PARTITION) == [TopicPartition("a", 0), TopicPartition("c", 0)]


def test_a_partition_that_is_gone_is_found_nowhere() -> None:
    states = partition_in_state(OFFLINE_PARTITION)
    states.move(PARTITION, NO_PARTITION)
    assert states.found_in(*PartitionState) == []


REPLICA = AssignedReplica(TopicPartition("orders", 0), 2)
GONE, NEW, ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE = (
    ReplicaState.NON_EXISTENT,
    ReplicaState.NEW,
    ReplicaState.ONLINE,
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.DELETION_INELIGIBLE,
)
LEGAL_OF_REPLICAS = {
    (GONE, NEW),
    *((NEW, ONLINE), (ONLINE, ONLINE), (OFFLINE, ONLINE), (INELIGIBLE, ONLINE)),
    *((NEW, OFFLINE), (ONLINE, OFFLINE), (OFFLINE, OFFLINE), (INELIGIBLE, OFFLINE)),
    (OFFLINE, STARTED),
    (STARTED, SUCCESSFUL),
    *((OFFLINE, INELIGIBLE), (STARTED, INELIGIBLE)),
    (SUCCESSFUL, GONE),
}
PAIRS_OF_REPLICA_STATES = list(product(ReplicaState, ReplicaState))


def replica_in_state(state: ReplicaState) -> ReplicaStates:
    states = ReplicaStates()
    if state is not GONE:
        states.begin(REPLICA, state)
    return states


# CREATE-3
@pytest.mark.parametrize(("one", "other"), [pair for pair in PAIRS_OF_REPLICA_STATES if pair in LEGAL_OF_REPLICAS])
def test_a_legal_transition_puts_the_replica_into_the_other_state(one, other) -> None:
    states = replica_in_state(one)
    states.move(REPLICA, other)
    assert states.of(REPLICA) is other


# CREATE-3
@pytest.mark.parametrize(("one", "other"), [pair for pair in PAIRS_OF_REPLICA_STATES if pair not in LEGAL_OF_REPLICAS])
def test_an_illegal_transition_is_refused_with_both_states_and_leaves_the_replica_where_it_is(one, other) -> None:
    states = replica_in_state(one)
    with pytest.raises(IllegalTransitionError) as refused:
        states.move(REPLICA, other)
    assert f"state {one.value} and cannot go to {other.value}" in str(refused.value)
    assert "orders-0 on broker 2" in str(refused.value)
    assert states.of(REPLICA) is one


def test_a_replica_that_is_taken_is_forgotten_here_and_keeps_its_state_there() -> None:
    states = replica_in_state(ONLINE)
    assert states.take(REPLICA) is ONLINE
    assert states.of(REPLICA) is GONE
    assert states.take(REPLICA) is GONE


def test_replicas_are_found_by_their_states_in_a_fixed_order() -> None:
    states, others = (
        replica_in_state(ONLINE),
        [AssignedReplica(TopicPartition("orders", 0), broker) for broker in (3, 1)],
    )
    for each in others:
        states.begin(each, OFFLINE)
    assert states.found_in(OFFLINE) == others[::-1]
    assert states.among([*others, REPLICA], OFFLINE) == others
