"""A watch and the engine for fleets give the verdicts of an audit; where they do not, that is told."""

from __future__ import annotations

from random import Random

import pytest

from reconciler import watch
from reconciler.simulator.checks import (
    MachineWatch,
    SecondOpinions,
    engine_differences,
    expected_state,
    second_opinions,
)
from reconciler.simulator.checks.invariants import BrokenInvariantError
from reconciler.simulator.cluster import Cluster
from tests.reconciler.simulator.conftest import NewCluster


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    found = new_cluster(3, seed=5)
    found.create_topic("orders", 4, 2)
    found.create_topic("clicks", 2, 3)
    return found


def looked(seen: MachineWatch, cluster: Cluster, *, sweeps: bool) -> list[str]:
    return seen.differences(expected_state(cluster.zookeeper), cluster.world.clock_of("broker-1"), sweeps=sweeps)


@pytest.mark.parametrize("sweeps", [True, False])
def test_a_watch_follows_what_is_deleted_made_and_lost(cluster: Cluster, sweeps: bool) -> None:
    member = cluster.members[1]
    seen = MachineWatch(member)
    assert (looked(seen, cluster, sweeps=sweeps), seen.changes) == ([], 0)
    cluster.stop_broker(1)
    cluster.delete_topic("clicks")
    assert (looked(seen, cluster, sweeps=sweeps), seen.changes) == ([], 2)
    cluster.start_broker(1)
    cluster.create_topic("clicks", 3, 3)
    cluster.run(for_ms=3_000)
    assert (looked(seen, cluster, sweeps=sweeps), seen.changes > 1) == ([], True)
    cluster.stop_broker(1)
    member.disks.fail(1, Random(1))
    assert looked(seen, cluster, sweeps=sweeps) == [] != [seen.changes]
    member.disks.come_back(1)
    assert (looked(seen, cluster, sweeps=sweeps), seen.is_of_these_disks) == ([], True)
    member.disks.replace(1)
    assert not seen.is_of_these_disks


def test_a_watch_that_misses_a_change_is_told_of(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = MachineWatch(cluster.members[1])
    looked(seen, cluster, sweeps=True)
    cluster.stop_broker(1)
    cluster.delete_topic("clicks")
    monkeypatch.setattr(watch.VerdictWatch, "metadata_changed", lambda self, states: iter(()))
    wrong = looked(seen, cluster, sweeps=True)
    assert len(wrong) == 2 and all(
        "UNKNOWN_TOPIC" in each and "0 by a watch, and 1 by an audit" in each for each in wrong
    )


def test_the_engine_finds_what_is_stale_and_only_that(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.stop_broker(1)
    cluster.delete_topic("clicks")
    cluster.create_topic("clicks", 1, 2)
    assert engine_differences(cluster) == []
    monkeypatch.setattr(cluster.oracle, "assigned", lambda node_id: {})
    assert any("orders-" in each and each.startswith("by DuckDB, broker") for each in engine_differences(cluster))


def test_they_are_asked_only_where_the_history_has_them(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_opinions, "_AUDITED", 1.0)
    monkeypatch.setattr(second_opinions, "engine_differences", lambda cluster: ["the engine says so"])
    without = SecondOpinions(cluster, watches=False, audits=False)
    for _ in range(6):
        without.ask()
    assert "watch looks" not in cluster.world.history.reached
    both = SecondOpinions(cluster, watches=True, audits=True)
    with pytest.raises(BrokenInvariantError, match="the engine says so"):
        for _ in range(6):
            both.ask()
    assert cluster.world.history.reached["watch looks"]
