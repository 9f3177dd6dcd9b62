"""The tables of the join in Spark, from inventories and desired states, where they lie."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from logstore.rows import ROW_SCHEMA
from reconciler.audit.dimension_tables import Superseded, inventory_rows
from reconciler.audit.spark.exchange import escape_glob
from reconciler.audit.spark.join import SPARK_VIEWS
from reconciler.audit.spark.log_dirs import ddl
from reconciler.desired import REPLICA_SCHEMA, DesiredState, SavedTable, in_memory

_BROKERS = """
    SELECT CAST(coalesce(s.cluster, h.cluster) AS VARCHAR) AS cluster, coalesce(s.node, h.node) AS node,
           s.node IS NOT NULL AS speaks, s.complete, s.as_of_ms, s.scanned_ms, coalesce(h.homes, []) AS homes
    FROM speaks s
    FULL JOIN (SELECT cluster, node, list(directory_id) AS homes FROM homes GROUP BY cluster, node) h
      ON s.cluster = h.cluster AND s.node = h.node
"""

_CLUSTER = pa.field("cluster", pa.string())


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Bring a table into Spark, where it may have no row: a session of Spark Connect takes none without a schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(table, None if table.num_rows else from_arrow_schema(table.schema))


def inventory_frame(
    spark: SparkSession,
    paths: Sequence[str],
    superseded: Superseded,
    now_ms: int,
    give: Callable[[str], str] = escape_glob,
) -> DataFrame:
    """Make the table ``rows`` in Spark, from the rows of Parquet files in ROW_SCHEMA that count.

    ``give``: tells what Spark reads in the place of a path.
    """
    reader = spark.read.schema(ddl(ROW_SCHEMA))
    whole = [path for path in paths if path not in superseded]
    parts = [reader.parquet(*map(give, whole))] if whole else []
    for path in paths:
        if path in superseded:
            part = reader.parquet(give(path))
            for each in superseded[path]:
                part = part.where(
                    ~((sf.coalesce("host", sf.lit("")) == each.host) & (sf.col("log_dir") == each.log_dir))
                )
            parts.append(part)
    rows = reduce(DataFrame.unionByName, parts) if parts else frame_of(spark, ROW_SCHEMA.empty_table())
    return rows.withColumn("now_ms", sf.lit(now_ms).cast("bigint"))


def make_observed(small: duckdb.DuckDBPyConnection, paths: Sequence[str], superseded: Superseded, now_ms: int) -> None:
    """Make the views ``rows`` and ``observed`` of the same rows in the driver's DuckDB, and an empty ``scanned``."""
    small.register("scanned", ROW_SCHEMA.empty_table())
    source = " UNION ALL ".join(inventory_rows(paths, superseded, ", ".join(ROW_SCHEMA.names)) or ["FROM scanned"])
    small.execute(f"CREATE VIEW rows AS SELECT *, CAST({now_ms} AS BIGINT) AS now_ms FROM ({source})")
    small.execute(f"CREATE VIEW observed AS {SPARK_VIEWS['observed']}")


def rows_again(spark: SparkSession, small: duckdb.DuckDBPyConnection, rows: DataFrame) -> DataFrame:
    """Take the rows of brokers to judge from a table ``rows``, by ``again`` in the driver's DuckDB."""
    again = frame_of(spark, small.sql("SELECT cluster, node FROM again").to_arrow_table())
    cluster, node = sf.coalesce("cluster_id", sf.lit("")), sf.coalesce("node_id", sf.lit(-1))
    return rows.join(again, (cluster == again.cluster) & (node == again.node), "left_semi")


def broker_frame(spark: SparkSession, small: duckdb.DuckDBPyConnection, *, some: bool = False) -> DataFrame:
    """Bring ``speaks`` and ``homes`` of :mod:`reconciler.audit.dimension_tables` into Spark, as one row of each broker.

    Columns: ``(cluster, node, speaks, complete, as_of_ms, scanned_ms, homes)``; ``speaks``: whether some metadata
    speaks for the broker; ``homes``: the IDs of its log dirs that were scanned and can be trusted.
    ``some``: only of the brokers in ``again``.
    """
    found = small.sql(f"FROM ({_BROKERS}){' SEMI JOIN again USING (cluster, node)' if some else ''}").to_arrow_table()
    # Spark takes no column of lists without a single batch, as DuckDB gives it where there is no broker.
    batches = found.to_batches() or [pa.RecordBatch.from_pylist([], schema=found.schema)]
    # From Arrow, Spark makes a local relation whose size it knows; from tuples it would not know the size.
    return frame_of(spark, pa.Table.from_batches(batches))


def replica_frame(
    spark: SparkSession,
    states: Mapping[str, DesiredState],
    files: Mapping[str, str],
    give: Callable[[str], str] = escape_glob,
) -> DataFrame:
    """Make the table ``replicas``; ``states``: the desired states by cluster.

    ``files``: as :func:`replica_files` made them, which executors read without the driver. A state that has none there
    travels with the query. ``give``: tells what Spark reads in the place of a file.
    """
    parts = []
    for cluster, state in states.items():
        if cluster in files:
            saved = spark.read.schema(ddl(REPLICA_SCHEMA)).parquet(give(files[cluster]))
        else:
            saved = frame_of(spark, in_memory(state.replicas).replace_schema_metadata(None))
        parts.append(saved.select(sf.lit(cluster).alias("cluster"), *REPLICA_SCHEMA.names))
    none = pa.schema([_CLUSTER, *REPLICA_SCHEMA]).empty_table()
    return reduce(DataFrame.unionByName, parts) if parts else frame_of(spark, none)


def replica_files(states: Mapping[str, DesiredState], scratch: str | None) -> dict[str, str]:
    """Name the file of each state's replicas, by cluster; a saved table has one where it lies.

    One in memory is written to ``scratch``, a folder that the driver and all executors see; None: it gets no file.
    """
    files = {}
    for number, (cluster, state) in enumerate(states.items()):
        if isinstance(state.replicas, SavedTable):
            files[cluster] = os.path.abspath(state.replicas.path)
        elif scratch is not None:
            files[cluster] = os.path.join(scratch, f"replicas-{number}.parquet")
            pq.write_table(state.replicas, files[cluster])
    return files
