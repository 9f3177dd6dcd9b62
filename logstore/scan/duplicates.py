"""Finds replicas that are live in two directories of one broker, and reads the leader epoch of each copy.

The last epoch of ``leader-epoch-checkpoint`` helps to rank the copies, which ``reconciler`` does. It costs a file per
replica, so it is read for duplicates only. Nearly always there are none, and a comparison of names shows that much
faster than a pass over all rows. So each pass gathers the names of its replicas in a :class:`ReplicaSet`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from layout import checkpoint
from layout.errors import DamagedFileError
from logstore.errors import UnreadableFileError
from logstore.fs import read_small_file
from logstore.rows import Columns, Kind
from logstore.scan.observation import Observation

if TYPE_CHECKING:
    import pyarrow as pa


LEADER_EPOCH_LIMIT = 1 << 22
"""Bytes: a line per election."""


def with_leader_epochs(seen: Sequence[tuple[Observation, ReplicaSet]]) -> list[Observation]:
    """Fill in ``leader_epoch`` where a replica is live twice in the log dirs of one broker.

    ``seen``: each observation with the replicas of its log dir.
    """
    observations = [observation for observation, _ in seen]
    directories = sum(replicas.directories for _, replicas in seen)
    if len(set[str]().union(*(replicas.live for _, replicas in seen))) == directories:
        return observations
    duplicates = _live_twice([observation.rows for observation in observations])
    return [dataclasses.replace(each, rows=_filled(each.log_dir, each.rows, duplicates)) for each in observations]


def _live_twice(tables: Iterable[pa.Table]) -> frozenset[tuple[str, int]]:
    """Find the (topic, partition) pairs that are live in more than one directory.

    They are counted in Python: the part of Arrow that groups rows takes longer to import than 100,000 replicas take.
    """
    counted = Counter(replica for table in tables for replica in _live(table))
    return frozenset(replica for replica, times in counted.items() if times > 1)


def _live(table: pa.Table) -> Iterator[tuple[str, int]]:
    kinds, topics, partitions = (table[name].to_pylist() for name in ("kind", "topic", "partition"))
    live = Kind.LIVE.value
    are_live = [kind == live and topic is not None for kind, topic in zip(kinds, topics, strict=True)]
    return compress(zip(topics, partitions, strict=True), are_live)


def _filled(log_dir: str, table: pa.Table, duplicates: frozenset[tuple[str, int]]) -> pa.Table:
    columns = [table[name].to_pylist() for name in ("kind", "topic", "partition", "name")]
    epochs = [
        last_leader_epoch(f"{log_dir}/{name}") if kind == Kind.LIVE and (topic, partition) in duplicates else None
        for kind, topic, partition, name in zip(*columns, strict=True)
    ]
    import pyarrow as pa  # here, because a scan imports this module before its workers look, and Arrow after

    from logstore.rows import ROW_SCHEMA

    index = ROW_SCHEMA.get_field_index("leader_epoch")
    return table.set_column(index, ROW_SCHEMA.field(index), pa.array(epochs, pa.int32()))


def last_leader_epoch(path: str) -> int | None:
    """Read the epoch of the last records of a partition dir; None when there is none, or it cannot be read."""
    try:
        data = read_small_file(f"{path}/{checkpoint.LEADER_EPOCH_CHECKPOINT}", LEADER_EPOCH_LIMIT)
        entries = checkpoint.parse_leader_epochs(data or b"")
    except (UnreadableFileError, DamagedFileError):
        return None
    return entries[-1][0] if entries else None


_LIVE, _FUTURE = Kind.LIVE.value, Kind.FUTURE.value


class ReplicaSet:
    """The replicas of one log dir, each spelt as a broker does: ``topic-partition``, which no two replicas share.

    It also answers whether a checkpoint names a replica that has no directory.
    """

    __slots__ = ("directories", "future", "live")

    def __init__(self) -> None:
        self.live: set[str] = set()
        """Replicas with a live directory."""
        self.future: set[str] = set()
        """Replicas with a future directory."""
        self.directories = 0
        """The number of live directories of known topics: more than ``live`` where one replica has several."""

    def add(self, columns: Columns) -> None:
        """Add the rows of some directories, whose first columns are name, kind, topic and partition."""
        names, kinds, topics, partitions = columns[:4]
        spelt = [f"{topic}-{partition}" for topic, partition in zip(topics, partitions, strict=True)]
        if set(kinds) == {_LIVE} and None not in topics:
            # Keep the existing names, because new texts would take as much memory again.
            self.live.update(names if spelt == names else spelt)
            self.directories += len(spelt)
            return
        for kind, topic, replica in zip(kinds, topics, spelt, strict=True):
            if topic is None:
                continue
            if kind == _LIVE:
                self.live.add(replica)
                self.directories += 1
            elif kind == _FUTURE:
                self.future.add(replica)

    def __contains__(self, replica: object) -> bool:
        """Say whether a (topic, partition) has a live or a future directory."""
        match replica:
            case (str(topic), int(partition)):
                spelt = f"{topic}-{partition}"
                return spelt in self.live or spelt in self.future
            case _:
                return False
