"""The four states of a partition, and the only ways from one to another (CREATE-3; Kafka 2.8).

::

    NonExistent -> New                      its topic was created, or it was added
    New, Online, Offline -> Online          it has a leader; again: it gets another
    New, Online, Offline -> Offline         it has none, or its topic is being deleted
    Offline -> NonExistent                  it is gone

Owns the table and who is in which state; what happens on the way is in ``partition_machine``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from layout.topic import TopicPartition
from reconciler.simulator.controller.errors import IllegalTransitionError


class PartitionState(Enum):
    """Where a partition stands, as the controller knows it."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


_LIVING = frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE})

VALID_PREVIOUS: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: _LIVING,
    PartitionState.OFFLINE: _LIVING,
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}
"""For each state, those from which it can be reached."""


class PartitionStates:
    """Which partition is in which state; one that was never heard of does not exist."""

    def __init__(self) -> None:
        self._states: dict[TopicPartition, PartitionState] = {}

    def of(self, partition: TopicPartition) -> PartitionState:
        """The state of a partition."""
        return self._states.get(partition, PartitionState.NON_EXISTENT)

    def check(self, partition: TopicPartition, state: PartitionState) -> None:
        """Refuse a transition that is none.

        Raises:
            IllegalTransitionError: the state cannot be reached from the one it is in; the message names both.
        """
        found = self.of(partition)
        if found not in VALID_PREVIOUS[state]:
            expected = ", ".join(sorted(each.value for each in VALID_PREVIOUS[state]))
            raise IllegalTransitionError(
                f"partition {partition} is in state {found.value} and cannot go to {state.value}; "
                f"bring it into one of these first: {expected}"
            )

    def move(self, partition: TopicPartition, state: PartitionState) -> None:
        """Put a partition into another state; one that does not exist any more is forgotten.

        Raises:
            IllegalTransitionError: as :meth:`check`.
        """
        self.check(partition, state)
        if state is PartitionState.NON_EXISTENT:
            del self._states[partition]
        else:
            self._states[partition] = state

    def begin(self, partition: TopicPartition, state: PartitionState) -> None:
        """Take over what a controller finds when it is elected; no transition is asked for then."""
        self._states[partition] = state

    def found_in(self, *states: PartitionState) -> list[TopicPartition]:
        """The partitions that are in one of some states, sorted."""
        return sorted(partition for partition, state in self._states.items() if state in states)
