"""Files that are damaged while a broker is down are put right before it starts, and an undo brings the damage back."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from logstore.repair import undo
from reconciler.plan import ActionKind
from reconciler.simulator.checks import BrokenInvariantError, Damage
from reconciler.simulator.cluster import Cluster, ClusterSettings
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.runs import repairs
from reconciler.simulator.runs.operator import Operator
from tests.reconciler.simulator.conftest import NewCluster


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    found = new_cluster(3, seed=5)
    found.create_topic("orders", 4, 2)
    found.produce("orders", 8)
    found.stop_broker(1)
    return found


def repaired(cluster: Cluster, times: int) -> set[str]:
    """Damage and repair files of broker 1 so many times; give what was done."""
    makes = repairs.Repairs(cluster, Operator(cluster, frozenset())._downtime).make
    for number in range(times):
        makes(cluster.members[1], Random(number))
        cluster.members[1].shut_down()
    return {each for each in cluster.world.history.reached if each.startswith("repair ")}


def test_every_damage_is_put_right_and_undone_byte_for_byte(cluster: Cluster) -> None:
    found = repaired(cluster, 14)
    assert found == {*(f"repair {each}" for each in Damage), "repair undone"}
    cluster.start_broker(1)
    assert len(cluster.consume("orders")) == 8


def test_an_undo_that_leaves_other_bytes_breaks_a_promise(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "change_files", lambda log_dir, changes, what: {})
    with pytest.raises(BrokenInvariantError, match="the undo of a repair leaves"):
        repaired(cluster, 8)


def test_a_file_that_no_repair_is_proposed_of_breaks_a_promise(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairs, "FILE_REPAIRS", frozenset({ActionKind.STAGE_DUPLICATE}))
    with pytest.raises(BrokenInvariantError, match="no repair is proposed of"):
        repaired(cluster, 8)


def test_after_a_power_cut_the_repair_is_made_once_more_before_the_broker_starts() -> None:
    with Cluster(ClusterSettings(3, 2, rates=FaultRates(power_cut=0.0001)), seed=5) as cluster:
        cluster.start()
        cluster.create_topic("orders", 4, 2)
        cluster.produce("orders", 8)
        cluster.stop_broker(1)
        assert "repair finished_after_crash" in repaired(cluster, 14)
        for path in cluster.members[1].disks.log_dirs:
            assert not list(Path(path).glob("*.tmp"))
