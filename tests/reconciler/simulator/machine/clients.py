"""Helpers for tests of clients: brokers that know a topic, and metadata of it."""

from __future__ import annotations

from layout.ids import TopicId
from reconciler.simulator.kernel import PartitionMetadata, PartitionMode, TopicMetadata, UpdateMetadataRequest
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
    partition = PartitionMetadata(0, leader, epoch, ALL, ALL, (), mode)
    update = UpdateMetadataRequest(9, 1, -1, (TopicMetadata("orders", topic_id, (partition,)),), ALL)
    for node_id in to:
        brokers.ask(node_id, update)


def metadata_of(brokers: Brokers, endpoint: str) -> ClientMetadata:
    """A client that asked already."""
    found = ClientMetadata(endpoint, ALL, brokers.world.network, brokers.world.timers(endpoint))
    found.refresh()
    brokers.run(100)
    return found
