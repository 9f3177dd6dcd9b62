"""The join in DuckDB, for the audit on one machine and for each task of a fleet's audit.

DuckDB gets the views of :mod:`reconciler.audit.join_sql` and the case table as one CASE expression. The steps come in
this order: :func:`configure`, :func:`make_observed`, :func:`reconciler.audit.dimension_tables.keep_metadata`, which
says for which brokers the metadata speaks, ``register_desired`` of the same module, and :func:`judge`. In an
incremental audit :func:`choose_brokers` comes before :func:`judge`. Nearly every row is plainly in order: :func:`judge`
settles these by one join, or by one for each range of topics, and only what that leaves meets all views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from logstore.rows import ROW_SCHEMA
from reconciler.audit.case_sql import case_number, doubt, evidence, is_listed, is_worth_a_look, verdict
from reconciler.audit.dimension_tables import (
    DISKS,
    Superseded,
    inventory_rows,
    keep_log_dirs,
    parquet_folder,
    quoted,
    rows_of,
)
from reconciler.audit.findings import FINDING_SCHEMA, FINDINGS
from reconciler.audit.fleet import LIKELY
from reconciler.audit.incremental import EarlierAudit, files_to_judge, keep_findings
from reconciler.audit.join_sql import (
    BY_NAME,
    BY_TOPIC_ID,
    CARRIED,
    DATED,
    DATES,
    SAME_PARTITION,
    SAME_TOPIC_ID,
    VIEWS,
    joined,
)
from reconciler.desired import BrokerKey

ROWS_JOINED_AT_ONCE = 10_000_000
"""Rows seen that are joined together. Ten million take less than 4 GB."""


class DuckDBDialect:
    """The expressions of DuckDB that the case table needs."""

    def __init__(self, **others: str) -> None:
        """Take the columns that have another name in the relation: name → that name."""
        self._others = others

    def column(self, name: str) -> Any:
        """Name a column of the relation."""
        return duckdb.ColumnExpression(self._others.get(name, name))

    def literal(self, value: str | int | bool | None) -> Any:
        """Make a constant; None is null."""
        return duckdb.ConstantExpression(value)

    def choose(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """Make CASE WHEN … ELSE …."""
        (condition, value), *rest = branches
        expression = duckdb.CaseExpression(condition, value)
        for condition, value in rest:
            expression = expression.when(condition, value)
        return expression.otherwise(otherwise)

    def concat(self, parts: Sequence[Any]) -> Any:
        """Concatenate the parts as text."""
        return duckdb.FunctionExpression("concat", *parts)


def configure(
    connection: duckdb.DuckDBPyConnection, spill: str, memory_limit: str | None = None, threads: int | None = None
) -> None:
    """Set up a connection for a join that spills to disk rather than run out of memory.

    Args:
        connection: a new connection.
        spill: a folder for data that does not fit in memory.
        memory_limit: in DuckDB's notation, for example ``4GB``; None: DuckDB's default.
        threads: the most threads to use; None: DuckDB's default.
    """
    connection.execute("SET temp_directory = ?", [spill])
    # The order of rows does not matter, and preserving it costs memory.
    connection.execute("SET preserve_insertion_order = false")
    # The same files are read again and again, and to parse what stands at the end of each costs as much as a column.
    connection.execute("SET parquet_metadata_cache = true")
    if memory_limit is not None:
        connection.execute("SET memory_limit = ?", [memory_limit])
    if threads is not None:
        connection.execute("SET threads = ?", [threads])


# DuckDB guesses that few rows are live, and would keep the wide rows of the disks in memory to join the narrow desired
# rows with them. As the views are written, it keeps the desired rows, or a side that is truly small, which takes half
# the memory.
_SIDES_AS_WRITTEN, _SIDES_AS_GUESSED = (
    "SET disabled_optimizers = 'build_side_probe_side'",
    "RESET disabled_optimizers",
)


def make_observed(
    connection: duckdb.DuckDBPyConnection,
    tables: Sequence[pa.Table],
    inventories: Sequence[str],
    now_ms: int,
    superseded: Superseded | None = None,
) -> list[BrokerKey]:
    """Make the views ``rows`` and ``observed`` and the tables ``log_dirs`` and ``disks``; return the brokers seen.

    ``connection``: as :func:`configure` left it; ``tables``: rows of scans, and ``inventories``: paths of Parquet
    files, both in ROW_SCHEMA; ``superseded``: what does not count in them.
    """
    connection.register("scanned", pa.concat_tables(tables or [ROW_SCHEMA.empty_table()]))
    rows = _rows(inventories, superseded or {}, with_scanned=bool(tables))
    connection.execute(f"CREATE VIEW rows AS SELECT *, CAST({now_ms} AS BIGINT) AS now_ms FROM ({rows})")
    connection.execute(f"CREATE VIEW observed AS {VIEWS['observed']}")
    brokers = keep_log_dirs(connection)
    connection.execute(f"CREATE TABLE disks AS {DISKS}")
    return brokers


def _rows(inventories: Sequence[str], superseded: Superseded, *, with_scanned: bool) -> str:
    columns = ", ".join(ROW_SCHEMA.names)
    scanned = [f"SELECT {columns} FROM scanned"] if with_scanned or not inventories else []
    return " UNION ALL ".join(scanned + inventory_rows(inventories, superseded, columns))


_TYPED = "SELECT * REPLACE (CAST(cluster AS clusters) AS cluster)"
_OBSERVED = f"{_TYPED} FROM ({VIEWS['observed']})"


def keep_earlier(connection: duckdb.DuckDBPyConnection, earlier: EarlierAudit, now_ms: int) -> int:
    """Keep what an earlier audit said of brokers that are as before, as :func:`keep_findings` does, for both engines.

    Raises:
        UsageError: what the earlier audit left cannot be read.
    """
    return keep_findings(connection, DuckDBDialect(), DuckDBDialect(as_of_ms="was_as_of_ms"), earlier, now_ms)


def choose_brokers(
    connection: duckdb.DuckDBPyConnection, earlier: EarlierAudit, now_ms: int, superseded: Superseded
) -> int:
    """Find the brokers to judge again: makes ``kept``, ``again``, ``observed_again`` and ``speaks_again``.

    ``connection``: as :func:`reconciler.audit.incremental.note_basis` left it; ``superseded``: what does not count in
    inventories. Returns how many brokers are as before.

    Raises:
        UsageError: what the earlier audit left cannot be read.
    """
    kept = keep_earlier(connection, earlier, now_ms)
    held = files_to_judge(connection)
    rows = _rows([path for path in held if path is not None], superseded, with_scanned=None in held)
    connection.execute(f"CREATE VIEW rows_again AS SELECT *, CAST({now_ms} AS BIGINT) AS now_ms FROM ({rows})")
    connection.execute(
        "CREATE VIEW observed_again AS WITH rows AS (FROM rows_again) "
        f"{_OBSERVED} observed SEMI JOIN again USING (cluster, node)"
    )
    connection.execute("CREATE TABLE speaks_again AS FROM speaks SEMI JOIN again USING (cluster, node)")
    return kept


def rules(all_rows: bool) -> str:
    """Make the fingerprint of all that decides beside the rows: another one may judge the same rows otherwise."""
    judged = (_doubled(), _settlement(), _judgement(all_rows), _judgement(all_rows, settled=True))
    stated = (duckdb.__version__, *ROW_SCHEMA.names, VIEWS["observed"], *judged, FINDINGS)
    return sha256("\0".join(stated).encode()).hexdigest()


_CARRIED = ", ".join(f"o.{column}" for column in CARRIED)

_HASH = "hash(topic, partition, node, cluster)"

_SEEN = f"""
    SELECT o.*, CASE WHEN kind = 'live' THEN topic END AS live_topic,
           CASE WHEN c.hash IS NULL THEN 1 ELSE 0 END AS copies
    FROM (SELECT *, {_HASH} AS hash FROM observed) o LEFT JOIN doubled c ON o.hash = c.hash
"""

_MET = f"""
    SELECT {_CARRIED}, {BY_NAME}, coalesce(o.copies, 0) AS copies
    FROM seen o FULL OUTER JOIN wanted d ON o.live_topic = d.topic AND {SAME_PARTITION}
"""
"""Columns of ``pairs``, with one scan of what lies on the disks: what is not live has no name here that it could meet.
``copies`` is 1 where nothing else on the disks has the hash of the partition, and 0 where somebody has to count."""

_UNSETTLED_PAIRS = f"""
    SELECT * EXCLUDE (copies) FROM unsettled WHERE kind IN ('live', '')
    UNION ALL
    SELECT {_CARRIED}, {BY_TOPIC_ID}
    FROM desired d RIGHT JOIN (SELECT * FROM unsettled WHERE kind NOT IN ('live', '')) o ON {SAME_TOPIC_ID}
"""


def _doubled(ending: str = "") -> str:
    """Write the query for the hashes of partitions of which a broker has more than one directory.

    A number takes half the time and a third of the memory of the four columns. Where partitions share one, they are
    counted for nothing.
    """
    return f"""
        SELECT hash FROM (SELECT {_HASH} AS hash FROM observed{ending}
                          WHERE kind IN ('live', 'future', 'delete', 'stray', 'staged') AND node >= 0) o
        GROUP BY hash HAVING count(*) > 1
    """


@cache
def _settlement(ending: str = "") -> str:
    """Write the query for what is not plainly in order, few columns of which are looked at.

    ``ending``: as in :func:`_judgement`.
    """
    views = _read(ending)
    views |= {name: VIEWS[name] for name in ("desired", "wanted") if name not in views} | {"seen": _SEEN, "met": _MET}
    return f"{_stated(views)} SELECT * FROM met WHERE {is_worth_a_look(DuckDBDialect())}"


@cache
def _judgement(all_rows: bool, ending: str = "", *, settled: bool = False) -> str:
    """Write the query for the findings with all their columns.

    ``ending``: of the names of the views that it reads; ``settled``: whether it reads ``unsettled`` instead of what
    lies on the disks.
    """
    dialect = DuckDBDialect()
    views = _read(ending) | ({"observed": "FROM unsettled"} if settled else {})
    texts = VIEWS | ({"pairs": _UNSETTLED_PAIRS} if settled else {})
    views |= {name: texts[name] for name in ("desired", "wanted", "copies", "pairs", "counted") if name not in views}
    views["joined"] = joined("true" if all_rows else str(is_worth_a_look(dialect)))
    listed = is_listed(dialect, all_rows)
    return (
        f"{_stated(views)} "
        f"SELECT *, {verdict(dialect)} AS verdict, {evidence(dialect)} AS evidence, {doubt(dialect)} AS doubt "
        f"FROM (SELECT {DATED} FROM (SELECT *, {case_number(dialect)} AS case_no FROM joined WHERE {listed}) j {DATES})"
    )


def _stated(views: Mapping[str, str]) -> str:
    """State views in a query. There each is planned once; created, each would be planned again for every view on it."""
    return f"WITH {', '.join(f'{name} AS NOT MATERIALIZED ({sql})' for name, sql in views.items())}"


def _read(ending: str) -> dict[str, str]:
    return {name: f"FROM {name}{ending}" for name in _READ[ending]}


_READ = {
    "": (),
    "_again": ("observed", "speaks"),
    "_part": ("observed", "speaks", "replicas", "topics"),
    "_unsettled": ("observed", "wanted"),
}
"""By the ending of their names, the views that stand for others: of the brokers to judge again, of some clusters, or
of what Spark has left."""

_CLUSTERS = """
    SELECT c.cluster, CAST(coalesce(sum(d.rows_observed), 0) AS BIGINT) AS seen
    FROM (SELECT unnest(enum_range(NULL::clusters)) AS cluster) c LEFT JOIN disks d ON d.cluster = c.cluster
    GROUP BY c.cluster ORDER BY c.cluster
"""

_FOUND_BEFORE = """
    INSERT INTO found BY NAME
    SELECT CAST(cluster AS clusters) AS cluster, node, host, log_dir, directory_id, name, coalesce(kind, '') AS kind,
           namespace, coalesce(topic, '') AS topic, coalesce(partition, -1) AS partition,
           coalesce(disk_topic_id, '') AS disk_topic_id, bytes, disk_bytes, files, modified_ms, due_ms, only_in_sync,
           verdict, evidence, doubt, kind IS NOT NULL AS on_disk
    FROM kept
"""
"""Adds findings that are kept to ``found``, with all columns that totals and fleet findings read."""


def judge(connection: duckdb.DuckDBPyConnection, path: str, all_rows: bool, *, some: bool = False) -> str:
    """Join, judge, and write the findings to a Parquet file; makes ``found``.

    ``connection``: as ``register_desired`` left it; ``all_rows``: whether to list the OK rows as well; ``some``:
    whether only the brokers are judged that :func:`choose_brokers` found, and the findings of the others kept. Returns
    the query to make ``likely`` with, as :data:`reconciler.audit.fleet.LIKELY` does.
    """
    connection.execute(f"CREATE OR REPLACE VIEW observed AS {_OBSERVED}")
    connection.execute(_SIDES_AS_WRITTEN)
    # Where every row is listed, or none can be in order, what is unsettled would be all rows, twice in memory.
    known = ("FROM speaks LIMIT 1", "FROM topics WHERE topic_id IS NOT NULL LIMIT 1")
    settled = not all_rows and all(connection.execute(query).fetchall() for query in known)
    parts = _parts(connection, in_ranges=settled and not some)
    is_whole = len(parts) == len(parts[0].ranges) == 1
    ending = ("_again" if some else "") if is_whole else "_part"
    for number, (clusters, ranges) in enumerate(parts):
        for place, topics in enumerate(ranges if settled else ()):
            if not is_whole:
                _make_part(connection, clusters, some, topics)
            _settle(connection, f"unsettled_{number}", ending, is_new=place == 0)
        if not is_whole:
            _make_part(connection, clusters, some, "true")
        into = "INSERT INTO found" if number else "CREATE TEMP TABLE found AS"
        connection.execute(f"{into} {_judgement(all_rows, ending, settled=settled)}")
    connection.execute(_SIDES_AS_GUESSED)
    before = f" UNION ALL SELECT {', '.join(FINDING_SCHEMA.names)} FROM kept" if some else ""
    connection.execute(f"COPY ({FINDINGS}{before}) TO {quoted(path)} (FORMAT parquet)")
    if some:
        connection.execute(_FOUND_BEFORE)
    if some or not settled:
        return LIKELY
    tables = " UNION ALL ".join(f"FROM unsettled_{number}" for number in range(len(parts)))
    connection.execute(f"CREATE OR REPLACE TEMP VIEW unsettled AS {tables}")
    return _LIKELY_OF_UNSETTLED


def _settle(connection: duckdb.DuckDBPyConnection, table: str, ending: str, *, is_new: bool) -> None:
    """Keep in a table what is not plainly in order, and name it ``unsettled``; ``ending``: as in :func:`_judgement`."""
    into = f"CREATE TEMP TABLE {table} AS" if is_new else f"INSERT INTO {table}"
    # By itself, so that the memory of the count is free again when the join begins.
    connection.execute(f"CREATE OR REPLACE TEMP TABLE doubled AS {_doubled(ending)}")
    connection.execute(f"{into} {_settlement(ending)}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW unsettled AS FROM {table}")


_LIKELY_OF_UNSETTLED = f"""
    WITH rows AS (SELECT cluster AS cluster_id, node AS node_id, kind, state AS metadata_state, topic, partition,
                         disk_topic_id AS topic_id FROM unsettled)
    {LIKELY}
    UNION ALL
    SELECT l.* FROM (
        WITH rows AS (SELECT cluster AS cluster_id, node_id, 'live' AS kind, 'ok' AS metadata_state, topic, partition,
                             topic_id FROM replicas)
        {LIKELY}) l
    SEMI JOIN speaks s ON s.cluster = l.cluster AND s.node = l.node
    ANTI JOIN (FROM unsettled WHERE wanted) u
        ON u.cluster = l.cluster AND u.node = l.node AND u.topic = l.topic AND u.partition = l.partition
"""
"""The same as LIKELY, and no inventory is read again: a wanted replica that is settled lies where it is wanted, once,
whole and under its topic ID."""


def judge_unsettled(connection: duckdb.DuckDBPyConnection, rows: str, wanted: str, path: str) -> None:
    """Judge what another engine has not settled, and write the findings to a Parquet file.

    ``connection``: as :func:`judge` takes it; ``rows``: a folder of Parquet files in the columns of the table ``rows``,
    with all directories that may be a finding; ``wanted``: one in the columns of the view ``desired``, with the wanted
    replicas that live directories among them may meet, and those that have none.
    """
    for view, sql in (
        ("rows", f"FROM {parquet_folder(rows)}"),
        ("observed", f"WITH rows AS (FROM rows_unsettled) {_OBSERVED}"),
        ("wanted", f"{_TYPED} FROM {parquet_folder(wanted)}"),
    ):
        connection.execute(f"CREATE VIEW {view}_unsettled AS {sql}")
    connection.execute(_SIDES_AS_WRITTEN)
    connection.execute(f"CREATE TEMP TABLE found AS {_judgement(False, '_unsettled')}")
    connection.execute(_SIDES_AS_GUESSED)
    connection.execute(f"COPY ({FINDINGS}) TO {quoted(path)} (FORMAT parquet)")
    connection.execute("DROP TABLE found")


_LEFT_AND_SETTLED = f"""
    SELECT cluster_id, node_id, kind, metadata_state, topic, partition, topic_id FROM rows_unsettled
    UNION ALL
    SELECT cluster, node, 'live', 'ok', topic, partition, wanted_topic_id
    FROM ({VIEWS["desired"]}) ANTI JOIN wanted_unsettled USING (cluster, node, topic, partition)
"""


def observe_settled(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the view ``rows`` anew, as far as the fleet is searched, from what was left and what is settled.

    ``connection``: as :func:`judge_unsettled` left it, for all brokers. A wanted replica that is settled lies where it
    is wanted, once, whole and under its topic ID: no inventory has to be read again for it. The view
    ``observed`` cannot be asked any more.
    """
    connection.execute(f"CREATE OR REPLACE VIEW rows AS {_LEFT_AND_SETTLED}")


class _Part(NamedTuple):
    """What is joined together: some clusters, and a condition on ``topic`` for each range of topics."""

    clusters: Sequence[str]
    ranges: Sequence[str]


_ALL_TOPICS = ("true",)


def _parts(connection: duckdb.DuckDBPyConnection, *, in_ranges: bool) -> list[_Part]:
    """Divide the clusters into those that are joined together, usually all of them, and large ones into ranges.

    No row meets one of another cluster, nor by its name one of another topic. A join that spills takes half as long
    again for each row.
    """
    parts, seen = [list[str]()], [0]
    for row in rows_of(connection, _CLUSTERS):
        if seen[-1] and row["seen"] and seen[-1] + row["seen"] > ROWS_JOINED_AT_ONCE:
            parts.append([])
            seen.append(0)
        parts[-1].append(row["cluster"])
        seen[-1] += row["seen"]
    found = zip(parts, seen, strict=True)
    return [_Part(each, _ranges(connection, each, rows) if in_ranges else _ALL_TOPICS) for each, rows in found]


_STARTS = """
    WITH t AS (FROM topics WHERE cluster {named}), total AS (SELECT sum(partitions) AS total FROM t)
    SELECT min(topic) AS topic
    FROM (SELECT topic, sum(partitions) OVER (ORDER BY topic) - partitions AS before FROM t), total
    GROUP BY before * {count} // total ORDER BY 1
"""


def _ranges(connection: duckdb.DuckDBPyConnection, clusters: Sequence[str], seen: int) -> Sequence[str]:
    """Divide topics so that about as many rows are joined at once as may be; what has none is a range of its own."""
    count = round(seen / max(ROWS_JOINED_AT_ONCE, 1))
    if count < 2:
        return _ALL_TOPICS
    found = rows_of(connection, _STARTS.format(count=count, named=_among(clusters)))
    starts = [quoted(row["topic"]) for row in found[1:]]
    after = ["true", *(f"topic >= {start}" for start in starts)]
    before = [*(f"topic < {start}" for start in starts), "topic IS NOT NULL"]
    return [*map(" AND ".join, zip(after, before, strict=True)), "topic IS NULL"]


def _among(clusters: Sequence[str]) -> str:
    return f"IN ({', '.join(map(quoted, clusters))})"


def _make_part(connection: duckdb.DuckDBPyConnection, clusters: Sequence[str], some: bool, topics: str) -> None:
    """Make the views that :data:`_READ` names, of some clusters and topics; ``some``: as in :func:`judge`."""
    named = _among(clusters)
    again = "_again" if some else ""
    # Asked of the columns as the file has them, so that whole row groups of other clusters and topics stay unread.
    rows = f"(cluster_id {named}{' OR cluster_id IS NULL' if '' in clusters else ''}) AND {topics}"
    seen = f"{_TYPED} FROM ({VIEWS['observed']} WHERE {rows})"
    connection.execute(
        f"CREATE OR REPLACE VIEW observed_part AS {f'FROM observed_again WHERE cluster {named}' if some else seen}"
    )
    for view in (f"speaks{again}", "replicas", "topics"):
        part = f"{view.removesuffix(again)}_part"
        of_topics = f" AND {topics}" if view == "replicas" else ""
        connection.execute(f"CREATE OR REPLACE VIEW {part} AS FROM {view} WHERE cluster {named}{of_topics}")
