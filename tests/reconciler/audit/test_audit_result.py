"""The result of an audit: findings in a Parquet dataset; totals, brokers and notes from an engine's answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from logstore.rows import InventorySet, LogDirOnHost, OtherPlace
from reconciler.audit import FINDING_SCHEMA, Accepted, AuditResult, with_inventories, with_policy
from reconciler.audit.fleet import FleetFinding
from reconciler.audit.result import conclude
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.policy import PolicyRules, Rule, RuleKind
from reconciler.verdicts import Doubt


def finding(verdict: str, broker: int | None = 1, partition: int = 0) -> dict[str, Any]:
    return dict.fromkeys(FINDING_SCHEMA.names) | {
        "verdict": verdict,
        "broker": broker,
        "topic": "t",
        "partition": partition,
    }


def result(path: Path, *findings: dict[str, Any], fleet: tuple[FleetFinding, ...] = ()) -> AuditResult:
    pq.write_table(pa.Table.from_pylist(list(findings), schema=FINDING_SCHEMA), path)
    totals: dict[str, int] = {}
    for row in findings:
        totals[row["verdict"]] = totals.get(row["verdict"], 0) + 1
    return AuditResult("embedded", 0, (), (), totals, {}, {}, fleet, str(path))


def test_findings_are_counted_and_read_from_one_file(tmp_path: Path) -> None:
    audit = result(tmp_path / "f.parquet", finding("MISSING"), finding("STRAY"))
    assert audit.count == 2
    assert sum(batch.num_rows for batch in audit.batches()) == 2


def test_findings_may_be_a_folder_of_files(tmp_path: Path) -> None:
    one = result(tmp_path / "1.parquet", finding("MISSING"))
    result(tmp_path / "2.parquet", finding("STRAY"))
    both = AuditResult("spark", 0, (), (), {"MISSING": 1, "STRAY": 1}, {}, {}, (), str(tmp_path))
    assert (one.count, both.count) == (1, 2)
    assert both.most_urgent(9)["verdict"].to_pylist() == ["MISSING", "STRAY"]


def test_the_most_urgent_come_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    rows = [finding("STRAY"), finding("DAMAGED", 2), finding("DAMAGED", 1, 9), finding("DAMAGED", 1, 3), finding("OK")]
    audit = result(tmp_path / "f.parquet", *rows)
    shown = [(row["verdict"], row["broker"], row["partition"]) for row in audit.most_urgent(4).to_pylist()]
    assert shown == [("DAMAGED", 1, 3), ("DAMAGED", 1, 9), ("DAMAGED", 2, 0), ("STRAY", 1, 0)]
    assert audit.most_urgent(1).num_rows == 1


def test_no_findings_give_an_empty_table_with_the_columns(tmp_path: Path) -> None:
    assert result(tmp_path / "f.parquet").most_urgent(5).schema.names == FINDING_SCHEMA.names


def test_an_audit_with_only_benign_verdicts_is_clean(tmp_path: Path) -> None:
    assert result(tmp_path / "f.parquet", finding("STAGED"), finding("OK"), finding("IN_FLIGHT")).is_clean


def test_one_stale_replica_makes_it_unclean(tmp_path: Path) -> None:
    assert not result(tmp_path / "f.parquet", finding("OK"), finding("STALE_ID")).is_clean


def test_a_fleet_finding_makes_it_unclean(tmp_path: Path) -> None:
    assert not result(tmp_path / "f.parquet", fleet=(FleetFinding("DUPLICATE_NODE_ID", None, "1", "twice"),)).is_clean


ALL_WELL = {"live": 9, "without_metadata": 0, "without_segment": 0}
CLUSTER = "c" * 22
UNDATED = {"scanned_ms": None, "keeps_metadata": False}


def answers(
    found: list[dict[str, Any]],
    disks: list[dict[str, Any]],
    log_dirs: list[dict[str, Any]],
) -> Any:
    def query(sql: str) -> list[dict[str, Any]]:
        if "FROM found GROUP BY" in sql:
            return found
        if "FROM disks" in sql:
            return disks
        if "SELECT cluster, node, host, log_dir" in sql:
            return log_dirs
        return []

    return query


def _sizes(size: int, suffix: str = "_counted") -> dict[str, int]:
    """Lengths, and half as much space on the disk."""
    return {f"bytes{suffix}": size, f"disk_bytes{suffix}": size // 2}


def total(verdict: str, rows: int, size: int, replicas: int) -> dict[str, Any]:
    return {
        "cluster": CLUSTER,
        "node": 1,
        "log_dir": None if verdict == "MISSING" else "/disk-1",
        "verdict": verdict,
        "first_due_ms": None,
        "rows_found": rows,
        "rows_observed": replicas,
        "doubts_found": 0,
        "undated_found": 0,
        **_sizes(size, "_found"),
        **_sizes(size),
    }


def disk(node: int, replicas: int, size: int) -> dict[str, Any]:
    counted = {"rows_observed": replicas, "replicas": replicas, **_sizes(size, ""), **_sizes(size)}
    return {"cluster": CLUSTER, "node": node, "log_dir": f"/disk-{node}", **counted, **ALL_WELL}


def log_dir(node: int, path: str, state: str = "ok", problem: str = "") -> dict[str, Any]:
    identity = {"cluster": CLUSTER if node >= 0 else "", "node": node, "host": f"h{node}", "directory_id": f"d{path}"}
    return {**identity, "log_dir": path, "state": state, "problem": problem, "clean_shutdown": True, **UNDATED}


def state(*nodes: int, problems: tuple[str, ...] = (), scope: frozenset[int] | None = None) -> DesiredState:
    builder = DesiredBuilder()
    builder.partition("t", None, 0, list(nodes))
    return builder.build(MetadataIdentity("kraft", "/m", CLUSTER, problems=problems, scope=scope))


def ask(query: Any, *states: DesiredState) -> Any:
    return conclude(
        query, dict.fromkeys([CLUSTER], *states) if states else {}, engine="e", now_ms=5, findings_path="/f"
    )


def test_what_was_observed_and_not_found_is_ok() -> None:
    found = [total("STALE_ID", 2, 20, 2), total("MISSING", 3, 0, 0), total("ABSENT", 2, 0, 0)]
    result = ask(answers(found, [disk(1, 10, 100), disk(2, 5, 50)], []))
    assert result.totals == {"OK": 13, "STALE_ID": 2, "MISSING": 3, "ABSENT": 2}
    assert result.bytes == {"OK": 130, "STALE_ID": 20, "MISSING": 0, "ABSENT": 0}
    assert result.disk_bytes == {"OK": 65, "STALE_ID": 10, "MISSING": 0, "ABSENT": 0}


def test_the_totals_of_each_log_dir_add_up_to_those_of_all() -> None:
    found = [total("STALE_ID", 2, 20, 2), total("MISSING", 3, 0, 0)]
    result = ask(answers(found, [disk(1, 10, 100), disk(2, 5, 50)], []))
    shown = {(each.node, each.log_dir, each.verdict): (each.rows, each.disk_bytes) for each in result.by_log_dir}
    assert shown == {
        (1, "/disk-1", "STALE_ID"): (2, 10),
        (1, None, "MISSING"): (3, 0),
        (1, "/disk-1", "OK"): (8, 40),
        (2, "/disk-2", "OK"): (5, 25),
    }


def test_listing_ok_rows_changes_no_total() -> None:
    listed = [total("STALE_ID", 2, 20, 2), total("OK", 8, 80, 8)]
    silent = [total("STALE_ID", 2, 20, 2)]
    disks = [disk(1, 10, 100)]
    assert ask(answers(listed, disks, [])).totals == ask(answers(silent, disks, [])).totals == {"OK": 8, "STALE_ID": 2}


def test_a_verdict_without_rows_is_not_listed() -> None:
    assert ask(answers([total("STRAY", 1, 9, 1)], [disk(1, 1, 9)], [])).totals == {"STRAY": 1}


def test_log_dirs_are_grouped_into_brokers() -> None:
    log_dirs = [
        log_dir(-1, "/x", "missing", "no meta.properties"),
        log_dir(1, "/a"),
        log_dir(1, "/b"),
        log_dir(2, "/c"),
    ]
    result = ask(answers([], [disk(1, 10, 100)], log_dirs))
    shown = [(b.cluster_id, b.node_id, len(b.log_dirs), b.replicas, b.bytes, b.disk_bytes) for b in result.brokers]
    assert shown == [(None, None, 1, 0, 0, 0), (CLUSTER, 1, 2, 10, 100, 50), (CLUSTER, 2, 1, 0, 0, 0)]
    assert result.brokers[0].log_dirs[0]["problem"] == "no meta.properties"
    assert result.brokers[1].log_dirs[0]["problem"] is None


def test_disks_of_nobody_known_and_controllers_are_not_counted_as_brokers() -> None:
    log_dirs = [
        log_dir(-1, "/unreadable", "missing", "no meta.properties"),
        log_dir(1, "/a"),
        log_dir(1, "/b"),
        log_dir(2, "/new") | {"keeps_metadata": True},
        log_dir(9, "/controller") | {"keeps_metadata": True},
        log_dir(4, "/foreign") | {"cluster": "another"},
    ]
    builder = DesiredBuilder()
    builder.broker(2, 1, False, [])
    registered = builder.build(MetadataIdentity("kraft", "/m", CLUSTER))
    result = ask(answers([], [disk(1, 10, 100)], log_dirs), registered)
    assert result.scope == "4 log dirs of 2 brokers and 1 controller, 2 log dirs of no known broker"
    alone = ask(answers([], [], log_dirs[:1]))
    assert alone.scope == "1 log dir of no known broker"


def test_inventories_that_cannot_be_read_are_findings_and_older_scans_a_note(tmp_path: Path) -> None:
    made = result(tmp_path / "f.parquet")
    found = with_inventories(made, InventorySet(("/new",), older=("/old",), unreadable={"/bad": "it is damaged"}))
    assert found.fleet == (FleetFinding("INVENTORY_UNREADABLE", None, "/bad", "it is damaged"),)
    assert found.notes == ("1 older inventory does not count, because its log dirs were scanned again since: /old",)
    assert (made.is_clean, found.is_clean) == (True, False)
    assert with_inventories(made, InventorySet()) == made


def test_a_log_dir_at_two_places_is_a_finding_only_where_one_may_be_a_copy(tmp_path: Path) -> None:
    made = result(tmp_path / "f.parquet")
    places = [
        OtherPlace("c", 1, "D", LogDirOnHost(older, "/d"), LogDirOnHost(newer, "/d"), apart_ms)
        for older, newer, apart_ms in (
            ("b", "b.example.com", 0),
            ("old", "new", 10**9),
            ("two", "one", 90_000),
            ("three", "one", 0),
        )
    ]
    (found,) = with_inventories(made, InventorySet(other_places=tuple(places))).fleet
    assert (found.kind, found.cluster_id, found.subject) == ("DUPLICATE_DIRECTORY_ID", "c", "D")
    assert found.detail == (
        "one:/d and two:/d carry it, scanned 90 s apart, and at 1 other place: one is a copy, or its host has another "
        "name now, or two. Only the newest scan, of one:/d, was judged; leave out the inventories of the place that is "
        "gone"
    )
    timeless = OtherPlace("c", 1, "D", LogDirOnHost("h", "/a"), LogDirOnHost("h", "/b"), None)
    (found,) = with_inventories(made, InventorySet(other_places=(timeless,))).fleet
    assert (
        "h:/b and h:/a carry it, scanned at times that are not known: one is a copy, or its disk was mo" in found.detail
    )


def doubtful(tmp_path: Path, *accepted: Accepted) -> AuditResult:
    made = result(
        tmp_path / "f.parquet",
        finding("MISSING"),
        fleet=(
            FleetFinding("ONLY_IN_SYNC_COPY", None, "t", "partition 0", Doubt.SCANNED_BEFORE_METADATA),
            FleetFinding("OWN_METADATA", None, "broker 1", "ends"),
            FleetFinding("INVENTORY_AGE", None, "broker 1", "old"),
            FleetFinding("BROKER_NOT_REPORTED", None, "broker 2", "no scan"),
        ),
    )
    return replace(made, doubts={"MISSING": 1}, accepted=accepted)


def test_what_is_accepted_leaves_an_audit_clean_and_nothing_else_does(tmp_path: Path) -> None:
    assert not doubtful(tmp_path).is_clean
    assert doubtful(tmp_path, *Accepted).is_clean
    for missing in Accepted:
        assert not doubtful(tmp_path, *(each for each in Accepted if each is not missing)).is_clean


def test_a_finding_beside_those_in_doubt_is_not_accepted_with_them(tmp_path: Path) -> None:
    made = doubtful(tmp_path, *Accepted)
    assert not replace(made, totals={"MISSING": 2}).is_clean


def test_foreign_names_that_a_policy_allows_do_not_count_and_others_do(tmp_path: Path) -> None:
    rules = PolicyRules("/p", (Rule(RuleKind.FOREIGN, ("lost*",), "p:1"),))
    names = [finding("FOREIGN") | {"name": name} for name in ("lost+found", "lost-2", "other")]
    one_left = with_policy(result(tmp_path / "f.parquet", *names), rules)
    assert (one_left.is_clean, one_left.allowed) == (False, {"FOREIGN": 2})
    assert one_left.notes == ("the policy /p allows 2 of 3 FOREIGN findings: lost+found, lost-2",)
    assert with_policy(result(tmp_path / "g.parquet", *names[:2]), rules).is_clean
    stale = result(tmp_path / "h.parquet", finding("STALE_ID") | {"name": "lost-0"})
    assert with_policy(stale, rules) == stale


def test_brokers_that_were_not_scanned_are_a_note() -> None:
    result = ask(answers([], [], [log_dir(1, "/a")]), state(1, 2, 3))
    assert result.notes == ("2 of 3 brokers that hold replicas were not scanned: 2, 3",)


def test_a_source_that_speaks_for_one_broker_misses_no_others() -> None:
    assert ask(answers([], [], [log_dir(1, "/a")]), state(1, 2, scope=frozenset({1}))).notes == ()


def test_metadata_without_topics_is_said_to_judge_nothing() -> None:
    empty = DesiredBuilder().build(MetadataIdentity("kraft", "/m", CLUSTER))
    assert ask(answers([], [], [log_dir(1, "/a")]), empty).notes == (
        "/m knows no topic at all: nothing was compared with it",
    )


def test_problems_of_a_source_are_notes_that_name_it() -> None:
    assert ask(answers([], [], [log_dir(1, "/a")]), state(1, problems=("torn tail",))).notes == ("/m: torn tail",)


def notes(log_dirs: list[dict[str, Any]], **live: int) -> tuple[str, ...]:
    shown: tuple[str, ...] = ask(answers([], [disk(1, 9, 0) | live], log_dirs)).notes
    return shown


def test_replicas_without_metadata_or_segment_are_counted_in_the_notes() -> None:
    assert notes([log_dir(1, "/a")], without_metadata=3, without_segment=9) == (
        "3 of 9 live replicas have no partition.metadata",
        "9 of 9 live replicas hold no segment",
    )


def test_log_dirs_without_the_marker_of_a_clean_stop_are_counted() -> None:
    running = log_dir(1, "/a") | {"clean_shutdown": False}
    absent = log_dir(2, "/b") | {"clean_shutdown": None}
    (note,) = notes([running, absent, log_dir(3, "/c")])
    assert note.startswith("1 of 3 log dirs has no clean shutdown marker")


def test_an_oddity_of_a_log_dir_that_is_all_right_is_a_note() -> None:
    assert notes([log_dir(1, "/a", problem="has Windows line ends")]) == ("/a: has Windows line ends",)
    assert notes([log_dir(1, "/a", state="missing", problem="no meta.properties")]) == ()


def test_a_cluster_id_of_another_form_is_noted() -> None:
    (note,) = notes([log_dir(1, "/a") | {"cluster": f"Some({CLUSTER})"}])
    assert note.startswith(f"cluster.id Some({CLUSTER}) is not of the form")
