"""The states of partitions and replicas, and the legal transitions between them (CREATE-3; Kafka 2.8).

A partition has four states::

    NonExistent -> New                      its topic was created, or it was added
    New, Online, Offline -> Online          it has a leader; again: it gets another
    New, Online, Offline -> Offline         it has none, or its topic is being deleted
    Offline -> NonExistent                  it is gone

A replica has seven::

    NonExistent -> New                                       assigned
    New, Online, Offline, DeletionIneligible -> Online       it follows or leads
    New, Online, Offline, DeletionIneligible -> Offline      its broker or its disk is away, or it is to be deleted
    Offline -> DeletionStarted                               its broker was asked to delete it
    DeletionStarted -> DeletionSuccessful                    the broker did
    Offline, DeletionStarted -> DeletionIneligible           the broker could not; to be tried again
    DeletionSuccessful -> NonExistent                        it is gone

The actions on the way from one state to another are in ``state_machines``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from layout.topic import TopicPartition
from reconciler.simulator.controller.settings import IllegalTransitionError

K = TypeVar("K", bound=Any)
S = TypeVar("S", bound=Enum)


class StateTable(Generic[K, S]):
    """The states of partitions, or of replicas; one that is not in the table does not exist."""

    kind: ClassVar[str]
    """The word for one of them in messages."""

    def __init__(self, valid_previous: Mapping[S, frozenset[S]], non_existent: S) -> None:
        """Start empty: everything is non-existent. ``valid_previous`` says from where each state can be reached."""
        self._valid_previous, self._non_existent = valid_previous, non_existent
        self._states: dict[K, S] = {}

    def of(self, key: K) -> S:
        """Return the state of one of them."""
        return self._states.get(key, self._non_existent)

    def check(self, key: K, state: S) -> None:
        """Refuse an illegal transition.

        Raises:
            IllegalTransitionError: the state cannot be reached from the present one; the message names both.
        """
        found = self.of(key)
        if found not in self._valid_previous[state]:
            expected = ", ".join(sorted(each.value for each in self._valid_previous[state]))
            raise IllegalTransitionError(
                f"{self.kind} {key} is in state {found.value} and cannot go to {state.value}; "
                f"bring it into one of these first: {expected}"
            )

    def checked(self, keys: Iterable[K], state: S) -> list[K]:
        """Return all of some keys, or refuse as :meth:`check` before any of them is moved."""
        wanted = list(keys)
        for each in wanted:
            self.check(each, state)
        return wanted

    def move(self, key: K, state: S) -> None:
        """Change a state; the non-existent state removes the entry.

        Raises:
            IllegalTransitionError: as :meth:`check`.
        """
        self.check(key, state)
        if state is self._non_existent:
            del self._states[key]
        else:
            self._states[key] = state

    def begin(self, key: K, state: S) -> None:
        """Enter a state at the beginning, without any transition."""
        self._states[key] = state

    def found_in(self, *states: S) -> list[K]:
        """Return the keys that are in one of some states, sorted."""
        return sorted(key for key, state in self._states.items() if state in states)


class PartitionState(Enum):
    """The state of a partition, as the controller knows it."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


_LIVING = frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE})

PREVIOUS_PARTITION_STATES: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: _LIVING,
    PartitionState.OFFLINE: _LIVING,
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}
"""For each state, the states from which it can be reached."""


class PartitionStates(StateTable[TopicPartition, PartitionState]):
    """The states of all partitions."""

    kind = "partition"

    def __init__(self) -> None:
        super().__init__(PREVIOUS_PARTITION_STATES, PartitionState.NON_EXISTENT)


class AssignedReplica(NamedTuple):
    """One partition on one broker."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"{self.partition} on broker {self.broker}"


class ReplicaState(Enum):
    """The state of a replica, as the controller knows it."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


_SERVING = frozenset({ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE})

PREVIOUS_REPLICA_STATES: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: _SERVING,
    ReplicaState.OFFLINE: _SERVING,
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
"""For each state, the states from which it can be reached."""


class ReplicaStates(StateTable[AssignedReplica, ReplicaState]):
    """The states of replicas.

    All live topics share one table. A topic that was deleted at once has a table of its own, so that its replicas are
    never taken for the replicas of a topic re-created under its name (KIP516-10).
    """

    kind = "replica"

    def __init__(self) -> None:
        super().__init__(PREVIOUS_REPLICA_STATES, ReplicaState.NON_EXISTENT)

    def take(self, replica: AssignedReplica) -> ReplicaState:
        """Remove a replica, and return its state, for another table."""
        return self._states.pop(replica, ReplicaState.NON_EXISTENT)

    def among(self, replicas: Iterable[AssignedReplica], *states: ReplicaState) -> list[AssignedReplica]:
        """Return the replicas that are in one of some states, in the same order."""
        return [replica for replica in replicas if self.of(replica) in states]
