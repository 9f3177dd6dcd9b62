"""The evidence says what shows that data without a topic ID is of the present topic, or that nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import meta_properties
from layout.meta_properties import MetaProperties
from reconciler.next_steps import UncertainReplica
from reconciler.plan import uncertain_replicas
from tests.reconciler.plan.repair_broker import CLUSTER, OLD, ORDERS, OTHER, RepairBroker, done, reason

FILE = "orders-0/partition.metadata"
WRITTEN = [("write_partition_metadata", FILE)]


@pytest.fixture
def broker(tmp_path: Path) -> RepairBroker:
    """A broker in KRaft mode, with a replica that is in order."""
    made = RepairBroker(tmp_path)
    made.replica("other-0", OTHER)
    made.wanted("other", 0, topic_id=OTHER)
    return made


def on_zookeeper(broker: RepairBroker) -> None:
    for path in broker.log_dirs:
        data = meta_properties.encode(MetaProperties(0, CLUSTER, 1, None), "today")
        (path / meta_properties.FILE_NAME).write_bytes(data)


def uncertain(broker: RepairBroker) -> list[UncertainReplica]:
    return list(uncertain_replicas(broker.view([broker.state()])))


def unshown(broker: RepairBroker) -> list[str]:
    """Names of replicas that a repair would give an ID that nothing shows to be theirs."""
    return [each.name for each in uncertain(broker) if each.is_repaired]


@pytest.mark.parametrize(("on_disk", "in_metadata"), [(0, 0), (3, 3), (1, 5), (None, 0)])
@pytest.mark.parametrize("data", [None, b"", b"\0" * 43])
def test_an_epoch_that_is_not_above_the_metadatas_is_no_evidence(
    broker: RepairBroker, data: bytes | None, on_disk: int | None, in_metadata: int
) -> None:
    broker.replica("orders-0", data, epoch=on_disk)
    broker.wanted("orders", 0, nodes=(1, 2), isr=(2,), leader_epoch=in_metadata)
    (action,) = broker.plan().actions
    assert "nothing shows that its data is of the present topic and not of an older one" in action.why
    (found,) = uncertain(broker)
    assert (found.name, found.is_repaired, found.can_go, found.waits) == ("orders-0", True, True, False)


def test_an_epoch_above_the_metadatas_is_evidence_against_it_even_where_it_counts_as_in_sync(
    broker: RepairBroker,
) -> None:
    broker.replica("orders-0", None, epoch=6)
    broker.wanted("orders", 0, nodes=(1, 2), leader_epoch=5)
    plan = broker.plan()
    assert done(plan) == []
    assert "last leader epoch is 6 and the metadata's is 5" in reason(plan, "orders-0")


def test_what_counts_as_in_sync_is_of_the_present_topic(broker: RepairBroker) -> None:
    broker.replica("orders-0", None, epoch=5)
    broker.wanted("orders", 0, nodes=(1, 2), leader_epoch=5)
    plan = broker.plan()
    assert done(plan) == WRITTEN
    assert "the metadata counts it as in sync" in plan.actions[0].why
    assert uncertain(broker) == []


def test_another_replica_with_the_id_is_evidence_in_kraft_mode_alone(broker: RepairBroker) -> None:
    """A broker in ZooKeeper mode keeps what is stale, refused, beside a replica of the topic made anew."""
    broker.replica("orders-0", None, epoch=0)
    broker.replica("orders-1")
    broker.wanted("orders", 0, 1, nodes=(1, 2), isr=(2,), leader_epoch=0)
    assert unshown(broker) == []
    on_zookeeper(broker)
    assert unshown(broker) == ["orders-0"]


def test_a_release_that_writes_no_file_is_no_sign_of_an_older_topic(broker: RepairBroker) -> None:
    on_zookeeper(broker)
    broker.replica("orders-0", None, epoch=0)
    broker.replica("orders-1", None, epoch=0)
    broker.wanted("orders", 0, 1, nodes=(1, 2), isr=(2,), leader_epoch=0)
    plan = broker.plan()
    assert len(plan.actions) == 2
    assert "2 of this broker's 3 replicas lack the file as well" in plan.actions[0].why
    assert unshown(broker) == []


def test_the_operator_may_say_whose_data_it_is(broker: RepairBroker) -> None:
    broker.replica("orders-0", None, epoch=9)
    broker.wanted("orders", 0, nodes=(1, 2), isr=(2,), leader_epoch=0)
    plan = broker.plan(adopt=["orders"])
    assert done(plan) == WRITTEN
    assert "--adopt-topic-id vouches for the data" in plan.actions[0].why


def test_what_no_repair_takes_on_can_go_only_where_it_is_not_the_only_copy(broker: RepairBroker) -> None:
    for partition in range(4):
        broker.replica(f"orders-{partition}", b"", epoch=9)
    broker.replica("gone-0", b"")
    broker.wanted("orders", 0, nodes=(1, 2), isr=(2,), leader=2, leader_epoch=0)
    broker.wanted("orders", 1, nodes=(1, 2), isr=(1,), leader=1, leader_epoch=0)
    broker.wanted("orders", 2, nodes=(1, 2), isr=(2,), leader=-1, leader_epoch=0)
    broker.wanted("orders", 3, nodes=(1, 3), isr=(3,), leader=3, leader_epoch=0)
    broker.builder.broker(1, 1, fenced=False, directory_ids=list(map(str, broker.directory_ids)))
    broker.builder.broker(2, 1, fenced=False, directory_ids=[])
    broker.builder.broker(3, 1, fenced=True, directory_ids=[])
    found = {each.name: (each.can_go, each.can_be_adopted) for each in uncertain(broker)}
    assert found == {
        "gone-0": (True, False),
        "orders-0": (True, True),
        "orders-1": (False, True),
        "orders-2": (False, True),
        "orders-3": (False, True),
    }


def test_what_is_certain_once_the_stale_are_staged_waits(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.replica("orders-1", OLD)
    broker.wanted("orders", 0, 1, nodes=(1, 2))
    (found,) = uncertain(broker)
    assert (found.name, found.waits) == ("orders-0", True)


@pytest.mark.parametrize("by_zookeeper", [False, True])
def test_what_is_certain_once_a_directory_has_its_name_again_waits(broker: RepairBroker, by_zookeeper: bool) -> None:
    if by_zookeeper:
        on_zookeeper(broker)
    broker.replica("orders-0", None, epoch=0)
    broker.replica("ordres-1", ORDERS)
    broker.wanted("orders", 0, 1, nodes=(1, 2), isr=(2,), leader_epoch=0)
    (found,) = uncertain(broker)
    assert "is on this broker's disks as topic ordres" in found.reason
    assert (found.name, found.waits, found.is_repaired) == ("orders-0", True, False)
    broker.log_dirs[0].joinpath("ordres-1").rename(broker.log_dirs[0] / "orders-1")
    assert done(broker.plan()) == WRITTEN


def test_what_another_sign_speaks_against_does_not_wait_for_a_name(broker: RepairBroker) -> None:
    broker.replica("orders-0", None, epoch=9)
    broker.replica("ordres-1", ORDERS)
    broker.wanted("orders", 0, 1, nodes=(1, 2), leader_epoch=5)
    (found,) = uncertain(broker)
    assert (found.name, found.waits) == ("orders-0", False)


def test_a_damaged_future_or_stray_replica_is_no_live_one_and_a_duplicate_is_for_its_own_repair(
    broker: RepairBroker,
) -> None:
    name = f"orders-0.{'0' * 32}-future"
    broker.replica(name, b"")
    broker.replica("orders-1", b"")
    broker.replica("orders-1", ORDERS, disk=1)
    broker.wanted("orders", 0, 1)
    (found,) = uncertain(broker)
    assert (found.name, found.is_live) == (name, False)
