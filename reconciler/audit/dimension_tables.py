"""The tables of an audit that stay small however large the fleet is, in DuckDB, for both engines.

What concerns log dirs as a whole is asked of these tables alone, so the rows of all replicas are searched only where
that is the question. Spark's driver asks them here too: a query over a hundred rows costs Spark half a second.

An engine makes the view ``observed`` (:mod:`reconciler.audit.join_sql`) and the table ``disks``
(:data:`reconciler.audit.result.DISKS`), then :func:`keep_log_dirs` and :func:`keep_metadata` make the others:

- ``log_dirs``: the rows of ``observed`` about log dirs and internal directories;
- ``homes``, ``speaks``: as :mod:`reconciler.audit.join_sql` wants them;
- ``registered``: ``(cluster, node, directory_id)``, the log dirs that brokers told their controller of;
- the type ``clusters``, an enumeration, which is one byte in every key of a join instead of a text.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from reconciler.desired import BrokerKey, Registered, Speaks

# Only the columns that somebody asks for: each one more is read for whole groups of rows to find these few.
_LOG_DIRS = """
    CREATE TABLE log_dirs AS
    SELECT host, cluster, node, directory_id, log_dir, kind, topic, state, problem, clean_shutdown
    FROM observed WHERE kind IN ('log_dir', 'internal')
"""

_BROKERS = "SELECT DISTINCT cluster, node FROM log_dirs WHERE kind = 'log_dir'"

_HOMES = """
    CREATE TABLE homes AS SELECT DISTINCT CAST(cluster AS clusters) AS cluster, node, directory_id FROM log_dirs
    WHERE kind = 'log_dir' AND state = 'ok' AND directory_id IS NOT NULL
"""


def rows_of(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """All rows of a query, by column name."""
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def parquet_files(*paths: str) -> str:
    """Parquet files as a table of SQL, each path as it stands, though it look like a glob or like ``node_id=5/x``."""
    return _read_parquet([glob.escape(path) for path in paths])


def parquet_folder(path: str) -> str:
    """The Parquet files in a folder as a table of SQL."""
    return _read_parquet([f"{glob.escape(path)}/*.parquet"])


def _read_parquet(patterns: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(map(quoted, patterns))}], hive_partitioning = false)"


def keep_log_dirs(connection: duckdb.DuckDBPyConnection) -> list[BrokerKey]:
    """Make ``log_dirs``, and say which brokers were scanned."""
    connection.execute(_LOG_DIRS)
    return brokers_in(connection)


def brokers_in(connection: duckdb.DuckDBPyConnection) -> list[BrokerKey]:
    """The brokers whose log dirs are in ``log_dirs``."""
    return [BrokerKey(row["cluster"], row["node"]) for row in rows_of(connection, _BROKERS)]


def keep_metadata(
    connection: duckdb.DuckDBPyConnection,
    clusters: Iterable[str],
    speaks: Sequence[Speaks],
    registered: Sequence[Registered] = (),
) -> None:
    """Make ``clusters``, ``homes``, ``speaks`` and ``registered``, after ``log_dirs`` and ``disks``.

    Args:
        connection: the engine's.
        clusters: the cluster IDs that metadata was given of; those that were scanned are added.
        speaks: the rows of ``speaks``.
        registered: the rows of ``registered``.
    """
    seen = rows_of(connection, "SELECT cluster FROM disks UNION SELECT cluster FROM log_dirs")
    names = sorted({"", *(row["cluster"] for row in seen), *clusters})
    connection.execute(f"CREATE TYPE clusters AS ENUM ({', '.join(map(quoted, names))})")
    connection.execute(_HOMES)
    _make(connection, "speaks (cluster clusters, node INTEGER, complete BOOLEAN)", speaks)
    _make(connection, "registered (cluster clusters, node INTEGER, directory_id VARCHAR)", registered)


def _make(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.execute(f"CREATE TABLE {table}")
    if rows:
        places = ", ".join(["(?, ?, ?)"] * len(rows))
        values = [value for row in rows for value in row]
        connection.execute(f"INSERT INTO {table.split(maxsplit=1)[0]} VALUES {places}", values)
