"""The seven states of a replica, and the only ways from one to another (CREATE-3; Kafka 2.8).

::

    NonExistent -> New                                       assigned
    New, Online, Offline, DeletionIneligible -> Online       it follows or leads
    New, Online, Offline, DeletionIneligible -> Offline      its broker or its disk is away, or it is to be deleted
    Offline -> DeletionStarted                               its broker was told to delete it
    DeletionStarted -> DeletionSuccessful                    the broker did
    Offline, DeletionStarted -> DeletionIneligible           the broker could not; to be tried again
    DeletionSuccessful -> NonExistent                        it is gone

Owns the table and who is in which state; what happens on the way is in ``replica_machine``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from layout.topic import TopicPartition
from reconciler.simulator.controller.errors import IllegalTransitionError


class Replica(NamedTuple):
    """One partition on one broker."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"{self.partition} on broker {self.broker}"


class ReplicaState(Enum):
    """Where a replica stands, as the controller knows it."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


_SERVING = frozenset({ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE})

VALID_PREVIOUS: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: _SERVING,
    ReplicaState.OFFLINE: _SERVING,
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
"""For each state, those from which it can be reached."""


class ReplicaStates:
    """Which replica is in which state; one that was never heard of does not exist.

    The topics that live share one table. A topic that was deleted at once has its own, so that its replicas and those
    of a topic re-created under its name are never taken for each other (KIP516-10).
    """

    def __init__(self) -> None:
        self._states: dict[Replica, ReplicaState] = {}

    def of(self, replica: Replica) -> ReplicaState:
        """The state of a replica."""
        return self._states.get(replica, ReplicaState.NON_EXISTENT)

    def check(self, replica: Replica, state: ReplicaState) -> None:
        """Refuse a transition that is none.

        Raises:
            IllegalTransitionError: the state cannot be reached from the one it is in; the message names both.
        """
        found = self.of(replica)
        if found not in VALID_PREVIOUS[state]:
            expected = ", ".join(sorted(each.value for each in VALID_PREVIOUS[state]))
            raise IllegalTransitionError(
                f"replica {replica} is in state {found.value} and cannot go to {state.value}; "
                f"bring it into one of these first: {expected}"
            )

    def move(self, replica: Replica, state: ReplicaState) -> None:
        """Put a replica into another state; one that does not exist any more is forgotten.

        Raises:
            IllegalTransitionError: as :meth:`check`.
        """
        self.check(replica, state)
        if state is ReplicaState.NON_EXISTENT:
            del self._states[replica]
        else:
            self._states[replica] = state

    def begin(self, replica: Replica, state: ReplicaState) -> None:
        """Take over what is known at the beginning; no transition is asked for then."""
        self._states[replica] = state

    def take(self, replica: Replica) -> ReplicaState:
        """Hand a replica over to another table: its state, which is forgotten here."""
        return self._states.pop(replica, ReplicaState.NON_EXISTENT)

    def found_in(self, *states: ReplicaState) -> list[Replica]:
        """The replicas that are in one of some states, sorted."""
        return sorted(replica for replica, state in self._states.items() if state in states)

    def among(self, replicas: Iterable[Replica], *states: ReplicaState) -> list[Replica]:
        """Those of some replicas that are in one of some states, in the same order."""
        return [replica for replica in replicas if self.of(replica) in states]
