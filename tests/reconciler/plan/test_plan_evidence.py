"""The evidence of a plan: rows of trusted log dirs, judged cluster by cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.desired import BrokerKey as Owner
from reconciler.errors import RefusedError
from tests.reconciler.plan.plan_broker import CLUSTER, GONE, ORDERS, PlanBroker


@pytest.fixture
def broker(tmp_path: Path) -> PlanBroker:
    made = PlanBroker(tmp_path)
    made.wanted("orders", ORDERS, 0, 1)
    made.replica("orders-0", ORDERS)
    made.replica("gone-0", GONE, disk=1)
    return made


def test_everything_is_judged_once_and_live_replicas_are_counted(broker: PlanBroker) -> None:
    view = broker.view()
    found = sorted(each.verdict.value for each in view.judged)
    assert found == ["MISSING", "OK", "OK", "OK", "UNKNOWN_TOPIC"]
    assert view.live == {Owner(CLUSTER, 1): 2}
    assert [log_dir.path for log_dir in view.trusted] == broker.paths


def test_what_lies_in_a_log_dir_that_cannot_be_trusted_is_not_judged(broker: PlanBroker) -> None:
    (broker.log_dirs[1] / "meta.properties").unlink()
    view = broker.view()
    assert [log_dir.path for log_dir in view.trusted] == broker.paths[:1]
    assert "UNKNOWN_TOPIC" not in {each.verdict.value for each in view.judged}
    assert "ABSENT" in {each.verdict.value for each in view.judged}


def test_metadata_of_another_cluster_is_refused_and_may_be_taken_all_the_same(broker: PlanBroker) -> None:
    strange = broker.state(cluster_id="another")
    with pytest.raises(RefusedError, match="--allow cluster"):
        broker.view(strange)
    view = broker.view(strange, any_cluster=True)
    assert "UNKNOWN_TOPIC" in {each.verdict.value for each in view.judged}


def test_each_cluster_is_judged_by_its_own_metadata(broker: PlanBroker) -> None:
    properties = broker.log_dirs[1] / "meta.properties"
    properties.write_text(properties.read_text().replace(f"cluster.id={CLUSTER}", "cluster.id=c2"))
    view = broker.view(broker.state())
    assert {each.verdict.value for each in view.judged_of["c2"]} == {"OK", "NOT_COMPARED"}
    both = broker.view(broker.state(), broker.state(cluster_id="c2"))
    assert "UNKNOWN_TOPIC" in {each.verdict.value for each in both.judged_of["c2"]}
