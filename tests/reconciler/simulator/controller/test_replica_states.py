from __future__ import annotations

from itertools import product

import pytest

from layout.topic import TopicPartition
from reconciler.simulator.controller.settings import IllegalTransitionError
from reconciler.simulator.controller.states import Replica, ReplicaState, ReplicaStates

REPLICA = Replica(TopicPartition("orders", 0), 2)
GONE, NEW, ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE = (
    ReplicaState.NON_EXISTENT,
    ReplicaState.NEW,
    ReplicaState.ONLINE,
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.DELETION_INELIGIBLE,
)
LEGAL = {
    (GONE, NEW),
    *((NEW, ONLINE), (ONLINE, ONLINE), (OFFLINE, ONLINE), (INELIGIBLE, ONLINE)),
    *((NEW, OFFLINE), (ONLINE, OFFLINE), (OFFLINE, OFFLINE), (INELIGIBLE, OFFLINE)),
    (OFFLINE, STARTED),
    (STARTED, SUCCESSFUL),
    *((OFFLINE, INELIGIBLE), (STARTED, INELIGIBLE)),
    (SUCCESSFUL, GONE),
}
EVERY = list(product(ReplicaState, ReplicaState))


def in_state(state: ReplicaState) -> ReplicaStates:
    states = ReplicaStates()
    if state is not GONE:
        states.begin(REPLICA, state)
    return states


# CREATE-3
@pytest.mark.parametrize(("one", "other"), [pair for pair in EVERY if pair in LEGAL])
def test_a_legal_transition_puts_the_replica_into_the_other_state(one, other) -> None:
    states = in_state(one)
    states.move(REPLICA, other)
    assert states.of(REPLICA) is other


# CREATE-3
@pytest.mark.parametrize(("one", "other"), [pair for pair in EVERY if pair not in LEGAL])
def test_an_illegal_transition_is_refused_with_both_states_and_leaves_the_replica_where_it_is(one, other) -> None:
    states = in_state(one)
    with pytest.raises(IllegalTransitionError) as refused:
        states.move(REPLICA, other)
    assert f"state {one.value} and cannot go to {other.value}" in str(refused.value)
    assert "orders-0 on broker 2" in str(refused.value)
    assert states.of(REPLICA) is one


def test_a_replica_that_is_taken_is_forgotten_here_and_keeps_its_state_there() -> None:
    states = in_state(ONLINE)
    assert states.take(REPLICA) is ONLINE
    assert states.of(REPLICA) is GONE
    assert states.take(REPLICA) is GONE


def test_replicas_are_found_by_their_states_in_a_fixed_order() -> None:
    states, others = in_state(ONLINE), [Replica(TopicPartition("orders", 0), broker) for broker in (3, 1)]
    for each in others:
        states.begin(each, OFFLINE)
    assert states.found_in(OFFLINE) == others[::-1]
    assert states.among([*others, REPLICA], OFFLINE) == others
