from __future__ import annotations

import pytest

from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.controller.settings import ControllerMovedError
from reconciler.simulator.zookeeper import state_path, topic_path
from reconciler.sources.zookeeper import encode_state
from tests.reconciler.simulator.controller.cluster import ID, Cluster, at

ORDERS = at("orders")


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(2)
    found.create_topic("orders", {0: [1, 2]}, ID)
    return found


def write(cluster: Cluster, epoch: int) -> None:
    cluster.admin.set(state_path(ORDERS), encode_state(2, 8, (2,), epoch))


# CREATE-4
def test_a_change_is_in_zookeeper_and_in_the_context(cluster: Cluster) -> None:
    core = cluster.controller.work.core
    found = core.change_state(ORDERS, lambda state: state.next(2, (2,)))
    assert found == LeaderAndIsr(2, 1, (2,), 1, 1) == cluster.state(ORDERS) == core.context.leadership[ORDERS]


def test_a_change_that_changes_nothing_writes_nothing(cluster: Cluster) -> None:
    before = cluster.zookeeper.dump()
    assert cluster.controller.work.core.change_state(ORDERS, lambda state: None) is None
    assert cluster.zookeeper.dump() == before


def test_a_change_is_made_again_from_what_zookeeper_has(cluster: Cluster) -> None:
    write(cluster, 1)
    found = cluster.controller.work.core.change_state(ORDERS, lambda state: state.next(1, (*state.isr, 1)))
    assert found == LeaderAndIsr(1, 9, (2, 1), 2, 1) == cluster.state(ORDERS)


def test_a_change_that_is_not_wanted_any_more_by_what_zookeeper_has_is_not_made(cluster: Cluster) -> None:
    write(cluster, 1)
    core = cluster.controller.work.core
    assert core.change_state(ORDERS, lambda state: None if state.leader == 2 else state.next(1, (1,))) is None
    assert core.context.leadership[ORDERS] == LeaderAndIsr(2, 8, (2,), 1, 1)


def test_a_newer_controllers_state_is_not_overwritten(cluster: Cluster) -> None:
    write(cluster, 5)
    with pytest.raises(ControllerMovedError):
        cluster.controller.work.core.change_state(ORDERS, lambda state: state.next(1, (1,)))
    assert cluster.state(ORDERS).leader == 2


def test_a_state_whose_topic_was_deleted_is_not_written(cluster: Cluster) -> None:
    cluster.remove_node(topic_path("orders"))
    assert cluster.controller.work.core.change_state(ORDERS, lambda state: state.next(2, (2,))) is None
