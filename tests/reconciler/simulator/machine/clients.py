"""Helpers for tests of clients: brokers that know a topic, and metadata of it."""

from __future__ import annotations

from layout.ids import TopicId
from reconciler.protocol import (
    UpdateMetadataBroker,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataTopic,
)
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.machine import ClientMetadata
from tests.reconciler.simulator.machine.brokers import ALL, A, Brokers


def tell(
    brokers: Brokers,
    leader: int = 1,
    *,
    topic_id: TopicId | None = A,
    mode: PartitionMode = PartitionMode.READ_WRITE,
    to: tuple[int, ...] = ALL,
    epoch: int = 0,
) -> None:
    """Tell brokers what clients may know of partition 0 of orders; the epoch is its leader's."""
    partition = UpdateMetadataPartition(0, 1, leader, epoch, ALL, 0, ALL, (), int(mode))
    live = tuple(map(UpdateMetadataBroker, ALL))
    update = UpdateMetadataRequest(9, 1, (UpdateMetadataTopic("orders", topic_id, (partition,)),), live)
    for node_id in to:
        brokers.ask(node_id, update)


def metadata_of(brokers: Brokers, endpoint: str) -> ClientMetadata:
    """A client that asked already."""
    found = ClientMetadata(endpoint, ALL, brokers.world.network, brokers.world.timers(endpoint))
    found.refresh()
    brokers.run(100)
    return found
