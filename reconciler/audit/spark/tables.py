"""The tables of the join in Spark, from inventories and desired states, where they lie."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import reduce

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from logstore.rows import ROW_SCHEMA
from reconciler.audit.dimension_tables import Superseded, inventory_rows
from reconciler.audit.spark.join import SPARK_VIEWS
from reconciler.audit.spark.log_dirs import ddl
from reconciler.audit.spark.output import escape_glob
from reconciler.desired import REPLICA_SCHEMA, DesiredState, SavedTable

_BROKERS = """
    SELECT CAST(coalesce(s.cluster, h.cluster) AS VARCHAR) AS cluster, coalesce(s.node, h.node) AS node,
           s.node IS NOT NULL AS speaks, s.complete, s.as_of_ms, s.scanned_ms, coalesce(h.homes, []) AS homes
    FROM speaks s
    FULL JOIN (SELECT cluster, node, list(directory_id) AS homes FROM homes GROUP BY cluster, node) h
      ON s.cluster = h.cluster AND s.node = h.node
"""

_CLUSTER = pa.field("cluster", pa.string())


def inventory_frame(spark: SparkSession, paths: Sequence[str], superseded: Superseded, now_ms: int) -> DataFrame:
    """Make the table ``rows`` in Spark, from the rows of Parquet files in ROW_SCHEMA that count."""
    reader = spark.read.schema(ddl(ROW_SCHEMA))
    whole = [path for path in paths if path not in superseded]
    parts = [reader.parquet(*map(escape_glob, whole))] if whole else []
    for path in paths:
        if path in superseded:
            part = reader.parquet(escape_glob(path))
            for each in superseded[path]:
                part = part.where(
                    ~((sf.coalesce("host", sf.lit("")) == each.host) & (sf.col("log_dir") == each.log_dir))
                )
            parts.append(part)
    rows = reduce(DataFrame.unionByName, parts) if parts else spark.createDataFrame(ROW_SCHEMA.empty_table())
    return rows.withColumn("now_ms", sf.lit(now_ms).cast("bigint"))


def make_observed(small: duckdb.DuckDBPyConnection, paths: Sequence[str], superseded: Superseded, now_ms: int) -> None:
    """Make the views ``rows`` and ``observed`` of the same rows in the driver's DuckDB."""
    if paths:
        parts = inventory_rows(paths, superseded, ", ".join(ROW_SCHEMA.names))
    else:
        parts = ["SELECT * FROM nothing"]
        small.register("nothing", ROW_SCHEMA.empty_table())
    source = " UNION ALL ".join(parts)
    small.execute(f"CREATE VIEW rows AS SELECT *, CAST({now_ms} AS BIGINT) AS now_ms FROM ({source})")
    small.execute(f"CREATE VIEW observed AS {SPARK_VIEWS['observed']}")


def broker_frame(spark: SparkSession, small: duckdb.DuckDBPyConnection) -> DataFrame:
    """Bring ``speaks`` and ``homes`` of :mod:`reconciler.audit.dimension_tables` into Spark, as one row of each broker.

    Columns: ``(cluster, node, speaks, complete, as_of_ms, scanned_ms, homes)``; ``speaks``: whether some metadata
    speaks for the broker; ``homes``: the IDs of its log dirs that were scanned and can be trusted.
    """
    found = small.sql(_BROKERS).to_arrow_table()
    # Spark takes no column of lists without a single batch, as DuckDB gives it where there is no broker.
    batches = found.to_batches() or [pa.RecordBatch.from_pylist([], schema=found.schema)]
    # From Arrow, Spark makes a local relation whose size it knows; from tuples it would not know the size.
    return spark.createDataFrame(pa.Table.from_batches(batches))


def replica_frame(spark: SparkSession, states: Mapping[str, DesiredState], scratch: str | None) -> DataFrame:
    """Make the table ``replicas``; ``states``: the desired states by cluster.

    A saved table is read where it lies. One in memory becomes a file in ``scratch``, which executors read without the
    driver, or travels with the query where there is no such folder.
    """
    parts = []
    for number, (cluster, state) in enumerate(states.items()):
        if isinstance(state.replicas, SavedTable) or scratch is not None:
            saved = spark.read.schema(ddl(REPLICA_SCHEMA)).parquet(escape_glob(_file_of(state, number, scratch)))
        else:
            saved = spark.createDataFrame(state.replicas.replace_schema_metadata(None))
        parts.append(saved.select(sf.lit(cluster).alias("cluster"), *REPLICA_SCHEMA.names))
    none = pa.schema([_CLUSTER, *REPLICA_SCHEMA]).empty_table()
    return reduce(DataFrame.unionByName, parts) if parts else spark.createDataFrame(none)


def _file_of(state: DesiredState, number: int, scratch: str | None) -> str:
    """Name the file of a state's replicas, which is written where there is none."""
    if isinstance(state.replicas, SavedTable):
        return os.path.abspath(state.replicas.path)
    path = os.path.join(scratch or "", f"replicas-{number}.parquet")
    pq.write_table(state.replicas, path)
    return path
