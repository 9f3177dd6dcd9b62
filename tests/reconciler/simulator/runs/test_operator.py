"""An operator works on machines whose brokers are up or down; a broker goes on with what it finds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from layout.topic import TopicPartition
from logstore import DELETE_DELAY
from reconciler.simulator.cluster import Cluster, ClusterSettings
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.machine import BrokerSettings
from reconciler.simulator.runs.operator import Operator
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)


def with_directory_ids(rates: FaultRates | None = None) -> ClusterSettings:
    return ClusterSettings(3, 2, rates=rates or FaultRates.none(), broker=BrokerSettings(directory_ids=True))


def test_a_replica_that_moves_to_another_disk_keeps_its_role_and_its_records() -> None:
    with Cluster(with_directory_ids(), seed=1) as cluster:
        cluster.create_topic("orders", assignment={0: [1, 2]})
        values = cluster.produce("orders", 3)
        member = cluster.members[1]
        before = member.broker.store.get(ORDERS).log_dir
        number = 1 - member.disks.log_dirs.index(before)
        member.alter_log_dir(ORDERS, number)
        assert member.broker.store.get(ORDERS).log_dir == member.disks.log_dirs[number] != before
        assert member.broker.replicas.get(ORDERS) is not None
        assert cluster.consume("orders") == values
        assert cluster.produce("orders", 1)
        assert [each.record and each.record.verdict for each in member.broker.store.staged()] == ["MOVED"]


def test_a_log_dir_without_an_id_gets_no_replica_by_a_move(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, seed=2)
    cluster.create_topic("orders")
    member = cluster.members[1]
    before = member.broker.store.get(ORDERS)
    member.alter_log_dir(ORDERS, 1 - member.disks.log_dirs.index(before.log_dir))
    assert member.broker.store.get(ORDERS) == before
    assert "orders-0 is not moved" in cluster.world.history.lines[-1]


def test_a_tool_stages_with_the_delays_that_the_broker_had_last(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, seed=2)
    cluster.command(lambda admin: admin.alter_namespace_configs("", {"file.delete.delay.ms": "7000"}, []))
    cluster.run(for_ms=1_000)
    cluster.stop_broker(1)
    delays: list[int] = []
    cluster.members[1].broker.maintain(lambda store: delays.append(store.settings.of("orders", DELETE_DELAY)))
    assert delays == [7_000]


@pytest.mark.parametrize("feature", ["restore", "purge", "convert", "move_disk"])
def test_each_tool_is_used_and_what_it_does_is_counted(feature: str) -> None:
    settings = with_directory_ids()
    settings = replace(settings, broker=replace(settings.broker, purge_ms=600_000))
    with Cluster(settings, seed=3) as cluster:
        cluster.create_topic("orders", 4, 2)
        cluster.create_topic("clicks", 2, 2)
        cluster.delete_topic("clicks")
        cluster.run(for_ms=120_000)
        operator, random = Operator(cluster, frozenset({feature})), Random(3)
        for _ in range(12):
            operator.act(random)
            cluster.run(for_ms=1_000)
        assert cluster.world.history.reached.get(f"operator {feature}"), cluster.world.history.lines[-30:]


@pytest.mark.parametrize("is_away", [True, False])
def test_nothing_is_restored_while_a_disk_is_away_on_which_it_may_be_live(is_away: bool) -> None:
    with Cluster(with_directory_ids(), seed=1) as cluster:
        cluster.create_topic("orders", assignment={0: [1, 2]})
        member = cluster.members[1]
        number = 1 - member.disks.log_dirs.index(member.broker.store.get(ORDERS).log_dir)
        member.alter_log_dir(ORDERS, number)
        cluster.stop_broker(1)
        if is_away:
            member.disks.fail(number, Random(1))
        operator, said = Operator(cluster, frozenset({"restore"})), cluster.world.history.lines
        for seed in range(6):
            operator.act(Random(seed))
        assert bool(cluster.world.history.reached.get("operator restore")) is not is_away, said[-9:]


def test_the_power_may_go_in_the_middle_of_the_work_and_the_machine_starts_again() -> None:
    with Cluster(with_directory_ids(FaultRates(power_cut=0.0001)), seed=4) as cluster:
        cluster.create_topic("orders", 6, 2)
        operator, random = Operator(cluster, frozenset({"convert", "move_disk"})), Random(4)
        for _ in range(30):
            operator.act(random)
            for member in cluster.members.values():
                member.start()
            cluster.run(for_ms=8_000)
        assert any("crashes" in line for line in cluster.world.history.lines)
        assert cluster.world.history.reached["operator convert"]
