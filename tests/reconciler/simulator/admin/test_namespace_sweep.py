"""Namespaces that were deleted go when their last topic has gone."""

from __future__ import annotations

from reconciler.simulator.admin import CommandOutcome, CreateTopic
from reconciler.simulator.admin.namespace_sweep import NamespaceSweep
from reconciler.simulator.zookeeper import kafka_paths
from tests.reconciler.simulator.admin.admin_bench import AdminBench, take_away


def test_deletion_takes_the_topics_first_and_then_the_namespace(apache: AdminBench) -> None:  # KIP37-3
    apache.admin.create_topics([CreateTopic("org:apache:kafka:orders", 1, 1), CreateTopic("org:apache:keep", 1, 1)])
    assert apache.admin.delete_namespace("org:apache:kafka") == CommandOutcome()
    apache.timers.run()
    assert kafka_paths.topics_to_delete(apache.session) == ["org:apache:kafka:orders"]
    assert "org:apache:kafka" in apache.admin.list_namespaces()
    take_away(apache)
    assert apache.admin.list_namespaces() == ["org", "org:apache"]
    assert apache.admin.list_topics() == ["org:apache:keep"]
    assert apache.session.children(kafka_paths.DELETE_NAMESPACES) == []


def test_the_next_controller_sweeps_what_the_last_one_did_not(apache: AdminBench) -> None:
    apache.admin.delete_namespace("org:apache:kafka")
    apache.controller.active = False
    apache.timers.run()
    assert "org:apache:kafka" in apache.admin.list_namespaces()
    apache.controller.active, apache.controller.epoch = True, 2
    apache.others.set(kafka_paths.CONTROLLER_EPOCH, b"2")
    apache.timers.run()
    assert "org:apache:kafka" not in apache.admin.list_namespaces()


def test_a_controller_with_a_new_session_sweeps_when_it_is_asked(apache: AdminBench) -> None:
    apache.admin.delete_namespace("org:apache:kafka")
    apache.session.expire()
    apache.timers.run()
    apache.session = apache.zookeeper.session("broker-0")
    assert apache.admin.list_namespaces() == ["org", "org:apache"]


def test_in_a_session_that_is_over_nothing_is_watched_or_swept(apache: AdminBench) -> None:
    apache.session.expire()
    apache.admin.start()
    assert apache.zookeeper.watches == {}


def test_one_sweep_takes_the_inner_tiers_before_the_outer_ones(bench: AdminBench) -> None:
    bench.admin.create_namespace("org:apache:kafka")
    bench.admin.delete_namespace("org", recursive=True)
    assert NamespaceSweep(bench.admin.node).sweep() == ["org:apache:kafka", "org:apache", "org"]
    assert bench.session.children(kafka_paths.TOPICS) == []
