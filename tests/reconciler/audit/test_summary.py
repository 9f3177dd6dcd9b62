"""Totals, brokers and notes, from an engine that answers with what it is told."""

from __future__ import annotations

from typing import Any

from reconciler.audit.summary import conclude
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity


def answers(found: list[dict[str, Any]], disks: list[dict[str, Any]], log_dirs: list[dict[str, Any]]) -> Any:
    def query(sql: str) -> list[dict[str, Any]]:
        if "FROM found GROUP BY verdict" in sql:
            return found
        if "GROUP BY cluster, node" in sql and "kind <> 'log_dir'" in sql:
            return disks
        if "SELECT cluster, node, host, log_dir" in sql:
            return log_dirs
        return []

    return query


def total(verdict: str, rows: int, size: int, replicas: int) -> dict[str, Any]:
    return {"verdict": verdict, "rows_found": rows, "bytes_found": size, "observed_found": replicas}


def disk(node: int, replicas: int, size: int) -> dict[str, Any]:
    return {"cluster": "c1", "node": node, "rows_observed": replicas, "replicas": replicas, "bytes": size}


def log_dir(node: int, path: str, state: str = "ok", problem: str = "") -> dict[str, Any]:
    identity = {"cluster": "c1" if node >= 0 else "", "node": node, "host": f"h{node}", "directory_id": f"d{path}"}
    return {**identity, "log_dir": path, "state": state, "problem": problem}


def state(*nodes: int, problems: tuple[str, ...] = (), scope: frozenset[int] | None = None) -> DesiredState:
    builder = DesiredBuilder()
    builder.partition("t", None, 0, list(nodes))
    return builder.build(MetadataIdentity("kraft", "/m", "c1", problems=problems, scope=scope))


def ask(query: Any, *states: DesiredState) -> Any:
    return conclude(query, dict.fromkeys(["c1"], *states) if states else {}, engine="e", now_ms=5, findings_path="/f")


def test_what_was_observed_and_not_found_is_ok() -> None:
    found = [total("STALE_ID", 2, 20, 2), total("MISSING", 3, 0, 0), total("ABSENT", 2, 0, 0)]
    result = ask(answers(found, [disk(1, 10, 100), disk(2, 5, 50)], []))
    assert result.totals == {"OK": 13, "STALE_ID": 2, "MISSING": 3, "ABSENT": 2}
    assert result.bytes == {"OK": 130, "STALE_ID": 20, "MISSING": 0, "ABSENT": 0}


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
    told = [(b.cluster_id, b.node_id, len(b.log_dirs), b.replicas, b.bytes) for b in result.brokers]
    assert told == [(None, None, 1, 0, 0), ("c1", 1, 2, 10, 100), ("c1", 2, 1, 0, 0)]
    assert result.brokers[0].log_dirs[0]["problem"] == "no meta.properties"
    assert result.brokers[1].log_dirs[0]["problem"] is None


def test_brokers_that_were_not_scanned_are_a_note() -> None:
    result = ask(answers([], [], [log_dir(1, "/a")]), state(1, 2, 3))
    assert result.notes == ("2 of 3 brokers that hold replicas were not scanned: 2, 3",)


def test_a_source_that_speaks_for_one_broker_misses_no_others() -> None:
    assert ask(answers([], [], [log_dir(1, "/a")]), state(1, 2, scope=frozenset({1}))).notes == ()


def test_metadata_without_topics_is_said_to_judge_nothing() -> None:
    empty = DesiredBuilder().build(MetadataIdentity("kraft", "/m", "c1"))
    assert ask(answers([], [], [log_dir(1, "/a")]), empty).notes == (
        "/m knows no topic at all: nothing was compared with it",
    )


def test_problems_of_a_source_are_notes_that_name_it() -> None:
    assert ask(answers([], [], [log_dir(1, "/a")]), state(1, problems=("torn tail",))).notes == ("/m: torn tail",)
