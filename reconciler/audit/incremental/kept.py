"""Takes from an earlier audit the findings of the brokers of which it would say the same today.

A broker is as before where its :class:`reconciler.audit.incremental.Basis` is, but for the time of the metadata. Even
then it is judged again

- where a topic came, went or got another ID since, and a row of its disks has that name or one of these IDs;
- where a staged replica became due;
- where the doubt of a finding hangs on the time of the metadata, and the verdict alone does not tell whether its case
  is open to that doubt.

Elsewhere the doubt is computed anew from the times. Whatever is not known is judged again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.audit.case_sql import Dialect, doubt_holds
from reconciler.audit.dimension_tables import rows_of
from reconciler.audit.findings import FINDING_SCHEMA
from reconciler.audit.incremental.basis import BASIS_SCHEMA
from reconciler.errors import UsageError
from reconciler.verdicts import CASES, Doubt, Verdict


class EarlierAudit(NamedTuple):
    """What an earlier audit left: the paths of three Parquet files, each of which may have further columns."""

    findings: str
    """All its findings, in FINDING_SCHEMA."""
    topics: str
    """The topics that its metadata knew: ``cluster``, ``topic`` and ``topic_id``."""
    basis: str
    """What the verdicts of its brokers rest on, in BASIS_SCHEMA."""


_TOPICS = ("cluster", "topic", "topic_id")

# A finding does not say which log dirs without a node it is about.
_AS_BEFORE = """
    CREATE TABLE as_before AS
    SELECT b.cluster, b.node, b.as_of_ms, e.as_of_ms AS was_as_of_ms
    FROM basis b JOIN earlier_basis e ON e.cluster = b.cluster AND e.node = b.node
    WHERE b.node >= 0 AND b.inventories = e.inventories AND b.metadata = e.metadata AND b.rules = e.rules
"""

_CHANGED = """
    CREATE TABLE changed AS
    WITH now AS (SELECT CAST(cluster AS VARCHAR) AS cluster, topic, topic_id FROM topics)
    (FROM now EXCEPT FROM earlier_topics) UNION (FROM earlier_topics EXCEPT FROM now)
"""

_MEETS_CHANGED = """
    SELECT cluster, node FROM observed SEMI JOIN changed USING (cluster, topic)
    UNION
    SELECT cluster, node FROM observed o SEMI JOIN changed c ON c.cluster = o.cluster AND c.topic_id = o.disk_topic_id
"""

_KEPT = f"""
    CREATE TABLE kept AS
    SELECT {", ".join(f"f.{name}" for name in FINDING_SCHEMA.names)}, a.cluster, a.node, a.as_of_ms, a.was_as_of_ms,
           s.scanned_ms
    FROM earlier_findings f JOIN as_before a ON a.cluster = coalesce(f.cluster_id, '') AND a.node = f.broker
    LEFT JOIN speaks s ON s.cluster = a.cluster AND s.node = a.node
"""

_BECAME_DUE = f"""
    SELECT cluster, node FROM kept
    WHERE verdict IN ('{Verdict.STAGED}', '{Verdict.STAGED_DUE}')
      AND coalesce(due_ms <= {{now_ms}}, false) <> (verdict = '{Verdict.STAGED_DUE}')
"""

_OPEN_TO = {
    doubt: {verdict for verdict in Verdict if doubt in {case.doubt for case in CASES if case.verdict is verdict}}
    for doubt in Doubt
}
"""Verdicts that have a case which is open to each doubt."""

_SURELY_OPEN_TO = {
    doubt: {verdict for verdict in verdicts if {case.doubt for case in CASES if case.verdict is verdict} == {doubt}}
    for doubt, verdicts in _OPEN_TO.items()
}
"""Those of which all cases are open to it: the verdict and the times tell the doubt."""


def keep_findings(
    connection: duckdb.DuckDBPyConnection, dialect: Dialect, before: Dialect, earlier: EarlierAudit, now_ms: int
) -> int:
    """Make ``kept``, the findings that are kept, and ``again``, the ``(cluster, node)`` of the brokers to judge.

    Returns how many brokers are as before.

    Args:
        connection: as :func:`reconciler.audit.incremental.note_basis` left it.
        dialect: of the engine, over the columns of ``kept``.
        before: the same, which names the time of the earlier audit's metadata instead.
        earlier: the earlier audit.
        now_ms: the time of this audit.

    Raises:
        UsageError: what the earlier audit left cannot be read.
    """
    _read(connection, "earlier_basis", earlier.basis, BASIS_SCHEMA.names)
    _read(connection, "earlier_topics", earlier.topics, _TOPICS)
    connection.execute(_AS_BEFORE)
    connection.execute(_CHANGED)
    if connection.execute("SELECT count(*) FROM changed").fetchall() != [(0,)]:
        _judge_again(connection, _MEETS_CHANGED, ["as_before"])
    _read(connection, "earlier_findings", earlier.findings, FINDING_SCHEMA.names)
    connection.execute(_KEPT)
    connection.execute("DROP TABLE earlier_findings")
    _judge_again(connection, _BECAME_DUE.format(now_ms=now_ms), ["as_before", "kept"])
    for doubt in Doubt:
        now, then = (f"coalesce({doubt_holds(each, doubt)}, false)" for each in (dialect, before))
        unsure = f"verdict IN ({_listed(_OPEN_TO[doubt] - _SURELY_OPEN_TO[doubt])}) AND {now} <> {then}"
        _judge_again(connection, f"SELECT cluster, node FROM kept WHERE {unsure}", ["as_before", "kept"])
        connection.execute(
            f"UPDATE kept SET doubt = CASE WHEN {now} THEN '{doubt}' END "
            f"WHERE verdict IN ({_listed(_SURELY_OPEN_TO[doubt])})"
        )
    connection.execute(
        "CREATE TABLE again AS SELECT cluster, node FROM basis ANTI JOIN as_before USING (cluster, node)"
    )
    ((kept,),) = connection.execute("SELECT count(*) FROM as_before").fetchall()
    return int(kept)


def files_to_judge(connection: duckdb.DuckDBPyConnection) -> list[str | None]:
    """List the inventories that hold rows of brokers to judge; None stands for what this audit scanned itself.

    ``connection``: as :func:`keep_findings` left it.
    """
    held = rows_of(connection, "SELECT DISTINCT file FROM held SEMI JOIN again USING (cluster, node) ORDER BY file")
    return [row["file"] for row in held]


def _judge_again(connection: duckdb.DuckDBPyConnection, which: str, tables: Sequence[str]) -> None:
    """Take the brokers that a query names out of tables of what is as before."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE differ AS {which}")
    for table in tables:
        connection.execute(
            f"DELETE FROM {table} USING differ WHERE {table}.cluster = differ.cluster AND {table}.node = differ.node"
        )


def _listed(verdicts: Collection[Verdict]) -> str:
    return ", ".join(f"'{each}'" for each in sorted(verdicts)) or "NULL"


def _read(connection: duckdb.DuckDBPyConnection, table: str, path: str, columns: Sequence[str]) -> None:
    """Read a file into a table; the checksum of each page is verified, which DuckDB does not do."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            schema = pa.schema([file.schema_arrow.field(name) for name in columns])
            rows = pa.RecordBatchReader.from_batches(schema, file.iter_batches(columns=list(columns)))
            connection.register("read", rows)
            connection.execute(f"CREATE TEMP TABLE {table} AS SELECT {', '.join(columns)} FROM read")
            connection.unregister("read")
    except (pa.ArrowException, OSError, KeyError, duckdb.InvalidInputException) as error:
        reason = (str(error).splitlines() or ["it is empty"])[0]
        raise UsageError(f"{path} cannot be read ({reason:.200}): audit once without --incremental") from error
