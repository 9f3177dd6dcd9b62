"""The command for more or fewer partitions, and its warnings."""

from __future__ import annotations

from random import Random

import pytest

from logstore import KafkaError
from reconciler.simulator.admin import Admin, CommandOutcome, CreateTopic
from reconciler.simulator.admin.partition_count import GROWING, SWITCHED_OFF, UNDER_CHANGE, PartitionCount
from reconciler.simulator.controller import FewerPartitionsSettings, decode_request
from reconciler.simulator.zookeeper import delete_partitions_path
from tests.reconciler.simulator.admin.admin_bench import AdminBench


@pytest.fixture
def admin(bench: AdminBench) -> Admin:
    bench.admin.create_topics([CreateTopic("orders", 4, 1)])
    settings = FewerPartitionsSettings(enabled=True)
    return Admin(
        bench.controller,
        lambda: bench.session,
        bench.metadata,
        bench.timers,
        random=Random(1),
        fewer_partitions=settings,
    )


def test_more_partitions_are_added_with_a_warning_of_keys(bench: AdminBench, admin: Admin) -> None:  # KIP694-5
    assert admin.set_partitions("orders", 5) == PartitionCount(CommandOutcome(), (), (GROWING,))
    assert sorted(bench.topic("orders").partitions) == [0, 1, 2, 3, 4]


def test_fewer_partitions_go_with_the_delay_that_was_given(bench: AdminBench, admin: Admin) -> None:  # KIP694-5
    assert admin.set_partitions("orders", 2, 7_000) == PartitionCount(CommandOutcome(), (2, 3), ())
    noted = decode_request(bench.session.get(delete_partitions_path("orders")).data)
    assert noted is not None and (noted.total, noted.delay_ms) == (2, 7_000)


def test_a_topic_under_change_is_refused_with_a_warning_both_ways(admin: Admin) -> None:  # KIP694-5
    admin.set_partitions("orders", 3, 7_000)
    for total in (2, 9):
        found = admin.set_partitions("orders", total)
        assert (found.outcome.error, found.warnings) == (KafkaError.REASSIGNMENT_IN_PROGRESS, (UNDER_CHANGE,))


def test_while_it_is_switched_off_the_warning_says_so(bench: AdminBench, admin: Admin) -> None:  # KIP694-5
    found = bench.admin.set_partitions("orders", 2)
    assert (found.outcome.error, found.going, found.warnings) == (73, (), (SWITCHED_OFF,))


@pytest.mark.parametrize(("topic", "total", "error"), [("orders", 4, 37), ("orders", 0, 37), ("nothing", 2, 3)])
def test_what_is_neither_more_nor_fewer_is_refused(admin: Admin, topic: str, total: int, error: int) -> None:
    found = admin.set_partitions(topic, total)
    assert (found.outcome.error, found.going, found.warnings) == (error, (), ())


def test_a_session_that_is_over_is_told(bench: AdminBench, admin: Admin) -> None:
    bench.session.expire()
    assert admin.set_partitions("orders", 2).outcome.error is KafkaError.NOT_CONTROLLER
