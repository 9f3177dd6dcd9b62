"""Which thing is in which state, and which transitions are legal: for partitions and replicas alike (CREATE-3).

The four states of a partition, and the only ways from one to another (CREATE-3; Kafka 2.8).

::

    NonExistent -> New                      its topic was created, or it was added
    New, Online, Offline -> Online          it has a leader; again: it gets another
    New, Online, Offline -> Offline         it has none, or its topic is being deleted
    Offline -> NonExistent                  it is gone

Owns the table and who is in which state; what happens on the way is in ``partition_machine``.

The seven states of a replica, and the only ways from one to another (CREATE-3; Kafka 2.8).

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
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from layout.topic import TopicPartition
from reconciler.simulator.controller.settings import IllegalTransitionError

K = TypeVar("K", bound=Any)
S = TypeVar("S", bound=Enum)


class StateTable(Generic[K, S]):
    """The states of things of one kind; one that was never heard of does not exist."""

    kind: ClassVar[str]
    """What such a thing is called in messages."""

    def __init__(self, valid_previous: Mapping[S, frozenset[S]], non_existent: S) -> None:
        """Begin with nothing.

        Args:
            valid_previous: for each state, those from which it can be reached.
            non_existent: the state of whatever is not in the table.
        """
        self._valid_previous, self._non_existent = valid_previous, non_existent
        self._states: dict[K, S] = {}

    def of(self, key: K) -> S:
        """The state that it is in."""
        return self._states.get(key, self._non_existent)

    def check(self, key: K, state: S) -> None:
        """Refuse a transition that is none.

        Raises:
            IllegalTransitionError: the state cannot be reached from the one it is in; the message names both.
        """
        found = self.of(key)
        if found not in self._valid_previous[state]:
            expected = ", ".join(sorted(each.value for each in self._valid_previous[state]))
            raise IllegalTransitionError(
                f"{self.kind} {key} is in state {found.value} and cannot go to {state.value}; "
                f"bring it into one of these first: {expected}"
            )

    def move(self, key: K, state: S) -> None:
        """Put it into another state; one that does not exist any more is forgotten.

        Raises:
            IllegalTransitionError: as :meth:`check`.
        """
        self.check(key, state)
        if state is self._non_existent:
            del self._states[key]
        else:
            self._states[key] = state

    def begin(self, key: K, state: S) -> None:
        """Take over what is known at the beginning; no transition is asked for then."""
        self._states[key] = state

    def found_in(self, *states: S) -> list[K]:
        """Those that are in one of some states, sorted."""
        return sorted(key for key, state in self._states.items() if state in states)


class PartitionState(Enum):
    """Where a partition stands, as the controller knows it."""

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
"""For each state, those from which it can be reached."""


class PartitionStates(StateTable[TopicPartition, PartitionState]):
    """Which partition is in which state."""

    kind = "partition"

    def __init__(self) -> None:
        super().__init__(PREVIOUS_PARTITION_STATES, PartitionState.NON_EXISTENT)


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

PREVIOUS_REPLICA_STATES: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: _SERVING,
    ReplicaState.OFFLINE: _SERVING,
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
"""For each state, those from which it can be reached."""


class ReplicaStates(StateTable[Replica, ReplicaState]):
    """Which replica is in which state.

    The topics that live share one table. A topic that was deleted at once has its own, so that its replicas and those
    of a topic re-created under its name are never taken for each other (KIP516-10).
    """

    kind = "replica"

    def __init__(self) -> None:
        super().__init__(PREVIOUS_REPLICA_STATES, ReplicaState.NON_EXISTENT)

    def take(self, replica: Replica) -> ReplicaState:
        """Hand a replica over to another table: its state, which is forgotten here."""
        return self._states.pop(replica, ReplicaState.NON_EXISTENT)

    def among(self, replicas: Iterable[Replica], *states: ReplicaState) -> list[Replica]:
        """Those of some replicas that are in one of some states, in the same order."""
        return [replica for replica in replicas if self.of(replica) in states]
