"""The embedded audit: the same verdicts as the case table in Python, and what it leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.rows import ROW_SCHEMA
from reconciler.audit import FINDING_SCHEMA, TOPICS_FILE, AuditResult, audit, duckdb_join
from reconciler.audit.findings import FINDINGS_FILE
from reconciler.desired import DesiredBuilder, MetadataIdentity, by_cluster
from reconciler.errors import RefusedError, UsageError
from reconciler.verdicts import Judged, Verdict, broker_of, compare
from tests.fleets import NOW_MS, many_fleets, random_fleet

FindingKey = tuple[Any, ...]


def judged_in_python(rows: pa.Table, states: list[Any]) -> list[Judged]:
    observed = rows.to_pylist()
    by_id = by_cluster(states, {broker_of(row).cluster for row in observed})
    return [
        judged
        for judged in compare(by_id, observed, NOW_MS)
        if judged.observed is None
        or judged.observed["kind"] not in ("log_dir", "internal")
        or judged.verdict is not Verdict.OK
    ]


def as_finding(judged: Judged) -> FindingKey:
    row = judged.observed or {}
    topic = judged.row.topic or None
    return (judged.verdict.value, row.get("log_dir"), row.get("name"), topic, judged.evidence, judged.doubt)


def from_findings(findings: Iterable[dict[str, Any]]) -> list[FindingKey]:
    return [(f["verdict"], f["log_dir"], f["name"], f["topic"], f["evidence"], f["doubt"]) for f in findings]


def findings_of(result: AuditResult) -> list[dict[str, Any]]:
    return [row for batch in result.batches() for row in batch.to_pylist()]


@settings(max_examples=25)
@given(seed=st.integers(min_value=0, max_value=10**9))
def test_duckdb_and_python_agree_on_every_row_and_every_total(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rows, states = random_fleet(seed)
    folder = str(tmp_path_factory.mktemp("audit"))
    expected = judged_in_python(rows, states)
    everything = audit([rows], [], states, folder, now_ms=NOW_MS, all_rows=True)
    assert Counter(from_findings(findings_of(everything))) == Counter(map(as_finding, expected))
    listed = audit([rows], [], states, folder, now_ms=NOW_MS)
    assert Counter(from_findings(findings_of(listed))) == Counter(
        as_finding(judged) for judged in expected if judged.verdict is not Verdict.OK
    )
    assert listed.totals == everything.totals == dict(Counter(judged.verdict.value for judged in expected))
    in_doubt = Counter(judged.verdict.value for judged in expected if judged.doubt is not None)
    assert listed.doubts == everything.doubts == dict(in_doubt)
    for name in ("bytes", "disk_bytes"):
        size: Counter[str] = Counter()
        for judged in expected:
            size[judged.verdict.value] += (judged.observed or {}).get(name) or 0
        assert getattr(listed, name) == getattr(everything, name) == dict(size)


def test_clusters_that_are_joined_one_after_the_other_give_what_all_of_them_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters, usual = set[str | None](), duckdb_join.ROWS_JOINED_AT_ONCE
    for seed in (0, 5, 11):
        rows, states = random_fleet(seed)
        clusters |= set(rows.column("cluster_id").to_pylist())
        pq.write_table(rows, tmp_path / "inventory.parquet")
        answers = []
        for most in (usual, 0):
            monkeypatch.setattr(duckdb_join, "ROWS_JOINED_AT_ONCE", most)
            result = audit([], [str(tmp_path / "inventory.parquet")], states, str(tmp_path), now_ms=NOW_MS)
            answers.append((sorted(findings_of(result), key=repr), replace(result, audited_ms=0)))
        assert answers[0] == answers[1]
    assert clusters == {"c1", "c2", None}


def test_the_fleet_is_searched_alike_where_the_inventories_are_not_read_again_for_it(tmp_path: Path) -> None:
    rows, states = many_fleets(range(2000, 2060))
    pq.write_table(rows, tmp_path / "inventory.parquet")
    audited = [
        audit([], [str(tmp_path / "inventory.parquet")], states, str(tmp_path), now_ms=NOW_MS, all_rows=read_again)
        for read_again in (False, True)
    ]
    assert audited[0].fleet == audited[1].fleet
    told = Counter(finding.kind for finding in audited[0].fleet)
    assert min(told["TOPIC_UNDER_SEVERAL_IDS"], told["ONLY_KNOWN_COPY"]) > 50


def one_log_dir(**columns: Any) -> dict[str, Any]:
    return dict.fromkeys(ROW_SCHEMA.names) | {
        "cluster_id": "c1",
        "node_id": 1,
        "log_dir": "/data",
        "name": ".",
        "kind": "log_dir",
        "metadata_state": "ok",
        **columns,
    }


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ROW_SCHEMA)


def test_an_inventory_and_a_scan_of_the_same_rows_give_the_same_answer(tmp_path: Path) -> None:
    rows, states = random_fleet(7)
    inventory = tmp_path / "host's [1].parquet"
    pq.write_table(rows, inventory)
    scanned = audit([rows], [], states, str(tmp_path), now_ms=NOW_MS)
    first = findings_of(scanned)
    read = audit([], [str(inventory)], states, str(tmp_path), now_ms=NOW_MS)
    key = repr
    assert sorted(findings_of(read), key=key) == sorted(first, key=key)
    assert (read.totals, read.bytes, read.disk_bytes, read.fleet, read.brokers) == (
        scanned.totals,
        scanned.bytes,
        scanned.disk_bytes,
        scanned.fleet,
        scanned.brokers,
    )


def test_rows_may_come_from_both_at_once(tmp_path: Path) -> None:
    inventory = tmp_path / "b2.parquet"
    pq.write_table(table(one_log_dir(node_id=2, log_dir="/b2")), inventory)
    result = audit([table(one_log_dir())], [str(inventory)], [], str(tmp_path), now_ms=NOW_MS)
    assert [broker.node_id for broker in result.brokers] == [1, 2]


def test_findings_and_topics_are_left_as_parquet(tmp_path: Path) -> None:
    rows, states = random_fleet(3)
    audit([rows], [], states, str(tmp_path), now_ms=NOW_MS)
    written = pq.read_schema(tmp_path / FINDINGS_FILE)
    assert [(field.name, field.type) for field in written] == [(field.name, field.type) for field in FINDING_SCHEMA]
    assert pq.read_schema(tmp_path / TOPICS_FILE).names == ["cluster", "topic", "topic_id"]


def test_the_better_copy_of_a_duplicate_is_ranked_first(tmp_path: Path) -> None:
    builder = DesiredBuilder()
    builder.partition("t", "I" * 21 + "A", 0, [1])
    state = builder.build(MetadataIdentity("kraft", "/m", "c1"))
    copy = {"kind": "live", "name": "t-0", "topic": "t", "partition": 0, "metadata_state": "ok"}
    right, wrong = {"topic_id": "I" * 21 + "A"}, {"topic_id": "J" * 21 + "A"}
    rows = table(
        one_log_dir(log_dir="/a"),
        one_log_dir(log_dir="/a", **copy, **wrong, leader_epoch=9, end_offset=900),
        one_log_dir(log_dir="/b", **copy, **right, leader_epoch=4, end_offset=800),
        one_log_dir(log_dir="/c", **copy, **right, leader_epoch=5, end_offset=10),
        one_log_dir(log_dir="/d", **copy, **right, leader_epoch=5, end_offset=20),
    )
    result = audit([rows], [], [state], str(tmp_path), now_ms=NOW_MS)
    ranks = {f["log_dir"]: f["copy_rank"] for f in findings_of(result)}
    assert result.totals == {"DUPLICATE": 4}
    assert ranks == {"/d": 1, "/c": 2, "/b": 3, "/a": 4}


def test_metadata_of_another_cluster_is_refused(tmp_path: Path) -> None:
    state = DesiredBuilder().build(MetadataIdentity("kraft", "/m", "c9"))
    with pytest.raises(RefusedError, match="cluster c9"):
        audit([table(one_log_dir())], [], [state], str(tmp_path), now_ms=NOW_MS)


def test_a_topic_that_was_recreated_since_the_last_audit_is_reported(tmp_path: Path) -> None:
    def state(topic_id: str) -> Any:
        builder = DesiredBuilder()
        builder.topic("t", topic_id)
        return builder.build(MetadataIdentity("kraft", "/m", "c1"))

    rows = table(one_log_dir())
    before = tmp_path / "before"
    before.mkdir()
    audit([rows], [], [state("I" * 21 + "A")], str(before), now_ms=NOW_MS)
    now = audit([rows], [], [state("J" * 21 + "A")], str(tmp_path), now_ms=NOW_MS, previous=str(before / TOPICS_FILE))
    assert [(f.kind, f.subject) for f in now.fleet] == [("TOPIC_ID_CHANGED", "t")]
    over_itself = audit(
        [rows], [], [state("I" * 21 + "A")], str(tmp_path), now_ms=NOW_MS, previous=str(tmp_path / TOPICS_FILE)
    )
    assert [(f.kind, f.subject) for f in over_itself.fleet] == [("TOPIC_ID_CHANGED", "t")]
    audit([rows], [], [state("J" * 21 + "A")], str(tmp_path), now_ms=NOW_MS)
    same = audit(
        [rows], [], [state("J" * 21 + "A")], str(tmp_path), now_ms=NOW_MS, previous=str(tmp_path / TOPICS_FILE)
    )
    assert same.fleet == ()


def test_a_folder_with_the_findings_of_spark_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FINDINGS_FILE).mkdir()
    with pytest.raises(UsageError, match="another folder"):
        audit([table(one_log_dir())], [], [], str(tmp_path), now_ms=NOW_MS)


def test_folder_names_add_no_columns_to_an_inventory(tmp_path: Path) -> None:
    folder = tmp_path / "node_id=5" / "kind=live"
    folder.mkdir(parents=True)
    pq.write_table(table(one_log_dir()), folder / "rows.parquet")
    result = audit([], [str(folder / "rows.parquet")], [], str(tmp_path), now_ms=NOW_MS)
    assert [broker.node_id for broker in result.brokers] == [1]


def test_a_path_that_looks_like_a_glob_is_the_file_of_that_name(tmp_path: Path) -> None:
    pq.write_table(table(one_log_dir(node_id=1)), tmp_path / "a[2].parquet")
    pq.write_table(table(one_log_dir(node_id=2)), tmp_path / "a2.parquet")
    result = audit([], [str(tmp_path / "a[2].parquet")], [], str(tmp_path), now_ms=NOW_MS)
    assert [broker.node_id for broker in result.brokers] == [1]
