"""The tables of an audit beside the rows of the disks, in DuckDB, for both engines.

But for the wanted replicas, which stay in the tables or files that they are given in (:func:`register_desired`), they
are small however large the fleet is. Questions about whole log dirs are asked of these tables alone, so that the rows
of all replicas are searched only where a question needs them. Spark's driver asks them here too: a query over a hundred
rows costs Spark half a second.

An engine makes the views ``rows`` and ``observed`` (:mod:`reconciler.audit.join_sql`) and the table ``disks``
(:data:`DISKS`), then :func:`keep_log_dirs` and :func:`keep_metadata` make the others:

- ``log_dirs``: the rows of ``observed`` about log dirs and internal directories;
- ``homes``, ``speaks``: as :mod:`reconciler.audit.join_sql` describes them;
- ``registered``: ``(cluster, node, directory_id)``, the log dirs that brokers registered with their controller;
- the type ``clusters``, an enumeration, which takes one byte in every key of a join instead of a text.
"""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from logstore.rows import LogDirOnHost
from reconciler.desired import REPLICA_SCHEMA, TOPIC_SCHEMA, BrokerKey, JudgedBroker, RegisteredLogDir

# Only the columns that a query uses: each further column is read for whole row groups to find these few rows.
_LOG_DIRS = """
    CREATE TABLE log_dirs AS
    SELECT host, cluster, node, directory_id, log_dir, kind, topic, state, problem, scanned_ms, clean_shutdown
    FROM observed WHERE kind IN ('log_dir', 'internal')
"""

DISKS = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(node_id, -1) AS node, log_dir,
           count(CASE WHEN kind <> 'internal' THEN 1 END) AS rows_observed,
           CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes,
           CAST(coalesce(sum(disk_bytes), 0) AS BIGINT) AS disk_bytes,
           CAST(coalesce(sum(CASE WHEN kind <> 'internal' THEN bytes END), 0) AS BIGINT) AS bytes_counted,
           CAST(coalesce(sum(CASE WHEN kind <> 'internal' THEN disk_bytes END), 0) AS BIGINT) AS disk_bytes_counted,
           count(CASE WHEN kind NOT IN ('internal', 'foreign', 'checkpoint_entry', 'leftover') THEN 1 END) AS replicas,
           count(CASE WHEN kind = 'live' THEN 1 END) AS live,
           count(CASE WHEN kind = 'live' AND metadata_state = 'missing' THEN 1 END) AS without_metadata,
           count(CASE WHEN kind = 'live' AND segments = 0 THEN 1 END) AS without_segment
    FROM rows WHERE kind <> 'log_dir' GROUP BY cluster_id, node_id, log_dir
"""
"""The table ``disks``: the counts and bytes of all that lies in each log dir of each broker, counted once.

The broker's own directories, such as the metadata's log, are no replicas: they are in the bytes and in nothing else.
It asks ``rows``, because what ``observed`` makes of each value of every row costs a quarter more. Where one log dir has
null in some rows and nothing in others, it has several rows here, which have to be added up.
"""

_BROKERS = "SELECT DISTINCT cluster, node FROM log_dirs WHERE kind = 'log_dir'"

_SPEAKS = """
    CREATE TABLE speaks AS SELECT s.*, l.scanned_ms FROM speaking s
    LEFT JOIN (SELECT CAST(cluster AS clusters) AS cluster, node, min(scanned_ms) AS scanned_ms
               FROM log_dirs WHERE kind = 'log_dir' GROUP BY ALL) l ON l.cluster = s.cluster AND l.node = s.node
"""

_HOMES = """
    CREATE TABLE homes AS SELECT DISTINCT CAST(cluster AS clusters) AS cluster, node, directory_id FROM log_dirs
    WHERE kind = 'log_dir' AND state = 'ok' AND directory_id IS NOT NULL
"""


class DesiredTables(NamedTuple):
    """The desired state of one cluster: each part is a table in memory or the path of a Parquet file."""

    replicas: pa.Table | str
    """In REPLICA_SCHEMA."""
    topics: pa.Table | str
    """In TOPIC_SCHEMA."""


Superseded = Mapping[str, Collection[LogDirOnHost]]
"""By the path of an inventory: the log dirs whose rows in it do not count, because there is a newer scan."""


def rows_of(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """Run a query and return all its rows, by column name."""
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def quoted(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def parquet_files(*paths: str) -> str:
    """Name Parquet files as a table in SQL; a path such as ``a*`` or ``node_id=5/x`` is taken literally."""
    return _read_parquet([glob.escape(path) for path in paths])


def parquet_folder(path: str) -> str:
    """Name the Parquet files in a folder as a table in SQL."""
    return _read_parquet([f"{glob.escape(path)}/*.parquet"])


def _read_parquet(patterns: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(map(quoted, patterns))}], hive_partitioning = false)"


def inventory_rows(paths: Sequence[str], superseded: Superseded, columns: str) -> list[str]:
    """Write queries that together return the rows of inventories which count, in the named columns."""
    whole = [path for path in paths if path not in superseded]
    parts = [f"SELECT {columns} FROM {parquet_files(*whole)}"] if whole else []
    for path in paths:
        if path in superseded:
            counts = " AND ".join(
                f"NOT (coalesce(host, '') = {quoted(each.host)} AND log_dir = {quoted(each.log_dir)})"
                for each in superseded[path]
            )
            parts.append(f"SELECT {columns} FROM {parquet_files(path)} WHERE {counts}")
    return parts


def keep_log_dirs(connection: duckdb.DuckDBPyConnection) -> list[BrokerKey]:
    """Make ``log_dirs``, and return the brokers that were scanned."""
    connection.execute(_LOG_DIRS)
    return brokers_in(connection)


def brokers_in(connection: duckdb.DuckDBPyConnection) -> list[BrokerKey]:
    """List the brokers whose log dirs are in ``log_dirs``."""
    return [BrokerKey(row["cluster"], row["node"]) for row in rows_of(connection, _BROKERS)]


def keep_metadata(
    connection: duckdb.DuckDBPyConnection,
    clusters: Iterable[str],
    speaks: Sequence[JudgedBroker],
    registered: Sequence[RegisteredLogDir] = (),
) -> None:
    """Make ``clusters``, ``homes``, ``speaks`` and ``registered``, after ``log_dirs`` and ``disks``.

    ``clusters``: the IDs of the clusters whose metadata was given, to which the scanned ones are added; ``speaks``
    comes without the times of the scans, which ``log_dirs`` has.
    """
    seen = rows_of(connection, "SELECT cluster FROM disks UNION SELECT cluster FROM log_dirs")
    names = sorted({"", *(row["cluster"] for row in seen), *clusters})
    connection.execute(f"CREATE TYPE clusters AS ENUM ({', '.join(map(quoted, names))})")
    connection.execute(_HOMES)
    _make(connection, "speaking (cluster clusters, node INTEGER, complete BOOLEAN, as_of_ms BIGINT)", speaks)
    connection.execute(_SPEAKS)
    _make(connection, "registered (cluster clusters, node INTEGER, directory_id VARCHAR)", registered)


def _make(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.execute(f"CREATE TABLE {table}")
    if rows:
        places = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
        values = [value for row in rows for value in row]
        connection.execute(f"INSERT INTO {table.split(maxsplit=1)[0]} VALUES {places}", values)


def register_desired(connection: duckdb.DuckDBPyConnection, wanted: Mapping[str, DesiredTables]) -> None:
    """Make the views ``replicas`` and ``topics``.

    ``connection``: as :func:`keep_metadata` left it; ``wanted``: the desired state by cluster ID.
    """
    for view, schema in (("replicas", REPLICA_SCHEMA), ("topics", TOPIC_SCHEMA)):
        register_wanted(connection, view, schema, {cluster: getattr(state, view) for cluster, state in wanted.items()})


def register_wanted(
    connection: duckdb.DuckDBPyConnection, view: str, schema: pa.Schema, tables: Mapping[str, pa.Table | str]
) -> None:
    """Make one of the views of :func:`register_desired`.

    ``tables``: by cluster ID, each in memory or the path of a Parquet file.
    """
    parts = []
    for number, (cluster, table) in enumerate(tables.items()):
        if isinstance(table, str):
            source = parquet_files(table)
        else:
            source = f"{view}_{number}"
            connection.register(source, table)
        parts.append(f"SELECT CAST({quoted(cluster)} AS clusters) AS cluster, * FROM {source}")
    if not parts:
        connection.register(f"no_{view}", schema.empty_table())
        parts.append(f"SELECT CAST('' AS clusters) AS cluster, * FROM no_{view}")
    connection.execute(f"CREATE VIEW {view} AS {' UNION ALL '.join(parts)}")
