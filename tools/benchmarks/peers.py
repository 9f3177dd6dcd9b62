"""The contenders of the audit benchmark on one machine, each a process of its own that leaves an answer.

``python -m tools.benchmarks.peers CONTENDER FLEET OUT`` audits the fleet of :mod:`tools.benchmarks.data` in FLEET,
leaves the findings in the folder OUT, and beside them ``answer.json``: what must be the same for all contenders.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tools.benchmarks import by_hand as bench_by_hand
from tools.benchmarks import data as bench_data

if TYPE_CHECKING:
    from reconciler.audit import AuditResult

ANSWER_FILE = "answer.json"
FINDINGS_FILE = "findings.parquet"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an audit of the benchmark's fleet says, and what a contender alone can tell of its run."""

    totals: Mapping[str, tuple[int, int]]
    """Rows and bytes by verdict."""
    several_ids: int
    """Topics that lie on the disks under several IDs."""
    session: float = 0.0
    """Seconds that Spark's session took to start."""
    job: float = 0.0
    """Seconds from there to the answer."""
    jvm_peak: int = 0
    """Resident bytes of the JVM at their highest."""

    @property
    def said(self) -> tuple[Mapping[str, tuple[int, int]], int]:
        """The part that must not differ between contenders."""
        return self.totals, self.several_ids


def embedded(fleet: str, out: str) -> Answer:
    """The audit as ``logstore audit`` makes it by default."""
    from logstore.parallel import do_without_pandas

    do_without_pandas()
    from reconciler.audit import audit
    from reconciler.sources import load

    states = load(f"parquet:{bench_data.desired(fleet)}")
    return of_result(audit([], bench_data.inventories(fleet), states, out, now_ms=bench_data.NOW_MS))


def duckdb_by_hand(fleet: str, out: str) -> Answer:
    """The hand-written query in DuckDB."""
    import duckdb

    desired, paths = bench_data.desired(fleet), bench_data.inventories(fleet)
    found = os.path.join(out, FINDINGS_FILE)
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CREATE VIEW inventory AS FROM read_parquet({paths})")
        for table in ("replicas", "topics"):
            connection.execute(f"CREATE VIEW {table} AS FROM '{desired}/{table}.parquet'")
        for name, sql in bench_by_hand.VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {sql}")
        # As the joins are written, the right side is the one to hold in memory; DuckDB would guess otherwise.
        connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
        connection.execute(f"COPY ({bench_by_hand.FINDINGS}) TO '{found}' (FORMAT parquet)")
        connection.execute("RESET disabled_optimizers")
        connection.execute(f"CREATE VIEW findings AS FROM '{found}'")
        return by_hand(lambda sql: connection.execute(sql).fetchall())


def polars_by_hand(fleet: str, out: str) -> Answer:
    """The same audit in Polars, lazily, on its streaming engine."""
    from tools.benchmarks.polars import audit

    return audit(fleet, os.path.join(out, FINDINGS_FILE))


def pathlib_naive(fleet: str, out: str) -> Answer:
    """Trees with ``pathlib`` and dictionaries, as people write it."""
    from tools.benchmarks.fleet import pathlib_naive

    return pathlib_naive(fleet, out)


def on_spark(name: str) -> Callable[[str, str], Answer]:
    """A contender of :mod:`tools.benchmarks.spark`, which is imported only to run."""

    def run(fleet: str, out: str) -> Answer:
        from tools.benchmarks import spark as bench_spark

        contender: Callable[[str, str], Answer] = getattr(bench_spark, name)
        return contender(fleet, out)

    return run


def by_hand(query: Callable[[str], Iterable[tuple[Any, ...]]], **figures: Any) -> Answer:
    """Ask an engine that has the tables of ``by_hand`` and the findings for the rest of the answer."""
    found = list(query(bench_by_hand.TOTALS))
    observed = [(int(rows), int(size or 0)) for rows, size in query(bench_by_hand.OBSERVED)]
    return answer(found, observed[0], len({row[0] for row in query(bench_by_hand.SEVERAL_IDS)}), **figures)


def answer(found: Iterable[tuple[Any, ...]], observed: tuple[int, int], several_ids: int, **figures: Any) -> Answer:
    """Complete an answer: what was observed and not found is OK.

    Args:
        found: verdict, rows, bytes, and entries on a disk.
        observed: entries on all disks, and their bytes.
        several_ids: topics under several IDs.
        figures: of the run, as :class:`Answer` names them.
    """
    rows = [(str(verdict), int(rows), int(size or 0), int(entries)) for verdict, rows, size, entries in found]
    totals = {verdict: (count, size) for verdict, count, size, _ in rows}
    totals["OK"] = (observed[0] - sum(row[3] for row in rows), observed[1] - sum(row[2] for row in rows))
    return Answer(totals, several_ids, **figures)


def of_result(result: AuditResult, **figures: Any) -> Answer:
    """The answer that one of our own engines gave."""
    totals = {verdict: (rows, result.bytes[verdict]) for verdict, rows in result.totals.items()}
    several = {finding.subject for finding in result.fleet if finding.kind == "TOPIC_UNDER_SEVERAL_IDS"}
    return Answer(totals, len(several), **figures)


def save(found: Answer, out: str) -> None:
    """Leave an answer in a folder."""
    with open(os.path.join(out, ANSWER_FILE), "w", encoding="utf-8") as file:
        json.dump(asdict(found), file)


def load(out: str) -> Answer:
    """The answer that a contender left in a folder."""
    with open(os.path.join(out, ANSWER_FILE), encoding="utf-8") as file:
        values = json.load(file)
    values["totals"] = {verdict: tuple(figures) for verdict, figures in values["totals"].items()}
    return Answer(**values)


CONTENDERS: dict[str, Callable[[str, str], Answer]] = {
    "embedded": embedded,
    "duckdb": duckdb_by_hand,
    "polars": polars_by_hand,
    "spark": on_spark("spark"),
    "spark-by-hand": on_spark("spark_by_hand"),
    "spark-trees": on_spark("spark_trees"),
    "wholetext": on_spark("wholetext"),
    "pathlib": pathlib_naive,
}


if __name__ == "__main__":
    save(CONTENDERS[sys.argv[1]](sys.argv[2], sys.argv[3]), sys.argv[3])
