"""The contenders of the audit benchmark on one machine, each a process of its own that leaves an answer.

``python -m tools.benchmarks.peers CONTENDER FLEET OUT`` audits the fleet of :mod:`tools.benchmarks.data` in FLEET,
leaves the findings in the folder OUT, and beside them ``answer.json``: what must be the same for all contenders.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.benchmarks import by_hand as bench_by_hand
from tools.benchmarks import data as bench_data
from tools.benchmarks.answer import FINDINGS_FILE, Answer, answer_of_result, save_answer

if TYPE_CHECKING:
    import duckdb


def embedded(fleet: str, out: str) -> Answer:
    """The audit as ``logstore audit`` makes it by default."""
    from logstore.parallel import do_without_pandas

    do_without_pandas()
    from reconciler.audit import audit
    from reconciler.sources import load

    states = load(f"parquet:{bench_data.desired(fleet)}")
    return answer_of_result(audit([], bench_data.inventories(fleet), states, out, now_ms=bench_data.NOW_MS))


def duckdb_by_hand(fleet: str, out: str) -> Answer:
    """The hand-written query in DuckDB."""
    import duckdb

    desired = bench_data.desired(fleet)
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        engine = _DuckDB(connection, os.path.join(out, FINDINGS_FILE))
        engine.view("inventory", f"FROM read_parquet({bench_data.inventories(fleet)})")
        for table in ("replicas", "topics", "brokers"):
            engine.view(table, f"FROM '{desired}/{table}.parquet'")
        engine.view("registered", "SELECT node_id, unnest(directory_ids) AS directory_id FROM brokers")
        return bench_by_hand.audit_by_hand(engine)


class _DuckDB:
    """DuckDB for an audit by hand."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, findings: str) -> None:
        self._connection = connection
        self._findings = findings

    def view(self, name: str, sql: str) -> None:
        """Give a query a name."""
        self._connection.execute(f"CREATE VIEW {name} AS {sql}")

    def keep(self, name: str, sql: str) -> None:
        """Keep the few rows of a query under a name."""
        self._connection.execute(f"CREATE TEMP TABLE {name} AS {sql}")

    def write(self, sql: str) -> None:
        """Write the findings to a file, and give it the name ``findings``."""
        # As the joins are written, the right side is the one to hold in memory; DuckDB would guess otherwise.
        self._connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
        self._connection.execute(f"COPY ({sql}) TO '{self._findings}' (FORMAT parquet)")
        self._connection.execute("RESET disabled_optimizers")
        self.view("findings", f"FROM '{self._findings}'")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._connection.execute(sql).fetchall()


def floor(fleet: str, out: str) -> Answer:
    """The bare join and count in DuckDB; the answer has outcomes in the place of verdicts."""
    del out
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CREATE VIEW inventory AS FROM read_parquet({bench_data.inventories(fleet)})")
        connection.execute(f"CREATE VIEW replicas AS FROM '{bench_data.desired(fleet)}/replicas.parquet'")
        connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
        found = connection.execute(bench_by_hand.FLOOR).fetchall()
    return Answer({outcome: (int(rows), int(size)) for outcome, rows, size in found}, several_ids=0)


def pathlib_naive(fleet: str, out: str) -> Answer:
    """``pathlib`` and dictionaries: read all the files, load all that is wanted, compare row by row."""
    del out
    import pyarrow.parquet as pq

    seen: dict[tuple[int, str, int], str] = {}
    ids: dict[str, set[str]] = {}
    for file in Path(bench_data.trees(fleet)).glob("*/*/*/partition.metadata"):
        topic, _, partition = file.parent.name.rpartition("-")
        topic_id = file.read_text().splitlines()[1].removeprefix("topic_id: ")
        seen[int(file.parts[-4].removeprefix("broker-")), topic, int(partition)] = topic_id
        ids.setdefault(topic, set()).add(topic_id)
    totals: dict[str, int] = {}
    for row in pq.read_table(f"{bench_data.desired(fleet)}/replicas.parquet").to_pylist():
        topic_id = seen.pop((row["node_id"], row["topic"], row["partition"]), "")
        verdict = "MISSING" if not topic_id else "OK" if topic_id == row["topic_id"] else "STALE_ID"
        totals[verdict] = totals.get(verdict, 0) + 1
    if seen:
        totals["NOT_ASSIGNED"] = len(seen)
    return Answer({name: (rows, 0) for name, rows in totals.items()}, sum(len(known) > 1 for known in ids.values()))


CONTENDERS = {
    "embedded": "tools.benchmarks.peers:embedded",
    "floor": "tools.benchmarks.peers:floor",
    "duckdb": "tools.benchmarks.peers:duckdb_by_hand",
    "polars": "tools.benchmarks.polars:polars_by_hand",
    "spark": "tools.benchmarks.spark:spark",
    "spark-by-hand": "tools.benchmarks.spark:spark_by_hand",
    "spark-trees": "tools.benchmarks.spark:spark_trees",
    "wholetext": "tools.benchmarks.spark:wholetext",
    "pathlib": "tools.benchmarks.peers:pathlib_naive",
}
"""Name → module and function, which takes FLEET and OUT. A module is imported only to run its contender."""


def contender(name: str) -> Callable[[str, str], Answer]:
    """The function of a contender."""
    module, _, function = CONTENDERS[name].partition(":")
    found: Callable[[str, str], Answer] = getattr(importlib.import_module(module), function)
    return found


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in CONTENDERS:
        sys.exit(f"usage: python -m tools.benchmarks.peers {'|'.join(CONTENDERS)} FLEET OUT")
    save_answer(contender(sys.argv[1])(sys.argv[2], sys.argv[3]), sys.argv[3])
