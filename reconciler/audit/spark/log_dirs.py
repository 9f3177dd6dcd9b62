"""The Spark data source ``kafka_log_dirs``: executors list log dirs, and each becomes rows of one schema.

    spark.dataSource.register(KafkaLogDirs)
    spark.read.format("kafka_log_dirs").option("paths", json.dumps(["/data/kafka"])).load()

Options: ``paths`` (a JSON list, or one path per line), ``sizes`` (``true`` or ``false``) and ``groups`` (how many tasks
at most). A path is a log dir or a folder that holds log dirs; it must be the same on the driver, which looks for log
dirs, and on the executors, which list them.

What a task costs hardly depends on what it does, so log dirs are grouped, four groups for each core. All log dirs of
one broker are in the same group, because only together do they show which replicas lie on it twice. A log dir that
cannot be scanned is a row that says so, never a failed task.

Executors import this package: it is installed there, or given to spark-submit with ``--py-files``.

Arrow schemas in Spark's words: the schema of a data source as a DDL string.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from layout.errors import LayoutError
from logstore import LogStoreError
from logstore.log_dir import discover, read_identity
from logstore.rows import ROW_SCHEMA, Kind, LogDirFacts, MetadataState, plain_row, to_batch, to_table
from logstore.scan import scan, scan_all
from reconciler.desired import BrokerKey
from reconciler.errors import UsageError

GROUPS_PER_CORE = 4

_BATCH_ROWS = 1 << 16
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
        """The name for ``format``."""
        return "kafka_log_dirs"

    def schema(self) -> str:
        """``logstore.rows.ROW_SCHEMA``."""
        return ddl(ROW_SCHEMA)

    def reader(self, schema: object) -> LogDirsReader:
        """A reader for the options that were given.

        Raises:
            UsageError: an option is missing, unknown or not of its form.
        """
        options = {name.lower(): value for name, value in self.options.items()}
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise UsageError(
                f"kafka_log_dirs has no option {unknown[0]!r}; its options are {', '.join(sorted(_OPTIONS))}"
            )
        return LogDirsReader(_paths(options), _flag(options), _groups(options))


class LogDirsReader(DataSourceReader):
    """Finds log dirs on the driver, lists them on the executors."""

    def __init__(self, paths: Sequence[str], sizes: bool, groups: int) -> None:
        self.paths = paths
        self.sizes = sizes
        self.groups = groups

    def partitions(self) -> Sequence[LogDirs]:
        """At most ``groups`` of them, about equal in log dirs."""
        return grouped(by_broker(log_dirs_in(self.paths)).values(), self.groups)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of the log dirs of one partition, in batches of ROW_SCHEMA."""
        assert isinstance(partition, LogDirs)
        freeze_what_is_there()
        schema = ROW_SCHEMA.remove_metadata()
        for broker in partition.brokers:
            for table in scanned(broker, self.sizes):
                rows = table.combine_chunks().replace_schema_metadata(None)
                yield from rows.cast(schema).to_batches(max_chunksize=_BATCH_ROWS)


def freeze_what_is_there() -> None:
    """Take what was imported from the collector, at the start of a task.

    A worker collects garbage after every task, and walks all of pyarrow each time; what is frozen is not walked.
    """
    gc.collect()
    gc.freeze()


def log_dirs_in(trees: Iterable[str]) -> list[str]:
    """The absolute paths of the log dirs that lie in trees, each once, in the order given."""
    return list(dict.fromkeys(os.path.abspath(log_dir) for tree in trees for log_dir in discover(tree)))


def by_broker(log_dirs: Iterable[str]) -> dict[BrokerKey | str, tuple[str, ...]]:
    """Put the log dirs of one broker together, by what their identity names; one without identity stands alone."""
    brokers: dict[BrokerKey | str, list[str]] = {}
    for log_dir in log_dirs:
        identity = read_identity(log_dir).identity
        key = log_dir if identity is None else BrokerKey(identity.cluster_id or "", _node(identity.node_id))
        brokers.setdefault(key, []).append(log_dir)
    return {key: tuple(each) for key, each in brokers.items()}


def _node(node_id: int | None) -> int:
    """A node ID as the engines have it: -1 where there is none."""
    return -1 if node_id is None else node_id


def grouped(brokers: Collection[tuple[str, ...]], groups: int) -> list[LogDirs]:
    """Spread brokers over at most so many partitions, the largest first, each to where there are fewest log dirs."""
    chosen: list[list[tuple[str, ...]]] = [[] for _ in range(min(groups, len(brokers)))]
    for broker in sorted(brokers, key=len, reverse=True):
        min(chosen, key=lambda group: sum(map(len, group))).append(broker)
    return [LogDirs(tuple(group)) for group in chosen]


def scanned(broker: Sequence[str], sizes: bool) -> Iterator[pa.Table]:
    """The rows of one broker's log dirs; when they fail together, each is tried alone."""
    try:
        tables = [observation.rows for observation in scan_all(broker, sizes=sizes, jobs=0)]
    except _FAILURES:
        tables = [_scanned_alone(log_dir, sizes) for log_dir in broker]
    yield from tables


def _scanned_alone(log_dir: str, sizes: bool) -> pa.Table:
    try:
        return scan(log_dir, sizes=sizes).rows
    except _FAILURES as error:
        return absent(log_dir, f"the scan of this log dir failed: {type(error).__name__}: {error}")


def absent(log_dir: str, problem: str) -> pa.Table:
    """The one row of a log dir of which nothing else can be said."""
    facts = LogDirFacts(socket.gethostname(), log_dir, time.time_ns() // 1_000_000, None, None, None)
    row = plain_row(".", Kind.LOG_DIR, metadata_state=MetadataState.ABSENT, problem=problem)
    return to_table([to_batch([row])], facts)


def _paths(options: Mapping[str, str]) -> list[str]:
    text = options.get("paths", "").strip()
    if not text.startswith("["):
        paths: object = [line for line in text.splitlines() if line]
    else:
        try:
            paths = json.loads(text)
        except json.JSONDecodeError as error:
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
    """Without the option there is no session to ask for its cores here, so this machine's stand for them."""
    return (os.cpu_count() or 1) * GROUPS_PER_CORE


_SPARK_TYPES = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.bool_(): "boolean"}


def ddl(schema: pa.Schema) -> str:
    """The columns of an Arrow schema as Spark's DDL, all nullable.

    Raises:
        KeyError: a type that no table of this project has.
    """
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    return _SPARK_TYPES[kind]
