"""Reads and writes in the name of the controller: transactions, only while it is active, and topics found by name."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.simulator.admin import CreateTopic
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode, find_steady, find_topic
from reconciler.simulator.zookeeper import CONTROLLER_EPOCH, Create, Operation, Set, kafka_paths
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench


@pytest.fixture
def node(bench: AdminBench) -> ControllerNode:
    return bench.admin.node


def refused(node: ControllerNode, *operations: Operation) -> KafkaError:
    with pytest.raises(CommandRefusedError) as caught:
        node.commit(operations)
    return caught.value.error


def test_all_of_it_is_written_with_the_nodes_above(bench: AdminBench, node: ControllerNode) -> None:
    node.commit([*node.with_parents(Create("/new/a/b", b"x")), Set("/controller_epoch", b"1")])
    assert bench.session.get("/new/a/b").data == b"x"
    assert [each.path for each in node.with_parents(Create("/new/a/c")) if isinstance(each, Create)] == ["/new/a/c"]


def test_nothing_is_written_after_another_election(bench: AdminBench, node: ControllerNode) -> None:
    bench.others.set(CONTROLLER_EPOCH, b"2")
    assert refused(node, Create("/new")) is KafkaError.NOT_CONTROLLER
    bench.others.delete(CONTROLLER_EPOCH)
    assert refused(node, Create("/new")) is KafkaError.NOT_CONTROLLER
    assert bench.session.find("/new") is None


def test_nothing_is_written_by_one_that_is_not_active(bench: AdminBench, node: ControllerNode) -> None:
    bench.controller.active = False
    assert refused(node, Create("/new")) is KafkaError.NOT_CONTROLLER
    assert bench.session.find("/new") is None


def test_nothing_is_written_when_a_part_of_it_does_not_fit(bench: AdminBench, node: ControllerNode) -> None:
    for wrong in (Create("/brokers"), Set("/nowhere", b""), Set("/brokers", b"", 7)):
        assert refused(node, Create("/new"), wrong) is KafkaError.INVALID_REQUEST
    assert bench.session.find("/new") is None


@pytest.fixture
def orders(apache: AdminBench) -> AdminBench:
    apache.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2]})])
    return apache


def refusal(bench: AdminBench, topic: str = "orders") -> KafkaError:
    with pytest.raises(CommandRefusedError) as caught:
        find_steady(bench.admin.node, topic)
    return caught.value.error


def test_a_topic_is_found_with_the_version_that_a_write_has_to_find(orders: AdminBench) -> None:
    path = kafka_paths.topic_path("orders")
    orders.session.set(path, orders.session.get(path).data)
    found = find_topic(orders.admin.node, "orders")
    assert (found.topic, found.node.partitions, found.version) == ("orders", {0: (1, 2)}, 1)
    assert find_steady(orders.admin.node, "orders") == found


@pytest.mark.parametrize("topic", ["nothing", "", "org", "org:apache", "orders/partitions", "../orders"])
def test_what_is_no_topic_is_unknown(orders: AdminBench, topic: str) -> None:
    assert refusal(orders, topic) is KafkaError.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_on_its_way_out_or_under_change_is_not_steady(orders: AdminBench) -> None:  # KIP4-2, KIP694-2
    orders.session.create(kafka_paths.delete_partitions_path("orders"))
    assert refusal(orders) is KafkaError.REASSIGNMENT_IN_PROGRESS
    orders.session.delete(kafka_paths.delete_partitions_path("orders"))
    data = znodes.encode_topic(None, {0: [1, 2]}, removing={0: [2]})
    orders.session.set(kafka_paths.topic_path("orders"), data)
    assert refusal(orders) is KafkaError.REASSIGNMENT_IN_PROGRESS
    orders.session.create(kafka_paths.delete_path("orders"))
    assert refusal(orders) is KafkaError.INVALID_TOPIC_EXCEPTION
    assert find_topic(orders.admin.node, "orders").topic == "orders"
