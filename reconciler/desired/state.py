"""The desired state: which replicas a cluster wants on which broker, by topic ID, and how far that can be trusted.

Every metadata source yields the same :class:`DesiredState`: an identity (origin, completeness, age) and three Arrow
tables. The sources (``reconciler/sources``) read the files. A saved state leaves its largest table in its Parquet file
(:class:`SavedTable`): an engine reads the file in place, and other readers ask for one column or for all of it.

Identity is by topic ID. A topic whose source has no ID for it (ZooKeeper znodes v1 and v2) has a null ``topic_id``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from logstore import check_fields
from reconciler.desired.mode import Mode
from reconciler.errors import MetadataError, UsageError

DESIRED_VERSION = 1


def in_full(source: str) -> str:
    """Name a file or folder of metadata by its absolute path, as a command that is run from any folder has to.

    Any other source, such as a live one, is named as it was.
    """
    kind, _, path = source.partition(":")
    if os.path.exists(source):
        return os.path.abspath(source)
    return f"{kind}:{os.path.abspath(path)}" if path and os.path.exists(path) else source


REPLICA_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),  # full name, namespace included
        pa.field("topic_id", pa.string()),  # canonical base64url; null: the source has none
        pa.field("partition", pa.int32()),
        pa.field("node_id", pa.int32()),  # the broker that should hold it
        pa.field("directory_id", pa.string()),  # assigned log dir; null: unknown, migrating or unassigned
        pa.field("leader", pa.bool_()),
        pa.field("in_sync", pa.bool_()),  # in the ISR; in KRaft, while that is empty, eligible to lead (KIP-966)
        pa.field("isr_size", pa.int32()),  # number of replicas that are in_sync
        pa.field("adding", pa.bool_()),  # a reassignment is bringing it here
        pa.field("removing", pa.bool_()),  # a reassignment, or the deletion of its partition, is taking it away
        pa.field("leader_epoch", pa.int32()),
        pa.field("partition_epoch", pa.int32()),
    ]
)
"""One row per (partition, replica). ``(topic, partition, node_id)`` is unique."""


def is_only_in_sync(replica: Mapping[str, Any]) -> bool:
    """Whether a row of the replicas is its partition's only replica in sync."""
    return bool(replica["in_sync"]) and replica["isr_size"] == 1


def is_none_in_sync(replica: Mapping[str, Any]) -> bool:
    """Whether the source knows no replica in sync of a partition: this one may be the last that has its records.

    Such is the answer of brokers about a partition that eligible leaders alone may lead (KIP-966), for they tell these
    to newer clients only; and of a partition of ZooKeeper's whose state cannot be read.
    """
    return bool(replica["isr_size"] == 0)


TOPIC_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partitions", pa.int32()),
    ]
)
"""One row per topic; ``topic`` is unique, and so is every ``topic_id`` that is not null."""

_IDS = pa.list_(pa.field("element", pa.string()))
"""A list of texts. The element has the name that Parquet gives it, so that a saved table needs no cast."""

BROKER_SCHEMA = pa.schema(
    [
        pa.field("node_id", pa.int32()),
        pa.field("broker_epoch", pa.int64()),
        pa.field("fenced", pa.bool_()),
        pa.field("directory_ids", _IDS),  # registered log dirs; empty before Kafka 3.7
    ]
)
"""One row per broker that the source knows to be registered; empty where the source does not say."""


class Completeness(StrEnum):
    """Whether a replica that is not mentioned is not wanted (FULL) or merely not mentioned (INCREMENTAL)."""

    FULL = "FULL"
    INCREMENTAL = "INCREMENTAL"


_MODES = {
    "kraft": Mode.KRAFT,
    "zookeeper": Mode.ZOOKEEPER,
    "zookeeper-snapshot": Mode.ZOOKEEPER,
    "request": Mode.ZOOKEEPER,
}


@dataclass(frozen=True, slots=True)
class MetadataIdentity:
    """Where a desired state comes from, how complete and how old it is.

    Raises:
        UsageError: a value is of another type.
    """

    source: str
    """``kraft``, ``zookeeper-snapshot``, ``zookeeper``, ``kafka``, ``describe``, ``request`` or ``parquet``."""
    location: str
    """The path or address as it was given."""
    cluster_id: str | None = None
    """None: the source does not say, so this state cannot be matched with the cluster of a log dir."""
    completeness: Completeness = Completeness.FULL
    scope: frozenset[int] | None = None
    """The brokers it speaks for; None: all of the cluster."""
    offset: int | None = None
    """KRaft: the last offset contained. ZooKeeper: the zxid."""
    epoch: int | None = None
    """KRaft: leader epoch of the last batch. ZooKeeper and requests: controller epoch."""
    timestamp_ms: int | None = None
    """Time of the newest record contained, or of the reading of a live source, ms since 1970."""
    tail_uncommitted: bool = False
    """True when the last records may still be taken back (FACTS §7.1)."""
    digest: str = ""
    """SHA-256, hex, over the bytes read, or over the content of a live source; reproducible."""
    problems: tuple[str, ...] = ()
    """Problems of the reading, one sentence each: a torn tail, unknown record types, an unreadable snapshot."""
    metadata_version: int | None = None
    """KRaft: the level of the feature ``metadata.version``, which names the oldest release that brokers can have."""
    ends_early: tuple[str, ...] = ()
    """Those of the problems by which the state ends before its source did, or lacks a part of it."""
    uncommitted: tuple[str, ...] = ()
    """IDs of topics that were created, removed or reassigned by records that may still be taken back."""
    keeper: int | None = None
    """node.id of the log dir in which it lies, as KRaft keeps it; None: no node's, or not known."""
    as_of_from: str = ""
    """What its time rests on, one clause; empty: on its newest record, or on the reading of a live source."""
    keeper_runs: bool = False
    """Whether a process, the running node, held the lock of that log dir when it was read."""
    keeper_decides: bool = False
    """Whether that node is the only voter: while it does not run, nothing is decided, and this is all there is."""

    def __post_init__(self) -> None:
        check_fields(self, UsageError)

    def as_text(self, cluster: str = "") -> dict[str, str]:
        """Describe it for a plan or a journal: name of what is known → its value.

        A file is named by its absolute path, because a plan is carried out from any folder.

        Args:
            cluster: the cluster to which it is applied, for a source that names none.
        """
        fields = {
            "source": self.source,
            "location": in_full(self.location),
            "cluster_id": self.cluster_id or cluster or None,
            "completeness": self.completeness.value,
            "offset": self.offset,
            "epoch": self.epoch,
            "timestamp_ms": self.as_of_ms,
            "ends_early": "; ".join(self.ends_early) or None,
            "sha256": self.digest or None,
        }
        return {key: str(value) for key, value in fields.items() if value is not None}

    @property
    def mode(self) -> Mode | None:
        """The mode of the cluster; None: the source is one that clusters of both modes have."""
        if self.metadata_version is not None:
            return Mode.KRAFT
        return _MODES.get(self.source)

    @property
    def as_of_ms(self) -> int | None:
        """As of when the state speaks, ms since 1970: nothing that came later is in it. None: it does not know."""
        return self.timestamp_ms if self.timestamp_ms is not None and self.timestamp_ms > 0 else None


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A table that stays in its Parquet file, with the methods of ``pyarrow.Table`` that are needed here.

    The maker of a SavedTable (``reconciler/sources/parquet.py``) checks that the file has the right columns.
    """

    path: str
    schema: pa.Schema
    num_rows: int

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column into memory.

        Raises:
            MetadataError: the file is gone or damaged.
        """
        return self._read([name]).column(name)

    def read(self) -> pa.Table:
        """Read the whole table into memory.

        Raises:
            MetadataError: the file is gone or damaged.
        """
        found = self._read(self.schema.names)
        # A cast makes Arrow load its library of functions, even if there is nothing to cast.
        return found if found.schema.equals(self.schema, check_metadata=True) else found.cast(self.schema)

    def _read(self, columns: list[str]) -> pa.Table:
        try:
            # Imported here, because every command that uses a desired state imports this module.
            import pyarrow.parquet as pq

            return pq.ParquetFile(self.path, memory_map=True).read(columns)
        except (pa.ArrowException, OSError) as error:
            raise MetadataError(f"{self.path} cannot be read as Parquet: {str(error).splitlines()[0]:.200}") from error


@dataclass(frozen=True, slots=True)
class DesiredState:
    """What one metadata source says, as tables: see the schemas above.

    Raises:
        UsageError: a value is of another type, or a table of another schema.
    """

    identity: MetadataIdentity
    replicas: pa.Table | SavedTable
    """The one table that grows with the fleet; a saved state leaves it in its file."""
    topics: pa.Table
    brokers: pa.Table

    def __post_init__(self) -> None:
        check_fields(self, UsageError)
        for name, schema in (("replicas", REPLICA_SCHEMA), ("topics", TOPIC_SCHEMA), ("brokers", BROKER_SCHEMA)):
            check_columns(f"{name} of DesiredState", getattr(self, name), schema)


def check_columns(name: str, table: pa.Table | SavedTable, schema: pa.Schema) -> None:
    """Refuse a table of another schema, by what differs first.

    Raises:
        UsageError: a column is missing, of another type, in another place, or one that the schema does not have.
    """
    if not table.schema.equals(schema):
        pairs = zip_longest(_columns(table.schema), _columns(schema), fillvalue="no more columns")
        has, wanted = next(pair for pair in pairs if pair[0] != pair[1])
        raise UsageError(f"{name} has {has:.100}, where {wanted} is expected")


def _columns(schema: pa.Schema) -> list[str]:
    return [f"the column {each.name}: {each.type}{'' if each.nullable else ' not null'}" for each in schema]


@dataclass(slots=True)
class DesiredBuilder:
    """Collects topics, partitions and brokers in columns, the fastest way from a source to Arrow."""

    _replicas: list[list[Any]] = field(default_factory=lambda: [[] for _ in REPLICA_SCHEMA])
    _topics: dict[str, list[Any]] = field(default_factory=dict)
    _brokers: list[dict[str, Any]] = field(default_factory=list)

    def topic(self, name: str, topic_id: str | None) -> None:
        """Make a topic known, with canonical ID text or None; a topic without partitions counts as known too."""
        self._topics.setdefault(name, [topic_id, 0])

    def partition(
        self,
        topic: str,
        topic_id: str | None,
        partition: int,
        replicas: Sequence[int],
        *,
        isr: Iterable[int] = (),
        adding: Iterable[int] = (),
        removing: Iterable[int] = (),
        directories: Sequence[str | None] = (),
        leader: int = -1,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
    ) -> None:
        """Add one partition of a topic, one row per replica; the topic becomes known by it.

        ``directories`` stands beside ``replicas`` or is empty. A broker in ``adding`` or ``removing`` that ``replicas``
        lacks (ZooKeeper lists them apart) gets a row as well, because its data is in flight.
        """
        self.topic(topic, topic_id)
        self._topics[topic][1] += 1
        in_sync, coming, going = frozenset(isr), frozenset(adding), frozenset(removing)
        nodes = tuple(dict.fromkeys((*replicas, *coming, *going)))
        homes = dict(zip(replicas, directories, strict=False))
        times = len(nodes)
        # A cluster has millions of replicas: whole partitions are added to each column, not replicas value by value.
        for column, values in zip(
            self._replicas,
            (
                [topic] * times,
                [topic_id] * times,
                [partition] * times,
                nodes,
                [homes.get(node) for node in nodes] if homes else [None] * times,
                [node == leader for node in nodes],
                [node in in_sync for node in nodes],
                [len(in_sync)] * times,
                [node in coming for node in nodes],
                [node in going for node in nodes],
                [leader_epoch] * times,
                [partition_epoch] * times,
            ),
            strict=True,
        ):
            column.extend(values)

    def broker(self, node_id: int, broker_epoch: int | None, fenced: bool, directory_ids: Iterable[str]) -> None:
        """Add one registered broker."""
        self._brokers.append(
            {"node_id": node_id, "broker_epoch": broker_epoch, "fenced": fenced, "directory_ids": list(directory_ids)}
        )

    def build(self, identity: MetadataIdentity) -> DesiredState:
        """Turn the columns into tables."""
        replicas = [pa.array(column, entry.type) for column, entry in zip(self._replicas, REPLICA_SCHEMA, strict=True)]
        names = list(self._topics)
        ids, counts = zip(*self._topics.values(), strict=True) if names else ((), ())
        topics = [pa.array(names, pa.string()), pa.array(ids, pa.string()), pa.array(counts, pa.int32())]
        return DesiredState(
            identity,
            pa.Table.from_arrays(replicas, schema=REPLICA_SCHEMA),
            pa.Table.from_arrays(topics, schema=TOPIC_SCHEMA),
            pa.Table.from_pylist(self._brokers, schema=BROKER_SCHEMA),
        )


def in_memory(table: pa.Table | SavedTable) -> pa.Table:
    """Return a table in memory, whether it lies there or in its file.

    Raises:
        MetadataError: as :meth:`SavedTable.read`.
    """
    return table.read() if isinstance(table, SavedTable) else table
