"""What a broker knows of earlier requests when it handles the next one: epochs, and replicas that a bad disk keeps.

A broker that has just started knows nothing, as in Kafka, and believes the first request. For a request that a person
sends, the journals of earlier ones and the records on the disks say more: see :mod:`reconciler.broker.request_journal`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from layout.ids import TopicId
from logstore import check_fields
from reconciler.errors import UsageError

PartitionKey: TypeAlias = tuple[str, int]
"""Full topic name and partition."""

Epochs: TypeAlias = dict[str, dict[int, int]]
"""Topic → partition → last received leader epoch, for the partitions that the broker hosts."""

KeptBack: TypeAlias = set[tuple[str, int, str]]
"""Topic, partition and topic ID of replicas that could not be restored because a disk failed.

Until it is back, no empty replica takes their place."""


@dataclass(frozen=True, slots=True)
class KnownEpochs:
    """Epochs that a request must not be older than.

    Attributes:
        controller_epoch: of the newest request.
        broker_epoch: of the newest request, or of the broker's registration; -1: not known.
        reached: replica → its topic ID, and the leader epoch of its last records.

    Raises:
        UsageError: a value is of another type, or an epoch that no request has.
    """

    controller_epoch: int = 0
    broker_epoch: int = -1
    reached: Mapping[PartitionKey, tuple[str, int]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_fields(self, UsageError, {"controller_epoch": (0, math.inf), "broker_epoch": (-1, math.inf)})

    def is_older(self, key: PartitionKey, topic_id: TopicId | None, leader_epoch: int) -> bool:
        """Whether a request's leader epoch is older than the records of the replica, under the same topic ID."""
        text, epoch = self.reached.get(key, ("", -1))
        return leader_epoch < epoch and text == str(topic_id)


@dataclass(slots=True)
class BrokerMemory:
    """What changes from one request to the next."""

    epochs: Epochs = field(default_factory=dict)
    kept_back: KeptBack = field(default_factory=set)
    known: KnownEpochs = field(default_factory=KnownEpochs)
