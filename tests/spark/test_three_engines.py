"""Python, DuckDB and Spark agree on every row and every total of many generated fleets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.audit import AuditResult, embedded
from reconciler.audit.dimension_tables import rows_of
from reconciler.audit.spark import inventories, join, output
from reconciler.desired import by_cluster
from reconciler.verdicts import CASES, Doubt, Verdict, broker_of, compare
from tests.fleets import NOW_MS, healthy_fleet, many_fleets
from tests.spark.answers import assert_same, jobs_begun

pytestmark = pytest.mark.spark

MOST_JOBS = 12
"""What an audit may ask of Spark, however small its tables are: each that all executors get is a job."""

MOST_JOBS_OF_MANY = 20
"""The same where so much is not plainly in order that the driver leaves it to Spark."""

FLEETS = range(1000, 1080)

Rows = Counter[tuple[Any, ...]]


def shown(result: AuditResult) -> Rows:
    columns = ("verdict", "cluster_id", "broker", "log_dir", "name", "topic", "partition", "evidence", "doubt")
    return Counter(tuple(row[name] for name in columns) for batch in result.batches() for row in batch.to_pylist())


def judged_in_python(observed: list[dict[str, Any]], states: list[Any]) -> tuple[Rows, Counter[str], Counter[str]]:
    """Rows, totals and rows in doubt by the table in Python, a cluster at a time: a wanted replica knows its own."""
    rows: Rows = Counter()
    totals: Counter[str] = Counter()
    doubts: Counter[str] = Counter()
    clusters = {broker_of(row).cluster for row in observed}
    by_id = by_cluster(states, clusters)
    for cluster in clusters:
        here = [row for row in observed if broker_of(row).cluster == cluster]
        for judged in compare({c: s for c, s in by_id.items() if c == cluster}, here, NOW_MS):
            row, wanted = judged.observed or {}, judged.wanted or {}
            if row.get("kind") in ("log_dir", "internal") and judged.verdict is Verdict.OK:
                continue
            totals[judged.verdict] += 1
            if judged.doubt is not None:
                doubts[judged.verdict] += 1
            broker, partition = (row or wanted)["node_id"], (row or wanted)["partition"]
            topic = judged.row.topic or None
            place = (cluster or None, broker, row.get("log_dir"), row.get("name"), topic, partition)
            rows[judged.verdict, *place, judged.evidence, judged.doubt] += 1
    return rows, totals, doubts


def test_three_engines_agree_on_every_row_and_every_total(spark: Any, tmp_path: Path) -> None:
    from reconciler.audit.spark import engine as spark_engine

    rows, states = many_fleets(FLEETS)
    python, totals, doubts = judged_in_python(rows.to_pylist(), states)
    (tmp_path / "duck").mkdir()
    inventories = [str(tmp_path / "rows.parquet")]
    pq.write_table(rows, inventories[0])
    duck = embedded.audit([], inventories, states, str(tmp_path / "duck"), now_ms=NOW_MS, all_rows=True)
    before = jobs_begun(spark)
    sparked = spark_engine.audit(spark, [], inventories, states, str(tmp_path), now_ms=NOW_MS, all_rows=True)
    assert jobs_begun(spark) - before < MOST_JOBS  # trees beside inventories are one more
    assert sum(python.values()) > 1000
    assert set(totals) == set(Verdict)
    assert {row[-1] for row in python} == {None, *Doubt}
    assert set(doubts) == {case.verdict for case in CASES if case.doubt is not None}
    assert dict(duck.totals) == dict(sparked.totals) == dict(totals)
    assert dict(duck.doubts) == dict(sparked.doubts) == dict(doubts)
    assert shown(duck) == shown(sparked) == python
    assert (duck.bytes, duck.disk_bytes, duck.fleet) == (sparked.bytes, sparked.disk_bytes, sparked.fleet)
    assert duck.brokers == sparked.brokers


@pytest.mark.parametrize("few", [output.FEW_ROWS, 0])
def test_what_is_settled_without_a_look_is_in_order_whoever_judges_the_rest(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    from reconciler.audit.spark import engine as spark_engine

    counted = list[int]()

    def noted(small: duckdb.DuckDBPyConnection, *tables: str) -> bool:
        counted.append(sum(rows_of(small, f"SELECT count(*) AS rows FROM {table}")[0]["rows"] for table in tables))
        return counted[-1] <= few

    monkeypatch.setattr(inventories, "are_few", noted)
    random, states = many_fleets(FLEETS)
    healthy = [healthy_fleet(cluster, 300) for cluster in ("A", "B")]
    (tmp_path / "duck").mkdir()
    paths = [str(tmp_path / "random.parquet"), str(tmp_path / "healthy.parquet")]
    pq.write_table(random, paths[0])
    pq.write_table(pa.concat_tables(rows for rows, _ in healthy), paths[1])
    states += [state for _, state in healthy]
    duck = embedded.audit([], paths, states, str(tmp_path / "duck"), now_ms=NOW_MS)
    before = jobs_begun(spark)
    sparked = spark_engine.audit(spark, [], paths, states, str(tmp_path), now_ms=NOW_MS)
    assert jobs_begun(spark) - before < (MOST_JOBS if few else MOST_JOBS_OF_MANY)
    assert_same(sparked, duck)
    assert [each.held for each in sparked.fleet] == [each.held for each in duck.fleet]
    # What is left is rows of disks and wanted replicas; of a healthy fleet's 1,800 of each nearly all are settled.
    all_rows = random.num_rows + sum(rows.num_rows for rows, _ in healthy)
    assert counted[0] < 2 * (all_rows - 1500)


def test_two_partitions_of_one_hash_are_both_looked_at(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconciler.audit.spark import engine as spark_engine

    # Wanted are partitions 0 to 39, and live are 100 to 139, once each: each meets one of the others.
    plain, same = join._HASH, "CAST(pmod(partition, 100) AS BIGINT)"
    for name in ("desired", "live"):
        monkeypatch.setitem(join.SPARK_VIEWS, name, join.SPARK_VIEWS[name].replace(plain, same))
    monkeypatch.setattr(join, "_MET", join._MET.replace(plain, same))
    monkeypatch.setattr(join, "_HASH", same)
    monkeypatch.setattr(join, "_HASH_OF_ROW", f"CASE WHEN kind = 'live' THEN {same} ELSE 0 END")
    rows, state = healthy_fleet("C", 40)
    of_one = [row for row in rows.to_pylist() if row["node_id"] == 0]
    moved = {row["partition"]: row | {"partition": row["partition"] + 100} for row in of_one if row["kind"] == "live"}
    paths = [str(tmp_path / "rows.parquet")]
    pq.write_table(pa.Table.from_pylist([of_one[0], *moved.values()], schema=rows.schema), paths[0])
    (tmp_path / "duck").mkdir()
    duck = embedded.audit([], paths, [state], str(tmp_path / "duck"), now_ms=NOW_MS)
    sparked = spark_engine.audit(spark, [], paths, [state], str(tmp_path), now_ms=NOW_MS)
    assert_same(sparked, duck)
    assert min(duck.totals["MISSING"], duck.totals["NOT_ASSIGNED"]) > 30
