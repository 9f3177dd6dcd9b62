"""Log dirs into Parquet, on Spark's executors: each task lists its brokers and leaves their rows as one inventory.

The data source ``kafka_log_dirs`` would bring the same rows into Spark one by one, only to have them written down
there. What a task leaves here is written by Arrow, and only the path of it goes through Spark.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from logstore.rows import InventoryForm, write_inventory
from reconciler.audit.spark.log_dirs import (
    GROUPS_PER_CORE,
    LogDirs,
    by_broker,
    freeze_what_is_there,
    grouped,
    log_dirs_in,
    scanned,
)

_GROUP = "id"
_PATH = "path"


def listed(spark: SparkSession, trees: Sequence[str], sizes: bool, folder: str) -> list[str]:
    """List trees, here and now and only once; gives the paths of the inventories that were left.

    Args:
        spark: a running session.
        trees: log dirs, or folders of them, that the driver and all executors see.
        sizes: add up the files.
        folder: where inventories are left; the driver and all executors see it.
    """
    groups = grouped(by_broker(log_dirs_in(trees)).values(), spark.sparkContext.defaultParallelism * GROUPS_PER_CORE)
    task = partial(leave, groups, sizes, folder)
    numbers = spark.range(0, len(groups), 1, len(groups))
    return [row[_PATH] for row in numbers.mapInArrow(task, f"{_PATH} string").collect()]


def leave(
    groups: Sequence[LogDirs], sizes: bool, folder: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """List the groups that are numbered in the batches, each into a file of its own."""
    freeze_what_is_there()
    for batch in batches:
        paths = []
        for number in batch.column(_GROUP).to_pylist():
            # A task that Spark repeats must not meet what its first attempt left.
            paths.append(os.path.join(folder, f"{number}-{uuid.uuid4().hex}.parquet"))
            tables = (table for broker in groups[number].brokers for table in scanned(broker, sizes))
            with open(paths[-1], "wb") as out:
                write_inventory(tables, out, InventoryForm.PARQUET)
        yield pa.RecordBatch.from_pydict({_PATH: pa.array(paths, pa.string())})
