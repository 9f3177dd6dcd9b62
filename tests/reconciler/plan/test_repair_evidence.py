"""The evidence of a plan of repairs: few rows, true counts, and exactly the files that the plan depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.desired import BrokerKey as BrokerName
from tests.reconciler.plan.repair_broker import CLUSTER, OLD, ORDERS, RepairBroker

HERE = BrokerName(CLUSTER, 1)


@pytest.fixture
def broker(tmp_path: Path) -> RepairBroker:
    made = RepairBroker(tmp_path)
    for number in range(4):
        made.replica(f"usual-{number}")
    made.replica("missing-0", None)
    made.replica("stale-0", OLD)
    made.replica("usual-0", disk=1)
    made.replica(f"stray-0.{'0' * 32}-stray", OLD)
    made.wanted("usual", *range(4))
    made.wanted("missing", 0)
    made.wanted("stale", 0)
    return made


def test_rows_that_nothing_is_wrong_with_are_counted_and_not_kept(broker: RepairBroker) -> None:
    view = broker.view([broker.state()])
    kept = sorted(row["name"] for row in view.rows if row["kind"] == "live")
    assert kept == ["missing-0", "stale-0", "usual-0", "usual-0"]
    assert view.ids_of_topic[HERE, "usual"] == {str(ORDERS): 5}
    assert view.topics_of_id[HERE, str(ORDERS)] == {"usual"}
    assert (HERE, str(OLD), 0) in view.staged
    assert view.copies[HERE, "usual", 0] == 2


def test_without_metadata_no_id_is_odd(broker: RepairBroker) -> None:
    assert "stale-0" not in {row["name"] for row in broker.view([]).rows}


def test_topics_that_are_to_be_adopted_are_looked_at_whole(broker: RepairBroker) -> None:
    names = [row["name"] for row in broker.view([], frozenset({"usual"})).rows if row["kind"] == "live"]
    assert sorted(names) == ["missing-0", "usual-0", "usual-0", "usual-1", "usual-2", "usual-3"]


def test_the_files_that_a_plan_hangs_on_are_read(broker: RepairBroker) -> None:
    broker.file("meta.properties.tmp", "")
    broker.file("cleaner-offset-checkpoint", "0\n2\ngone 0 1\ngone 1 1\n")
    found = broker.view([]).files
    assert sorted({path for _, path in found}) == [
        "cleaner-offset-checkpoint",
        "meta.properties",
        "meta.properties.tmp",
        "missing-0/leader-epoch-checkpoint",
        "missing-0/partition.metadata",
        "usual-0/leader-epoch-checkpoint",
        "usual-0/partition.metadata",
    ]
    assert found[str(broker.log_dirs[0]), "missing-0/partition.metadata"] is None


def test_nothing_is_read_in_a_log_dir_that_cannot_be_trusted(broker: RepairBroker) -> None:
    (broker.log_dirs[0] / "meta.properties").write_text("half")
    view = broker.view([])
    assert view.files == {}
    assert {each.observed["log_dir"] for each in view.judged if each.observed} == {str(broker.log_dirs[1])}
