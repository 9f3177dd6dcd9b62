"""One machine of a cluster: its faults, and its session after a power cut."""

from __future__ import annotations

from random import Random

import pytest

from logstore import KafkaError
from reconciler.errors import UsageError
from reconciler.simulator.admin import CreateTopic
from reconciler.simulator.cluster import Cluster, ClusterSettings, Member
from reconciler.simulator.controller import ControllerSettings, FewerPartitionsSettings
from reconciler.simulator.machine import BrokerSettings, WatchedNetwork
from reconciler.simulator.placement import KnownBroker, Placement
from tests.reconciler.simulator.conftest import NewCluster


def test_what_may_happen_hangs_on_whether_the_machine_is_up(new_cluster: NewCluster) -> None:
    member = new_cluster().members[2]
    assert {"session", "disk_offline", "disk_full"} == set(member.faults())
    member.shut_down()
    assert {"restart", "disk_replaced", "disk_swapped"} == set(member.faults())


def test_a_session_that_expires_is_followed_by_another_registration(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    member = cluster.members[2]
    before = member.broker.broker.broker_epoch
    assert member.faults()["session"](Random(1)) == "its session expires"
    assert 2 not in cluster.oracle.brokers()
    cluster.run_until("it registers again", lambda: member.broker.broker.broker_epoch > before)


def test_after_a_power_cut_zookeeper_believes_in_the_broker_for_a_while(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    cluster.crash_broker(3)
    cluster.run(for_ms=5_900)
    assert 3 in cluster.oracle.brokers()
    cluster.run(for_ms=200)
    assert 3 not in cluster.oracle.brokers()


def test_a_machine_that_crashes_while_it_is_off_stays_off(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    for _ in range(2):
        cluster.crash_broker(3)
    cluster.run(for_ms=10_000)
    assert not cluster.members[3].running
    assert cluster.members[3].faults()["restart"](Random(1)) == "is switched on"
    assert cluster.members[3].running


def test_its_commands_are_those_of_the_controller_that_runs_there_now(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    member = cluster.active
    assert member is not None
    admin = member.admin
    assert member.admin is admin
    assert admin.create_topics([CreateTopic("orders", 1, 1)])["orders"].error is KafkaError.NONE
    cluster.stop_broker(member.node_id)
    cluster.run_until("another controller", lambda: cluster.active is not None)
    cluster.start_broker(member.node_id)
    assert member.admin is not admin
    outcome = member.admin.create_topics([CreateTopic("clicks", 1, 1)])["clicks"]
    assert outcome.error is KafkaError.NOT_CONTROLLER


@pytest.mark.parametrize("steps", range(0, 40, 3))
def test_a_controller_whose_power_goes_between_any_two_steps_is_followed_by_one_that_finishes(steps: int) -> None:
    """CREATE-4: what was begun is ended by the next controller."""
    with Cluster(ClusterSettings(3), seed=steps) as cluster:
        active = cluster.active
        assert active is not None
        cluster.world.stop_after(active.name, steps)
        cluster.world.guarded(lambda: active.admin.create_topics([CreateTopic("orders", 2, 2)]) and None)
        cluster.run_until("another controller", lambda: cluster.active not in (None, active) or active.running)
        cluster.run(for_ms=20_000)
        member = cluster.active
        assert member is not None
        there = cluster.oracle.topic_id("orders") is not None
        for replicas in cluster.oracle.wanted().values():
            assert replicas[0].leader > 0
        assert bool(cluster.oracle.wanted()) == there


def test_a_step_that_a_test_of_the_controller_forbids_ends_it(new_cluster: NewCluster) -> None:
    seen: list[str] = []

    def noted(step: str) -> bool:
        seen.append(step)
        return False

    settings = ClusterSettings(2, 1, controller=ControllerSettings(crash_before=noted))
    with Cluster(settings, seed=1) as cluster:
        cluster.create_topic("orders", 1, 2)
    assert len(seen) > 5


def test_answers_of_its_broker_and_changes_of_its_disks_and_purges_can_be_watched(new_cluster: NewCluster) -> None:
    cluster, called = new_cluster(), list[str]()
    member = cluster.members[1]
    assert isinstance(member, Member) and isinstance(member.network, WatchedNetwork)
    member.network.on_answer = lambda request, response: called.append(type(request).__name__)
    member.changing = lambda: called.append("a change")
    member.purged = lambda purged: called.append(purged.location)
    cluster.create_topic("orders", assignment={0: [1]})
    cluster.delete_topic("orders")
    cluster.run(for_ms=200_000)
    assert {"a change", "Numbered"} <= set(called)
    assert any(each.startswith("deleting/") for each in called)


def test_fewer_partitions_are_off_unless_they_are_asked_for() -> None:
    assert ClusterSettings().fewer_partitions == FewerPartitionsSettings()
    assert not ClusterSettings().fewer_partitions.enabled  # KIP694-3


def test_a_machine_registers_with_its_rack_and_is_fenced_while_it_is_off_with_either_placement() -> None:
    for placement in Placement:
        settings = ClusterSettings(3, 1, racks=("a", "b", "b"), controller=ControllerSettings(placement=placement))
        with Cluster(settings, seed=5) as cluster:
            cluster.stop_broker(3)
            cluster.run_until("there is a controller", lambda: cluster.active is not None)
            active = cluster.active
            assert active is not None
            assert active.admin.node.known_brokers() == [
                KnownBroker(1, "a"),
                KnownBroker(2, "b"),
                KnownBroker(3, "b", fenced=True),
            ]


def test_a_placement_is_one_that_there_is_and_racks_are_one_for_each_broker() -> None:
    assert ClusterSettings(broker=BrokerSettings(rack="a")).rack_of(3) == "a"
    assert [ClusterSettings(2, racks=("a", "b")).rack_of(number) for number in (1, 2)] == ["a", "b"]
    with pytest.raises(UsageError, match="2 racks of 3 brokers: give each broker one, or none"):
        ClusterSettings(3, racks=("a", "b"))
    with pytest.raises(UsageError, match="placement = 'raft', where zookeeper or kraft is expected"):
        ControllerSettings(placement="raft")  # type: ignore[arg-type]
