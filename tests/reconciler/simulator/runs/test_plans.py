"""Plans of an operator beside the controller: they age, are applied to what lies there by then, and are checked."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from layout.topic import TopicPartition
from logstore import STALE_DELAY, Settings
from reconciler.plan import revalidate
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.runs import plans
from reconciler.simulator.runs.operator import Operator
from tests.reconciler.simulator.conftest import NewCluster

CLICKS = TopicPartition("clicks", 0)


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    """Broker 1 is down, and has a replica of a topic that was deleted since."""
    found = new_cluster(4, seed=5, delays=Settings({"": {STALE_DELAY: 60_000}}))
    found.create_topic("orders", assignment={0: [1, 2]})
    found.create_topic("clicks", assignment={0: [1, 2]})
    found.produce("clicks", 3)
    found.stop_broker(1)
    found.delete_topic("clicks")
    return found


def planned(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, wait_ms: int = 0) -> Operator:
    """An operator who has a plan for broker 1, which is to be applied so much later."""
    monkeypatch.setattr(plans, "_AGES_MS", (wait_ms,))
    operator = Operator(cluster, frozenset({"plan"}))
    operator.plan(cluster.members[1], Random(1))
    assert cluster.world.history.reached["plan made"] == 1
    return operator


def test_a_plan_stages_what_nobody_wants_and_is_done_when_it_is_applied_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(cluster, monkeypatch)
    cluster.run(for_ms=20)
    reached = cluster.world.history.reached
    assert (reached["plan stage_done"], reached["plan stage_already"]) == (1, 1)
    assert any("by a plan, stage of clicks-0: done" in line for line in cluster.world.history.lines)


def test_a_plan_whose_metadata_is_too_old_by_then_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(cluster, monkeypatch, wait_ms=3_000)
    cluster.run(for_ms=3_100)
    assert cluster.world.history.reached["plan refused_old"] == 2
    assert "plan stage_done" not in cluster.world.history.reached


def test_a_plan_leaves_what_was_written_to_since(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(cluster, monkeypatch, wait_ms=1_000)
    write_to(cluster)
    cluster.run(for_ms=1_500)
    assert cluster.world.history.reached["plan stage_skipped"] == 2


def test_a_plan_that_would_stage_it_all_the_same_breaks_a_promise(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(cluster, monkeypatch, wait_ms=1_000)
    write_to(cluster)
    monkeypatch.setattr(revalidate, "_data_changed", lambda action: None)
    with pytest.raises(BrokenInvariantError, match="clicks-0: it is not what the plan was made for any more"):
        cluster.run(for_ms=1_500)


def test_at_the_end_what_still_waits_is_applied_and_nothing_is_planned_any_more(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = planned(cluster, monkeypatch, wait_ms=1_000)
    operator.end()
    reached = dict(cluster.world.history.reached)
    assert reached["plan stage_done"] == 1
    cluster.stop_broker(1)
    operator.plan(cluster.members[1], Random(2))
    cluster.run(for_ms=1_500)
    found = cluster.world.history.reached
    assert {each: times for each, times in found.items() if "plan" in each} == {
        each: times for each, times in reached.items() if "plan" in each
    }


def write_to(cluster: Cluster) -> None:
    """Append to the records of the replica, as its broker would have."""
    (path,) = (found for each in cluster.members[1].disks.log_dirs for found in Path(each, str(CLICKS)).glob("*.log"))
    with path.open("ab") as file:
        file.write(b"more")
