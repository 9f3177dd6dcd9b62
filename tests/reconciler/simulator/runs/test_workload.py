"""The workload of a history: every action occurs, depends on the seed alone, and ends when it should."""

from __future__ import annotations

import re
from random import Random

import pytest

from reconciler.simulator.runs import workload as workload_module
from reconciler.simulator.runs.workload import NAMES, Workload
from tests.reconciler.simulator.conftest import NewCluster


def history(new_cluster: NewCluster, seed: int, for_ms: int = 30_000) -> list[str]:
    cluster = new_cluster(4, seed=seed)
    workload = Workload(cluster)
    workload.begin()
    cluster.run(for_ms=for_ms)
    return list(cluster.world.history.lines)


def test_in_a_few_minutes_administrators_do_everything_that_they_can(new_cluster: NewCluster) -> None:
    said = "\n".join(line for seed in range(4) for line in history(new_cluster, seed))
    assert re.search(r"admin  creates namespace \S+$", said, re.MULTILINE)
    assert re.search(r"admin  moves namespace \S+ to \S+$", said, re.MULTILINE)
    assert re.search(r"admin  sets \S+ of \S.* to \S+$", said, re.MULTILINE)
    for deed in ("creates ", "deletes ", "grows ", "leaves ", "reassigns ", "elects the preferred leader of "):
        assert re.search(rf"admin  {deed}\S+( |$)(?!.*UNKNOWN)", said, re.MULTILINE), deed
    assert " to what it was" in said
    assert "  stops" in said
    for name in NAMES:
        assert f"creates {name} with " in said


def test_names_come_back_so_that_a_topic_has_several_ids_in_one_history(new_cluster: NewCluster) -> None:
    cluster = new_cluster(3, seed=2)
    seen: dict[str, set[str]] = {}
    Workload(cluster).begin()
    for _ in range(40):
        cluster.run(for_ms=1_000)
        for topic, topic_id in cluster.oracle.topics().items():
            seen.setdefault(topic, set()).add(str(topic_id))
    assert max(map(len, seen.values())) > 1


def test_clients_write_and_read_all_the_time(new_cluster: NewCluster) -> None:
    cluster = new_cluster(3, seed=5)
    Workload(cluster).begin()
    cluster.run(for_ms=60_000)
    assert len(cluster.producer.acknowledged) > 20
    assert sum(map(len, cluster.consumer.seen.values())) > 10


def test_it_hangs_on_the_seed_alone(new_cluster: NewCluster) -> None:
    assert history(new_cluster, 5, 30_000) == history(new_cluster, 5, 30_000) != history(new_cluster, 6, 30_000)


def test_nothing_is_done_before_the_beginning_or_after_the_end(new_cluster: NewCluster) -> None:
    cluster = new_cluster(3, seed=4)
    workload = Workload(cluster)
    cluster.run(for_ms=20_000)
    assert not any("admin" in line for line in cluster.world.history.lines)
    workload.begin()
    cluster.run(for_ms=20_000)
    workload.end()
    cluster.run(for_ms=3_000)
    before = [line for line in cluster.world.history.lines if "admin" in line]
    sent = cluster.producer._sent
    cluster.run(for_ms=30_000)
    assert before == [line for line in cluster.world.history.lines if "admin" in line] != []
    assert sent == cluster.producer._sent


@pytest.mark.parametrize("seed", range(3))
def test_one_broker_is_always_left_unless_a_fault_takes_it(new_cluster: NewCluster, seed: int) -> None:
    cluster = new_cluster(2, seed=seed)
    Workload(cluster).begin()
    for _ in range(40):
        cluster.run(for_ms=1_000)
        assert any(member.running for member in cluster.members.values())


def test_a_broker_is_restarted_while_one_of_its_disks_is_away(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_module, "_AILING", 1.0)
    cluster = new_cluster(3, seed=4)
    workload, member = Workload(cluster), cluster.members[2]
    cluster.create_topic("orders", 4, 3)
    member.disks.fail(0, Random(1))
    cluster.run(for_ms=70_000)
    assert member.broker.store.offline
    before = member.broker.store
    workload._stop_or_start(Random(4))
    assert member.running and member.broker.store is not before and member.broker.store.offline
