"""All commands: batches, only on the active controller, and all or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.zookeeper import CONTROLLER_EPOCH
from tests.reconciler.simulator.admin.admin_bench import AdminBench

ORDERS = TopicPartition("orders", 0)
COMMANDS: dict[str, Callable[[AdminBench], CommandOutcome]] = {
    "create": lambda bench: bench.admin.create_topics([CreateTopic("new", 1, 1)])["new"],
    "alter": lambda bench: bench.admin.alter_topics([AlterTopic("orders", 2)])["orders"],
    "configure": lambda bench: bench.admin.alter_topics([AlterTopic("orders", configs={"segment.ms": "1"})])["orders"],
    "delete": lambda bench: bench.admin.delete_topics(["orders"])["orders"],
    "reassign": lambda bench: bench.admin.reassign([(ORDERS, (2,))])[ORDERS],
    "elect": lambda bench: bench.admin.elect_preferred([ORDERS])[ORDERS],
    "create namespace": lambda bench: bench.admin.create_namespace("net"),
    "delete namespace": lambda bench: bench.admin.delete_namespace("org"),
    "configure namespace": lambda bench: bench.admin.alter_namespace_configs("org", {"segment.ms": "1"}),
    "move": lambda bench: bench.admin.move_topic("orders", "org"),
}


@pytest.fixture
def orders(bench: AdminBench) -> AdminBench:
    bench.admin.create_namespace("org")
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [0, 1]})])
    bench.lead(ORDERS, 1, [0, 1])
    return bench


@pytest.mark.parametrize("command", COMMANDS)
def test_the_active_controller_carries_it_out(orders: AdminBench, command: str) -> None:  # KIP4-1
    assert COMMANDS[command](orders) == CommandOutcome()


@pytest.mark.parametrize("command", COMMANDS)
def test_any_other_broker_refuses_with_41_and_changes_nothing(orders: AdminBench, command: str) -> None:  # KIP4-1
    orders.controller.active = False
    before = orders.zookeeper.dump()
    assert COMMANDS[command](orders).error is KafkaError.NOT_CONTROLLER
    assert orders.zookeeper.dump() == before and not orders.controller.reassigned


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"reassign"}))
def test_a_controller_that_was_replaced_without_knowing_changes_nothing(orders: AdminBench, command: str) -> None:
    # A reassignment is written by the controller itself, under the same condition.
    orders.others.set(CONTROLLER_EPOCH, b"2")
    before = orders.zookeeper.dump()
    assert COMMANDS[command](orders).error is KafkaError.NOT_CONTROLLER
    assert orders.zookeeper.dump() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_session_that_is_over_refuses_with_41(orders: AdminBench, command: str) -> None:
    orders.session.expire()
    assert COMMANDS[command](orders).error is KafkaError.NOT_CONTROLLER


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_one_transaction(orders: AdminBench, command: str) -> None:
    before = orders.zookeeper.nodes.last_transaction
    assert COMMANDS[command](orders) == CommandOutcome()
    assert orders.zookeeper.nodes.last_transaction - before == (0 if command == "reassign" else 1)
