"""The expected verdicts of an audit of simulated disks; a wrong case table or a blind scan is noticed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.scan import scan_all
from reconciler.audit import embedded
from reconciler.simulator.checks import expected_state
from reconciler.simulator.checks import expected_verdicts as expected
from reconciler.simulator.checks.expected_verdicts import audit_differences, differences
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.runs import history_settings
from reconciler.simulator.runs.workload import Workload
from reconciler.simulator.zookeeper import kafka_nodes, kafka_paths
from reconciler.verdicts import CASES, Judged, Verdict
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)
B = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    """Three brokers with all kinds of things on their disks; broker 3 is not looked at by its controller any more."""
    made = new_cluster()
    made.create_topic("orders", 2, 3)
    made.create_topic("clicks", assignment={0: [1, 2]})
    made.run(for_ms=1_000)
    store = made.members[3].broker.store
    store.stage([TopicPartition("orders", 1)], "NOT_ASSIGNED", "")
    store.create(TopicPartition("clicks", 0), made.oracle.topic_id("clicks"))
    store.create(TopicPartition("ghost", 0), B)
    store.create(TopicPartition("clicks", 7), B)
    store.create(TopicPartition("renamed", 0), made.oracle.topic_id("orders"))
    store.create(TopicPartition("nameless", 0), None)
    return made


def verdicts(cluster: Cluster, node_id: int) -> dict[str, str]:
    """What the audit says of everything on a broker's disks, and of what is wanted there."""
    state = expected_state(cluster.zookeeper)
    rows = [row for seen in scan_all(cluster.members[node_id].disks.log_dirs) for row in seen.rows.to_pylist()]
    found = expected.compare({state.identity.cluster_id or "": state}, rows, cluster.world.now_ms)
    return {
        each.observed["name"] if each.observed else f"{each.wanted['topic']}-{each.wanted['partition']}": each.verdict
        for each in found
        if each.observed or each.wanted
    }


def test_the_audit_and_the_znodes_agree_on_disks_with_every_kind_of_replica(cluster: Cluster) -> None:
    assert audit_differences(cluster) == []
    found = verdicts(cluster, 3)
    assert {name: found[name] for name in ("orders-0", "orders-1", "clicks-0", "clicks-7", "ghost-0", "renamed-0")} == {
        "orders-0": Verdict.OK,
        "orders-1": Verdict.MISSING,
        "clicks-0": Verdict.NOT_ASSIGNED,
        "clicks-7": Verdict.STALE_ID,
        "ghost-0": Verdict.UNKNOWN_TOPIC,
        "renamed-0": Verdict.RENAMED,
    }
    assert found["nameless-0"] is Verdict.UNKNOWN_TOPIC
    assert Verdict.STAGED in found.values()


def test_what_is_staged_and_due_and_what_is_damaged_or_no_replica_at_all_is_judged_too(cluster: Cluster) -> None:
    cluster.world.jump("broker-3", 400_000)
    log_dir = Path(cluster.members[3].disks.log_dirs[0])
    (log_dir / "ghost-1").mkdir()
    (log_dir / "ghost-1" / "partition.metadata").write_bytes(b"")
    (log_dir / "what is this").mkdir()
    (log_dir / "draft-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    assert audit_differences(cluster) == []


def test_a_replica_on_two_disks_is_a_duplicate(cluster: Cluster) -> None:
    store = cluster.members[1].broker.store
    found = store.get(ORDERS)
    other = next(each for each in cluster.members[1].disks.log_dirs if each != found.log_dir)
    shutil.copytree(Path(found.log_dir, found.path), Path(other, found.path))
    assert audit_differences(cluster) == []
    assert verdicts(cluster, 1)["orders-0"] is Verdict.DUPLICATE


def test_a_disk_that_failed_is_absent_and_never_taken_for_an_empty_one(cluster: Cluster) -> None:
    member = cluster.members[1]
    failed = member.disks.log_dirs.index(member.broker.store.get(ORDERS).log_dir)
    member.disks.fail(failed, Random(1))
    assert audit_differences(cluster) == []
    assert verdicts(cluster, 1)["orders-0"] is Verdict.MISSING
    member.disks.replace(failed)
    assert audit_differences(cluster) == []


def test_a_cluster_that_knows_no_topic_speaks_for_nobody(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    cluster.members[1].broker.store.create(ORDERS, B)
    assert audit_differences(cluster) == []
    assert verdicts(cluster, 1)["orders-0"] is Verdict.NOT_COMPARED


def test_topics_on_their_way_out_count_as_wanted_until_they_go(cluster: Cluster) -> None:
    for member in cluster.members.values():
        member.controller.stop()
    cluster.oracle._session.create(kafka_paths.delete_path("orders"), parents=True)
    assert "orders" not in cluster.oracle.topics()
    assert audit_differences(cluster) == []
    assert verdicts(cluster, 1)["orders-0"] is Verdict.OK


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        (Verdict.OK, Verdict.IN_FLIGHT, "orders-0"),
        (Verdict.STALE_ID, Verdict.OK, "clicks-7"),
        (Verdict.NOT_ASSIGNED, Verdict.OK, "clicks-0"),
        (Verdict.UNKNOWN_TOPIC, Verdict.OK, "ghost-0"),
        (Verdict.RENAMED, Verdict.OK, "renamed-0"),
        (Verdict.MISSING, Verdict.IN_FLIGHT, "orders-1"),
        (Verdict.STAGED, Verdict.STAGED_DUE, "deleting/"),
    ],
)
def test_a_case_table_that_says_something_else_is_reported_with_broker_replica_and_both_verdicts(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, right: Verdict, wrong: Verdict, name: str
) -> None:
    changed = tuple(replace(case, verdict=wrong) if case.verdict is right else case for case in CASES)
    monkeypatch.setattr("reconciler.verdicts.join.CASES", changed)
    found = audit_differences(cluster)
    assert any(each.startswith(f"broker 3: {name}") for each in found)
    assert all(f" is {wrong}, and {right} was expected" in each for each in found)


def test_a_comparison_that_forgets_what_is_missing_or_makes_it_up_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = expected.compare

    def forgets(*given: Any) -> Iterator[Any]:
        return (each for each in real(*given) if each.observed is not None)

    def makes_up(*given: Any) -> Iterator[Any]:
        for each in real(*given):
            yield each
            if each.observed is None:
                yield replace(each, wanted={**each.wanted, "topic": "dreams"})

    monkeypatch.setattr(expected, "compare", forgets)
    assert audit_differences(cluster) == ["broker 3: orders-1 is wanted, is nowhere, and is not told of"]
    monkeypatch.setattr(expected, "compare", makes_up)
    assert audit_differences(cluster)[-1] == "broker 3: dreams-1 is told of, and is not wanted"


def test_a_scan_that_takes_a_failed_disk_for_a_good_one_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = cluster.members[1].disks.log_dirs[0]
    cluster.members[1].disks.fail(0, Random(1))

    def blind(log_dirs: Sequence[str], **given: Any) -> Iterator[Any]:
        for seen in scan_all(log_dirs, **given):
            rows = seen.rows.to_pylist()
            changed = [{**row, "metadata_state": "ok"} if row["kind"] == "log_dir" else row for row in rows]
            yield SimpleNamespace(log_dir=seen.log_dir, rows=pa.Table.from_pylist(changed, seen.rows.schema))

    monkeypatch.setattr(expected, "scan_all", blind)
    assert f"broker-1: the scan calls {failed} ok" in audit_differences(cluster)


def test_what_a_metadata_source_leaves_out_is_reported(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    session = cluster.zookeeper.session("hand")
    state = expected_state(cluster.zookeeper)
    session.delete(kafka_paths.topic_path("clicks"), recursive=True)
    monkeypatch.setattr(expected, "expected_state", lambda zookeeper: state)
    found = audit_differences(cluster)
    assert "broker 1: clicks-0 is OK, and UNKNOWN_TOPIC was expected" in found
    assert kafka_nodes.read_topics(session).keys() == {"orders"}


def test_rows_of_one_broker_can_be_held_against_the_znodes_alone(cluster: Cluster) -> None:
    rows = [row for seen in scan_all(cluster.members[3].disks.log_dirs) for row in seen.rows.to_pylist()]
    assert differences(rows, cluster.zookeeper, cluster.oracle, cluster.world.now_ms) == []
    for row in rows:
        if row["name"] == "orders-0":
            row["topic_id"] = str(B)
    wrong = differences(rows, cluster.zookeeper, cluster.oracle, cluster.world.now_ms)
    assert wrong == []  # both see the same disk, so both call it stale
    later = cluster.world.now_ms + 400_000
    assert differences(rows, cluster.zookeeper, cluster.oracle, later) == []


def listed(judged: Judged) -> tuple[str, str, str] | None:
    """Log dir, name and verdict as an audit lists them; log dirs and files that are as they should be it leaves out."""
    if judged.observed is None:
        assert judged.wanted is not None
        return "", judged.wanted["topic"], judged.verdict.value
    if judged.verdict is Verdict.OK and judged.observed["kind"] in ("log_dir", "internal"):
        return None
    return judged.observed["log_dir"], judged.observed["name"], judged.verdict.value


def test_the_audit_by_duckdb_says_the_same_row_by_row_of_disks_in_the_middle_of_a_history(tmp_path: Path) -> None:
    kinds = set()
    for seed in (41, 42, 43):
        cluster = Cluster(history_settings(4), seed=seed, folder=str(tmp_path / str(seed)))
        workload = Workload(cluster)
        cluster.start()
        workload.begin()
        cluster.run(1_500)
        assert audit_differences(cluster) == []
        log_dirs = [each for member in cluster.members.values() for each in member.disks.log_dirs]
        tables = [each.rows for each in scan_all(log_dirs, sizes=False, jobs=0)]
        state, now_ms = expected_state(cluster.zookeeper), cluster.world.now_ms
        rows = [row for table in tables for row in table.to_pylist()]
        judged = list(expected.compare({state.identity.cluster_id or "": state}, rows, now_ms))
        (folder := tmp_path / f"audit-{seed}").mkdir()
        result = embedded.audit(tables, [], [state], str(folder), now_ms=now_ms, all_rows=True)
        found = sorted(
            (row["log_dir"] or "", row["name"] or row["topic"], row["verdict"])
            for batch in result.batches()
            for row in batch.to_pylist()
        )
        assert found == sorted(filter(None, map(listed, judged)))
        kinds |= {each.verdict for each in judged}
        cluster.close()
    assert len(kinds) >= 4, kinds
