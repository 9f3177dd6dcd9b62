"""Python, DuckDB and Spark agree on every row and every total of many generated fleets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reconciler.audit import AuditResult, embedded
from reconciler.desired import by_cluster
from reconciler.verdicts import CASES, Doubt, Verdict, broker_of, compare
from tests.fleets import NOW_MS, many_fleets
from tests.spark.answers import jobs_begun

pytestmark = pytest.mark.spark

MOST_JOBS = 12
"""What an audit may ask of Spark, however small its tables are: each that all executors get is a job."""

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
