"""The findings of an audit as a DataFrame, for a notebook or a job of one's own.

    from reconciler.audit import spark_findings

    found = spark_findings(spark, ["/shared/inventories/"], ["parquet:/shared/metadata"])
    found.where("verdict = 'MISSING'").groupBy("broker").count().show()

Each row is one finding, in the columns of :data:`reconciler.audit.FINDING_SCHEMA`:

| column | type | meaning |
|---|---|---|
| verdict | string | a name of :class:`reconciler.verdicts.Verdict` |
| cluster_id | string | null: the log dir names no cluster |
| broker | int | node.id; null: the log dir has none |
| host | string | the machine that was scanned; null: the replica lies on no disk |
| log_dir | string | null: the replica lies on no disk |
| directory_id | string | directory.id of the log dir, where it has one |
| name | string | of the directory or file in the log dir; ``.`` is the log dir itself |
| kind | string | what it is (:class:`logstore.rows.Kind`); null: the replica lies on no disk |
| namespace | string | empty: none |
| topic | string | |
| partition | int | |
| disk_topic_id | string | as partition.metadata has it |
| metadata_topic_id | string | of the wanted replica, else of the topic's name |
| bytes | bigint | sum of the lengths of its files |
| disk_bytes | bigint | the space that they take |
| files | int | |
| modified_ms | bigint | the newest time of its files, ms since 1970 |
| due_ms | bigint | when a staged replica may be deleted, ms since 1970 |
| copy_rank | int | DUPLICATE only: 1 is the copy to keep |
| only_in_sync | boolean | the metadata's only in-sync replica of the partition |
| evidence | string | why it has this verdict, as a sentence |
| doubt | string | a :class:`reconciler.verdicts.Doubt`: one side is too old for this verdict; null: none |

Findings that only several rows together show, totals and the report come from ``logstore audit --spark``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence

import duckdb
from pyspark.sql import DataFrame, SparkSession

from logstore import InventoryError
from logstore.rows import InventoryForm, expand, inventories_below, inventory_form, is_uri, read_inventory_set
from reconciler.audit.arguments import check_audit
from reconciler.audit.dimension_tables import keep_log_dirs, keep_metadata
from reconciler.audit.spark.join import find
from reconciler.audit.spark.output import topic_table
from reconciler.audit.spark.tables import (
    broker_frame,
    frame_of,
    inventory_frame,
    make_observed,
    replica_files,
    replica_frame,
)
from reconciler.desired import by_cluster, speaking
from reconciler.errors import UsageError
from reconciler.sources import load


def spark_findings(
    spark: SparkSession,
    inventories: Sequence[str],
    metadata: Sequence[str] = (),
    *,
    all_rows: bool = False,
    now_ms: int | None = None,
) -> DataFrame:
    """Compare inventories with the cluster's metadata, as a DataFrame of findings that is evaluated when it is asked.

    Only what is small is read at once: the rows of log dirs in the inventories, and metadata that is not saved. The
    session is the caller's and stays as it is; no view and no setting is left in it. Of several scans of one log dir
    the newest counts.

    Args:
        spark: a running session, over Spark Connect too.
        inventories: files, folders, patterns and URIs of Parquet inventories (:func:`logstore.rows.expand`). This
            machine and all executors see a path; Spark itself reads a URI, so its scheme has to be one that it knows,
            as ``s3a`` is with hadoop-aws among its jars. Of several one that cannot be read is left out with a warning.
        metadata: sources as ``logstore audit --metadata`` takes them. A saved one (``parquet:FOLDER``) is read by the
            executors; every other is decoded here, and travels with the query.
        all_rows: whether to list the OK rows as well.
        now_ms: the time of the audit, ms since 1970, which decides what is due; None: the present.

    Returns:
        The findings in no particular order, in the columns that :mod:`reconciler.audit.spark.notebook` lists.

    Raises:
        MetadataError: a source cannot be read.
        RefusedError: the metadata does not fit the log dirs (:func:`reconciler.desired.by_cluster`).
        UsageError: an argument is not what it should be, or an inventory is an Arrow file.
        InventoryError, InventoryStoreError: there is no inventory where some were said to be, none can be read, or a
            store refuses.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    check_audit({"inventories": inventories, "metadata": metadata}, [], {}, {"now_ms": (now_ms, 0)}, None)
    files = list(dict.fromkeys(path for given in inventories for path in _files(given)))
    arrow = next((path for path in files if inventory_form(path) is InventoryForm.ARROW), None)
    if arrow is not None:
        raise UsageError(f"{arrow} is an Arrow file, and Spark reads Parquet: scan with --format parquet")
    counting = read_inventory_set(files)
    if files and len(counting.unreadable) == len(files):
        raise InventoryError("; ".join(list(counting.unreadable.values())[:5]))
    for problem in (*counting.unreadable.values(), *counting.remarks):
        warnings.warn(problem, stacklevel=2)
    states = [state for spec in metadata for state in load(spec)]
    with duckdb.connect() as small:
        here = {path: counting.readable(path) for path in counting.paths}
        superseded = {here[path]: ignored for path, ignored in counting.superseded.items()}
        make_observed(small, list(here.values()), superseded, now_ms)
        brokers = keep_log_dirs(small)
        by_id = by_cluster(states, {broker.cluster for broker in brokers})
        small.execute("CREATE TABLE disks AS SELECT cluster, node FROM log_dirs LIMIT 0")  # nothing is counted here
        keep_metadata(small, by_id, speaking(by_id, brokers))
        brokers_frame = broker_frame(spark, small)
    frames = {
        "rows": inventory_frame(spark, counting.paths, counting.superseded, now_ms),
        "replicas": replica_frame(spark, by_id, replica_files(by_id, None)),
        "topics": frame_of(spark, topic_table(by_id)),
        "brokers": brokers_frame,
    }
    return find(frames, all_rows)


def _files(given: str) -> list[str]:
    """List the files that an argument stands for; paths absolute, because Spark gives a meaning to some beginnings."""
    files = [file for path in expand(given) for file in inventories_below(path) or [path]]
    return [file if is_uri(file) else os.path.abspath(file) for file in files]
