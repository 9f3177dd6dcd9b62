"""Fleet findings: each kind from the smallest fleet that shows it, and none from a healthy one."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from logstore.rows import ROW_SCHEMA
from reconciler.audit import audit
from reconciler.audit.fleet import (
    LIMIT,
    QUERIES,
    FleetFinding,
    FleetQuery,
    far_inventories,
    limited,
    to_findings,
    unreported_brokers,
)
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from tests.fleets import NOW_MS, many_fleets

OLD, NEW = "o" * 21 + "A", "n" * 21 + "A"


def row(node: int, kind: str = "log_dir", **columns: Any) -> dict[str, Any]:
    return dict.fromkeys(ROW_SCHEMA.names) | {
        "host": f"h{node}",
        "cluster_id": "c1",
        "node_id": node,
        "directory_id": f"d{node}",
        "log_dir": f"/b{node}",
        "name": ".",
        "kind": kind,
        "metadata_state": "ok",
        **columns,
    }


def live(node: int, topic_id: str, **columns: Any) -> dict[str, Any]:
    return row(node, "live", name="t-0", topic="t", partition=0, topic_id=topic_id, bytes=10) | columns


def state(*replicas: int, isr: tuple[int, ...] = (), cluster: str = "c1") -> DesiredState:
    builder = DesiredBuilder()
    builder.partition("t", NEW, 0, list(replicas), isr=isr or replicas)
    return builder.build(MetadataIdentity("kraft", "/m", cluster))


def fleet(tmp_path: Path, rows: list[dict[str, Any]], *states: DesiredState) -> list[FleetFinding]:
    return list(audit([pa.Table.from_pylist(rows, schema=ROW_SCHEMA)], [], states, str(tmp_path), now_ms=0).fleet)


def test_a_healthy_fleet_has_no_fleet_findings(tmp_path: Path) -> None:
    rows = [row(1), row(2), live(1, NEW), live(2, NEW)]
    assert fleet(tmp_path, rows, state(1, 2)) == []


def test_scans_of_one_broker_by_two_names_of_its_host_are_told_by_the_names(tmp_path: Path) -> None:
    rows = [row(1, host="pod-a", log_dir="/data"), row(1, host="pod-b", log_dir="/data")]
    renamed = ", or its host has another name now: leave out the inventories of the old one"
    assert {each.kind: each.detail for each in fleet(tmp_path, rows)} == {
        "DUPLICATE_DIRECTORY_ID": "2 log dirs carry it, among them pod-a:/data and pod-b:/data: one is a copy"
        + renamed,
        "DUPLICATE_NODE_ID": (
            "2 hosts have it, among them pod-a and pod-b: two nodes share it, or a disk is a copy" + renamed
        ),
    }
    on_one_host = [row(1, log_dir="/data/1"), row(1, log_dir="/data/2")]
    (found,) = fleet(tmp_path, on_one_host)
    assert found.detail == "2 log dirs carry it, among them /data/1 and /data/2: one is a copy"


def test_a_topic_under_several_ids_is_reported_without_metadata(tmp_path: Path) -> None:
    rows = [row(1), row(2), row(3), live(1, NEW), live(2, NEW), live(3, OLD)]
    (finding,) = fleet(tmp_path, rows)
    assert (finding.kind, finding.cluster_id, finding.subject) == ("TOPIC_UNDER_SEVERAL_IDS", "c1", "t")
    assert finding.detail == f"{NEW} in 2 replicas on brokers 1 to 2; {OLD} in 1 replica on broker 3"


def test_every_broker_that_holds_one_of_several_ids_is_named_those_with_nothing_to_find_too(tmp_path: Path) -> None:
    rows = [*map(row, (1, 2, 3, 7)), live(7, NEW), live(1, NEW), live(1, NEW, partition=1), live(3, OLD)]
    (held,) = (each.held for each in fleet(tmp_path, rows, state(1, 7)) if each.held)
    assert {each.topic_id: each.brokers for each in held} == {str(NEW): (1, 7), str(OLD): (3,)}


def test_a_topic_without_an_id_in_the_metadata_has_several_though_each_replica_is_in_order(tmp_path: Path) -> None:
    builder = DesiredBuilder()
    builder.partition("t", None, 0, [1, 2])
    rows = [row(1), row(2), live(1, NEW), live(2, OLD)]
    (finding,) = fleet(tmp_path, rows, builder.build(MetadataIdentity("zookeeper", "/m", "c1")))
    assert finding.detail == f"{NEW} in 1 replica on broker 1; {OLD} in 1 replica on broker 2"


def test_the_topics_under_several_ids_are_those_of_a_search_of_everything(tmp_path: Path) -> None:
    table, states = many_fleets(range(40))
    ids = defaultdict[tuple[str, str], dict[str, set[int]]](lambda: defaultdict(set))
    for each in table.to_pylist():
        if each["kind"] in ("live", "future") and each["metadata_state"] == "ok" and each["topic_id"]:
            node = -1 if each["node_id"] is None else each["node_id"]
            ids[each["cluster_id"] or "", each["topic"]][each["topic_id"]].add(node)
    expected = {
        place: {topic_id: tuple(sorted(nodes)) for topic_id, nodes in held.items()}
        for place, held in ids.items()
        if len(held) > 1
    }
    result = audit([table], [], states, str(tmp_path), now_ms=NOW_MS)
    found = {
        (each.cluster_id or "", each.subject): {held.topic_id: held.brokers for held in each.held}
        for each in result.fleet
        if each.held
    }
    assert found == expected


def test_an_id_in_damaged_metadata_is_no_second_id(tmp_path: Path) -> None:
    rows = [row(1), row(2), live(1, NEW), live(2, OLD, metadata_state="contradicts")]
    assert fleet(tmp_path, rows) == []


def test_with_metadata_it_says_which_id_is_known(tmp_path: Path) -> None:
    rows = [row(1), row(2), live(1, NEW), live(2, OLD)]
    several = [f for f in fleet(tmp_path, rows, state(1)) if f.kind == "TOPIC_UNDER_SEVERAL_IDS"]
    assert f"{NEW} (the metadata knows it) in 1 replica on broker 1" in several[0].detail


def test_the_same_name_in_two_clusters_is_no_finding(tmp_path: Path) -> None:
    rows = [row(1), row(2, cluster_id="c2"), live(1, NEW), live(2, OLD, cluster_id="c2")]
    assert fleet(tmp_path, rows) == []


def test_a_node_of_two_clusters_on_one_host_is_reported(tmp_path: Path) -> None:
    other = {"cluster_id": "c2", "log_dir": "/other", "directory_id": "d9"}
    (finding,) = fleet(tmp_path, [row(1), row(1) | other])
    assert (finding.kind, finding.subject) == ("NODE_IN_SEVERAL_CLUSTERS", "broker 1")
    assert finding.detail == "host h1 has log dirs of this node of 2 clusters, c1 in /b1 and c2 in /other"
    third = row(1) | {"cluster_id": "c0", "log_dir": "/third", "directory_id": "d8"}
    (finding,) = fleet(
        tmp_path, [row(1), row(1) | other, row(1) | other | {"log_dir": "/a", "directory_id": "d7"}, third]
    )
    assert finding.detail.endswith("of this node of 3 clusters, among them c0 in /third and c2 in /a")


def test_the_same_node_id_of_two_clusters_on_two_hosts_is_usual(tmp_path: Path) -> None:
    other = {"cluster_id": "c2", "log_dir": "/other", "directory_id": "d9", "host": "h9"}
    assert fleet(tmp_path, [row(1), row(1) | other]) == []


def registering(*directory_ids: str) -> DesiredState:
    builder = DesiredBuilder()
    builder.partition("t", NEW, 0, [1])
    builder.broker(1, 1, False, directory_ids)
    return builder.build(MetadataIdentity("kraft", "/m", "c1"))


def test_a_log_dir_that_its_broker_did_not_register_is_reported(tmp_path: Path) -> None:
    extra = {"log_dir": "/extra", "directory_id": "d9"}
    (finding,) = fleet(tmp_path, [row(1), live(1, NEW), row(1) | extra], registering("d1"))
    assert (finding.kind, finding.subject) == ("LOG_DIR_NOT_REGISTERED", "/extra")


def test_the_metadata_log_dir_needs_no_registration(tmp_path: Path) -> None:
    extra = {"log_dir": "/meta", "directory_id": "d9"}
    metadata = {"kind": "internal", "name": "__cluster_metadata-0", "topic": "__cluster_metadata", "partition": 0}
    rows = [row(1), live(1, NEW), row(1) | extra, row(1) | extra | metadata]
    assert fleet(tmp_path, rows, registering("d1")) == []


def test_a_registered_log_dir_that_was_not_scanned_is_reported(tmp_path: Path) -> None:
    (finding,) = fleet(tmp_path, [row(1), live(1, NEW)], registering("d1", "d2"))
    assert (finding.kind, finding.subject) == ("LOG_DIR_NOT_SEEN", "d2")


def test_a_broker_that_registers_no_log_dirs_says_nothing_about_them(tmp_path: Path) -> None:
    assert fleet(tmp_path, [row(1), live(1, NEW)], registering()) == []


def test_a_directory_id_in_two_log_dirs_is_reported(tmp_path: Path) -> None:
    (finding,) = fleet(tmp_path, [row(1), row(2, directory_id="d1")])
    assert (finding.kind, finding.subject) == ("DUPLICATE_DIRECTORY_ID", "d1")
    assert "/b1" in finding.detail and "/b2" in finding.detail


def test_a_node_id_on_two_hosts_is_reported(tmp_path: Path) -> None:
    (finding,) = fleet(tmp_path, [row(1), row(1, host="h9", log_dir="/b9", directory_id="d9")])
    assert (finding.kind, finding.subject) == ("DUPLICATE_NODE_ID", "broker 1")


def test_two_metadata_logs_under_one_node_id_are_reported(tmp_path: Path) -> None:
    metadata = {"kind": "internal", "name": "__cluster_metadata-0", "topic": "__cluster_metadata", "partition": 0}
    second = {"log_dir": "/b1b", "directory_id": "d1b"}
    rows = [row(1), row(1) | metadata, row(1) | second, row(1) | second | metadata]
    assert [finding.kind for finding in fleet(tmp_path, rows)] == ["DUPLICATE_NODE_ID"]


def test_two_log_dirs_of_one_broker_are_no_finding(tmp_path: Path) -> None:
    assert fleet(tmp_path, [row(1), row(1, log_dir="/b1b", directory_id="d1b")]) == []


def test_log_dirs_of_a_cluster_without_metadata_are_reported(tmp_path: Path) -> None:
    rows = [row(1), live(1, NEW), row(2, cluster_id="c2")]
    (finding,) = fleet(tmp_path, rows, state(1))
    assert (finding.kind, finding.subject) == ("OTHER_CLUSTER", "c2")


def test_the_only_copy_of_a_topic_id_is_reported(tmp_path: Path) -> None:
    rows = [row(1), row(2), live(1, NEW), live(2, OLD)]
    only = [f for f in fleet(tmp_path, rows, state(1)) if f.kind == "ONLY_KNOWN_COPY"]
    shown = f"partition 0 is STALE_ID on broker 2, and no other copy of topic ID {OLD} was scanned"
    assert [(f.subject, f.detail) for f in only] == [("t", shown)]


def test_a_second_copy_anywhere_takes_that_finding_away(tmp_path: Path) -> None:
    stray = {"kind": "stray", "name": "t-0.x-stray", "log_dir": "/b3"}
    rows = [row(1), row(2), row(3), live(1, NEW), live(2, OLD), live(3, OLD) | stray]
    assert "ONLY_KNOWN_COPY" not in {f.kind for f in fleet(tmp_path, rows, state(1))}


def test_an_empty_replica_is_no_copy_worth_telling(tmp_path: Path) -> None:
    rows = [row(1), row(2), live(1, NEW), live(2, OLD, bytes=0)]
    assert "ONLY_KNOWN_COPY" not in {f.kind for f in fleet(tmp_path, rows, state(1))}


def test_a_missing_replica_that_is_the_only_in_sync_one_is_reported(tmp_path: Path) -> None:
    rows = [row(1), row(2), live(2, NEW)]
    (finding,) = fleet(tmp_path, rows, state(1, 2, isr=(1,)))
    assert (finding.kind, finding.subject) == ("ONLY_IN_SYNC_COPY", "t")
    assert finding.detail == "partition 0 is MISSING on broker 1, where the metadata has the only in-sync replica"


def test_a_missing_replica_with_in_sync_peers_is_no_fleet_finding(tmp_path: Path) -> None:
    assert fleet(tmp_path, [row(1), row(2), live(2, NEW)], state(1, 2)) == []


def test_more_rows_than_are_reported_are_counted_and_not_dropped_in_silence() -> None:
    query = next(query for query in QUERIES if query.kind == "DUPLICATE_DIRECTORY_ID")
    rows = [
        {"cluster": "c1", "directory_id": f"d{number:05}", "times": 2, "hosts": 1, "one": "/a", "other": "/b"}
        for number in range(LIMIT + 1)
    ]
    findings = to_findings(query, rows)
    assert len(findings) == LIMIT + 1
    assert findings[-1].subject == "more" and str(LIMIT) in findings[-1].detail


def test_every_kind_is_asked_once() -> None:
    kinds = [query.kind for query in QUERIES]
    assert len(kinds) == len(set(kinds)) == 8
    assert all(isinstance(query, FleetQuery) for query in QUERIES)


HOUR_MS = 3_600_000
AS_OF_MS = 1_700_000_000_000


def kept_by(node: int | None, *registered: int, runs: bool = False, as_of_ms: int = AS_OF_MS) -> DesiredState:
    builder = DesiredBuilder()
    builder.partition("t", NEW, 0, [1, 2])
    for each in registered:
        builder.broker(each, 1, False, [])
    identity = MetadataIdentity("kraft", "/m", "c1", timestamp_ms=as_of_ms, keeper=node, keeper_runs=runs)
    return builder.build(identity)


def of_times(
    tmp_path: Path, rows: list[dict[str, Any]], state: DesiredState, *, now_ms: int, **options: Any
) -> list[str]:
    """The kinds of the findings about metadata and times, with their subjects."""
    found = audit([pa.Table.from_pylist(rows, schema=ROW_SCHEMA)], [], [state], str(tmp_path), now_ms=now_ms, **options)
    return [f"{each.kind} {each.subject}" for each in found.fleet if each.kind in ("OWN_METADATA", "INVENTORY_AGE")]


def test_the_own_metadata_of_a_broker_that_does_not_run_is_reported(tmp_path: Path) -> None:
    later = AS_OF_MS + HOUR_MS
    rows = [row(1, scanned_ms=later), live(1, NEW, scanned_ms=later)]
    assert of_times(tmp_path, rows, kept_by(1, 1, 2), now_ms=later) == ["OWN_METADATA broker 1"]


def test_metadata_of_a_running_broker_a_controller_or_another_broker_is_nobodys_own(tmp_path: Path) -> None:
    later = AS_OF_MS + HOUR_MS
    rows = [row(1, scanned_ms=later), live(1, NEW, scanned_ms=later)]
    for others in (kept_by(1, 1, 2, runs=True), kept_by(9, 1, 2), kept_by(2, 1, 2), kept_by(None, 1, 2)):
        assert of_times(tmp_path, rows, others, now_ms=later) == []


def test_own_metadata_that_is_younger_than_the_scan_misses_nothing_of_it(tmp_path: Path) -> None:
    rows = [row(1, scanned_ms=AS_OF_MS - 1), live(1, NEW, scanned_ms=AS_OF_MS - 1)]
    assert of_times(tmp_path, rows, kept_by(1, 1, 2), now_ms=AS_OF_MS + HOUR_MS) == []


def test_an_inventory_far_from_the_metadata_is_reported_with_both_times(tmp_path: Path) -> None:
    old, young, near = AS_OF_MS - 30 * HOUR_MS, AS_OF_MS + 30 * HOUR_MS, AS_OF_MS - HOUR_MS
    rows = [row(1, scanned_ms=old), row(2, scanned_ms=young), row(3, scanned_ms=near)]
    now_ms = AS_OF_MS + 40 * HOUR_MS
    found = fleet_at(tmp_path, rows, kept_by(None), now_ms)
    assert [(each.subject, each.detail) for each in found if each.kind == "INVENTORY_AGE"] == [
        (
            "broker 1",
            "scanned at 2023-11-13 16:13:20 UTC, 30 h before the metadata, which speaks as of 2023-11-14 22:13:20 UTC",
        ),
        (
            "broker 2",
            "scanned at 2023-11-16 04:13:20 UTC, 30 h after the metadata, which speaks as of 2023-11-14 22:13:20 UTC",
        ),
    ]
    assert of_times(tmp_path, rows, kept_by(None), now_ms=now_ms, gap_ms=31 * HOUR_MS) == []
    assert len(of_times(tmp_path, rows, kept_by(None), now_ms=now_ms, gap_ms=HOUR_MS - 1)) == 3


def test_log_dirs_that_this_audit_scanned_and_metadata_without_a_time_have_no_gap(tmp_path: Path) -> None:
    now_ms = AS_OF_MS + 40 * HOUR_MS
    assert of_times(tmp_path, [row(1, scanned_ms=now_ms)], kept_by(None), now_ms=now_ms) == []
    assert of_times(tmp_path, [row(1, scanned_ms=1)], kept_by(None, as_of_ms=0), now_ms=now_ms) == []


def test_an_inventory_of_the_future_is_reported_because_no_newer_one_would_count(tmp_path: Path) -> None:
    rows = [row(1, scanned_ms=AS_OF_MS + 72 * HOUR_MS), row(2, scanned_ms=AS_OF_MS + HOUR_MS)]
    tables, options = [pa.Table.from_pylist(rows, schema=ROW_SCHEMA)], {"now_ms": AS_OF_MS, "inventoried": True}
    found, *others = (
        each for each in audit(tables, [], [kept_by(None)], str(tmp_path), **options).fleet if "AGE" in each.kind
    )
    assert (found.subject, found.detail) == (
        "broker 1",
        "scanned at 2023-11-17 22:13:20 UTC, 3 d after the metadata, which speaks as of 2023-11-14 22:13:20 UTC: a "
        "clock was wrong, and until then no other scan of these log dirs counts beside that one",
    )
    assert not others
    assert not [each for each in fleet_at(tmp_path, rows, kept_by(None), AS_OF_MS) if "AGE" in each.kind], "it scanned"


def fleet_at(tmp_path: Path, rows: list[dict[str, Any]], state: DesiredState, now_ms: int) -> list[FleetFinding]:
    return list(audit([pa.Table.from_pylist(rows, schema=ROW_SCHEMA)], [], [state], str(tmp_path), now_ms=now_ms).fleet)


def test_the_only_copy_in_sync_is_in_doubt_with_the_replica_that_an_older_scan_did_not_find(tmp_path: Path) -> None:
    builder = DesiredBuilder()
    builder.partition("t", NEW, 0, [1], isr=[1])
    builder.partition("t", NEW, 1, [2], isr=[2])
    state = builder.build(MetadataIdentity("kraft", "/m", "c1", timestamp_ms=AS_OF_MS))
    rows = [row(1, scanned_ms=AS_OF_MS - 1), row(2, scanned_ms=AS_OF_MS + 1)]
    found = [each for each in fleet_at(tmp_path, rows, state, AS_OF_MS) if each.kind == "ONLY_IN_SYNC_COPY"]
    assert [(each.detail.split()[1], each.doubt) for each in found] == [("1", None), ("0", "SCANNED_BEFORE_METADATA")]


def test_the_only_known_copy_is_in_doubt_with_its_verdict(tmp_path: Path) -> None:
    builder = DesiredBuilder()
    builder.partition("u", NEW, 0, [1])
    state = builder.build(MetadataIdentity("kraft", "/m", "c1", timestamp_ms=AS_OF_MS))
    rows = [row(1), live(1, OLD, modified_ms=AS_OF_MS + 1)]
    (found,) = [each for each in fleet_at(tmp_path, rows, state, AS_OF_MS) if each.kind == "ONLY_KNOWN_COPY"]
    assert found.doubt == "CHANGED_SINCE_METADATA"


def test_of_more_findings_than_a_report_takes_one_says_how_many_more_there_are() -> None:
    found = limited(unreported_brokers("c1", dict.fromkeys(range(LIMIT + 12), 1), {3}))
    assert len(found) == LIMIT + 1
    assert found[-1] == FleetFinding(
        "BROKER_NOT_REPORTED",
        "c1",
        "more",
        "only the first 1,000 findings of this kind are told, and there are 11 more",
    )
    assert limited(found[:LIMIT]) == found[:LIMIT]
    assert limited([]) == []


def test_every_broker_whose_inventory_is_far_from_the_metadata_is_counted() -> None:
    log_dirs = [{"cluster": "c1", "node": node, "scanned_ms": 1} for node in range(LIMIT + 5)]
    states = {"c1": kept_by(None, as_of_ms=10**9)}
    found = limited(far_inventories(states, log_dirs, 10**9, 1000, inventoried=True))
    assert len(found) == LIMIT + 1
    assert found[-1].detail.endswith("and there are 5 more")
