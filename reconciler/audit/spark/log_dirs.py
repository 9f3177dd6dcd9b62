"""The Spark data source ``kafka_log_dirs``: executors list log dirs, and each becomes rows of one schema.

    spark.dataSource.register(KafkaLogDirs)
    spark.read.format("kafka_log_dirs").option("paths", json.dumps(["/data/kafka"])).load()

Options: ``paths`` (a JSON list, or one path per line), ``sizes`` (``true`` or ``false``) and ``groups`` (the most tasks
to run). A path is a log dir or a folder that holds log dirs; it must be the same on the driver, which looks for log
dirs, and on the executors, which list them.

The cost of a task hardly depends on its work, so log dirs are grouped, four groups for each core. All log dirs of one
broker are in the same group, because only together do they show which replicas the broker has twice. A log dir that
cannot be scanned is a row with the reason, never a failed task.

Executors import this package: it is installed there, or given to spark-submit with ``--py-files``.
"""

from __future__ import annotations

import gc
import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.utils import is_remote

from layout.errors import LayoutError
from logstore import LogStoreError
from logstore.log_dir import FallbackRecords, discover, read_identity
from logstore.rows import ROW_SCHEMA, Kind, LogDirFacts, MetadataState, plain_row, to_batch, to_table
from logstore.scan import scan, scan_all
from reconciler.desired import BrokerKey
from reconciler.errors import UsageError

GROUPS_PER_CORE = 4

_BATCH_ROWS = 1 << 16
_MANY = 1 << 20
"""More numbers than any cluster has cores; Spark cuts a range into as many parts as it has cores."""
_OPTIONS = frozenset({"paths", "sizes", "groups"})
_FAILURES = (LayoutError, LogStoreError, OSError, ValueError, RuntimeError, MemoryError)


@dataclass(frozen=True)
class LogDirs(InputPartition):
    """The log dirs that one task lists, broker by broker."""

    brokers: tuple[tuple[str, ...], ...]


class KafkaLogDirs(DataSource):
    """``spark.read.format("kafka_log_dirs")``; see the module for its options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return "kafka_log_dirs"

    def schema(self) -> str:
        """Return ``logstore.rows.ROW_SCHEMA`` as DDL."""
        return ddl(ROW_SCHEMA)

    def reader(self, schema: object) -> LogDirsReader:
        """Make a reader for the given options.

        Raises:
            UsageError: an option is missing, unknown or malformed.
        """
        options = {name.lower(): value for name, value in self.options.items()}
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise UsageError(
                f"kafka_log_dirs has no option {unknown[0]!r}; its options are {', '.join(sorted(_OPTIONS))}"
            )
        return LogDirsReader(_paths(options), _flag(options), _groups(options))


class LogDirsReader(DataSourceReader):
    """Finds log dirs on the driver, and lists them on the executors."""

    def __init__(self, paths: Sequence[str], sizes: bool, groups: int) -> None:
        self.paths = paths
        self.sizes = sizes
        self.groups = groups

    def partitions(self) -> Sequence[LogDirs]:
        """Group the log dirs into at most ``groups`` partitions of about equal numbers of log dirs."""
        return group_brokers(by_broker(log_dirs_in(self.paths)).values(), self.groups)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the log dirs of one partition, in batches of ROW_SCHEMA."""
        assert isinstance(partition, LogDirs)
        freeze_imports()
        schema = ROW_SCHEMA.remove_metadata()
        for broker in partition.brokers:
            for table in scan_broker(broker, self.sizes):
                rows = table.combine_chunks().replace_schema_metadata(None)
                yield from rows.cast(schema).to_batches(max_chunksize=_BATCH_ROWS)


def cores(spark: SparkSession) -> int:
    """Count the cores that Spark has for tasks at once; over Spark Connect, a small job of its own counts them."""
    if not is_remote():
        return int(spark.sparkContext.defaultParallelism)
    parts = spark.range(_MANY).select(spark_partition_id().alias("part")).agg({"part": "max"})
    return int(parts.collect()[0][0]) + 1


def freeze_imports() -> None:
    """Hide all imported objects from the garbage collector, at the start of a task.

    A worker collects garbage after every task, and walks all of pyarrow each time; frozen objects are not walked.
    """
    gc.collect()
    gc.freeze()


def log_dirs_in(trees: Iterable[str]) -> list[str]:
    """List the absolute paths of the log dirs in trees, each once, in the given order."""
    return list(dict.fromkeys(os.path.abspath(log_dir) for tree in trees for log_dir in discover(tree)))


def by_broker(log_dirs: Iterable[str]) -> dict[BrokerKey | str, tuple[str, ...]]:
    """Group log dirs by the broker that their identity names; a log dir without identity stands alone."""
    brokers: dict[BrokerKey | str, list[str]] = {}
    for log_dir in log_dirs:
        identity = read_identity(log_dir).identity
        key = log_dir if identity is None else BrokerKey(identity.cluster_id or "", _node_number(identity.node_id))
        brokers.setdefault(key, []).append(log_dir)
    return {key: tuple(each) for key, each in brokers.items()}


def _node_number(node_id: int | None) -> int:
    """Convert a node ID to the number that the engines use: -1 where there is none."""
    return -1 if node_id is None else node_id


def group_brokers(brokers: Collection[tuple[str, ...]], groups: int) -> list[LogDirs]:
    """Spread brokers over at most ``groups`` partitions, the largest first, each to the one with fewest log dirs."""
    chosen: list[list[tuple[str, ...]]] = [[] for _ in range(min(groups, len(brokers)))]
    for broker in sorted(brokers, key=len, reverse=True):
        min(chosen, key=lambda group: sum(map(len, group))).append(broker)
    return [LogDirs(tuple(group)) for group in chosen]


def scan_broker(broker: Sequence[str], sizes: bool, fallback: FallbackRecords | None = None) -> Iterator[pa.Table]:
    """Yield the rows of one broker's log dirs; when the scan of all fails, each is scanned alone."""
    try:
        tables = [observation.rows for observation in scan_all(broker, sizes=sizes, jobs=0, fallback=fallback)]
    except _FAILURES:
        tables = [_scan_alone(log_dir, sizes, fallback) for log_dir in broker]
    yield from tables


def _scan_alone(log_dir: str, sizes: bool, fallback: FallbackRecords | None) -> pa.Table:
    try:
        return scan(log_dir, sizes=sizes, fallback=fallback).rows
    except _FAILURES as error:
        return absent_row(log_dir, f"the scan of this log dir failed: {type(error).__name__}: {error}")


def absent_row(log_dir: str, problem: str) -> pa.Table:
    """Make the only row of a log dir that could not be scanned."""
    facts = LogDirFacts(socket.gethostname(), log_dir, time.time_ns() // 1_000_000, None, None, None)
    row = plain_row(".", Kind.LOG_DIR, metadata_state=MetadataState.ABSENT, problem=problem)
    return to_table([to_batch([row])], facts)


def _paths(options: Mapping[str, str]) -> list[str]:
    text = options.get("paths", "").strip()
    if not text.startswith("["):
        paths: object = [line for line in text.splitlines() if line]
    else:
        try:
            paths = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise UsageError(f"kafka_log_dirs: the option paths is no JSON list: {error}") from error
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path for path in paths):
        raise UsageError("kafka_log_dirs: the option paths must name log dirs, as a JSON list of texts or one per line")
    return paths


def _flag(options: Mapping[str, str]) -> bool:
    text = options.get("sizes", "true").lower()
    if text not in ("true", "false"):
        raise UsageError(f"kafka_log_dirs: the option sizes is {text!r}; it must be true or false")
    return text == "true"


def _groups(options: Mapping[str, str]) -> int:
    text = options.get("groups")
    if text is None:
        return _default_groups()
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise UsageError(f"kafka_log_dirs: the option groups is {text!r}; it must be a number from 1")
    return int(text)


def _default_groups() -> int:
    """Count the cores of this machine: there is no session here to ask for the cores of the cluster."""
    return (os.cpu_count() or 1) * GROUPS_PER_CORE


_SPARK_TYPES = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.bool_(): "boolean"}


def ddl(schema: pa.Schema) -> str:
    """Write the columns of an Arrow schema as Spark's DDL, all nullable.

    Raises:
        KeyError: no table of this project has a column of that type.
    """
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    return _SPARK_TYPES[kind]
