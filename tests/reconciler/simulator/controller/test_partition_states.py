from __future__ import annotations

from itertools import product

import pytest

from layout.topic import TopicPartition
from reconciler.simulator.controller.settings import IllegalTransitionError
from reconciler.simulator.controller.states import PartitionState, PartitionStates

PARTITION = TopicPartition("orders", 0)
GONE, NEW, ONLINE, OFFLINE = (
    PartitionState.NON_EXISTENT,
    PartitionState.NEW,
    PartitionState.ONLINE,
    PartitionState.OFFLINE,
)
LEGAL = {
    (GONE, NEW),
    *((NEW, ONLINE), (ONLINE, ONLINE), (OFFLINE, ONLINE)),
    *((NEW, OFFLINE), (ONLINE, OFFLINE), (OFFLINE, OFFLINE)),
    (OFFLINE, GONE),
}
EVERY = list(product(PartitionState, PartitionState))


def in_state(state: PartitionState) -> PartitionStates:
    states = PartitionStates()
    if state is not GONE:
        states.begin(PARTITION, state)
    return states


# CREATE-3
@pytest.mark.parametrize(("one", "other"), [pair for pair in EVERY if pair in LEGAL])
def test_a_legal_transition_puts_the_partition_into_the_other_state(one, other) -> None:
    states = in_state(one)
    states.move(PARTITION, other)
    assert states.of(PARTITION) is other


# CREATE-3
@pytest.mark.parametrize(("one", "other"), [pair for pair in EVERY if pair not in LEGAL])
def test_an_illegal_transition_is_refused_with_both_states_and_leaves_the_partition_where_it_is(one, other) -> None:
    states = in_state(one)
    with pytest.raises(IllegalTransitionError) as refused:
        states.move(PARTITION, other)
    assert f"state {one.value} and cannot go to {other.value}" in str(refused.value)
    assert "orders-0" in str(refused.value)
    assert states.of(PARTITION) is one


def test_partitions_are_found_by_their_states_in_a_fixed_order() -> None:
    states = PartitionStates()
    for topic, state in (("c", NEW), ("a", OFFLINE), ("b", ONLINE)):
        states.begin(TopicPartition(topic, 0), state)
    assert states.found_in(NEW, OFFLINE) == [TopicPartition("a", 0), TopicPartition("c", 0)]


def test_a_partition_that_is_gone_is_found_nowhere() -> None:
    states = in_state(OFFLINE)
    states.move(PARTITION, GONE)
    assert states.found_in(*PartitionState) == []
