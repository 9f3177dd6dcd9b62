"""Writes in the name of the controller: whole, and only while it is the controller."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.zookeeper import CONTROLLER_EPOCH, Create, Operation, Set
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
