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
from reconciler.simulator.controller.state_table import StateTable


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
