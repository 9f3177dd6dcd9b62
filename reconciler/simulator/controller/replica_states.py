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
from reconciler.simulator.controller.state_table import StateTable


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
