"""What is known of one log dir between two looks: its rows, compactly, and what changes when a new one is put in.

A broker has 100,000 directories, nearly all of them live replicas whose name tells topic and partition. Of such a one
only the rest of its row is kept, and the replicas of a topic share it; so it costs its name and a place in a
dictionary, about 120 bytes. Sizes, times and offsets are not kept: they change all the time on a live broker, and no
verdict hangs on them. Reading disks is left to ``watched_log_dir``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from layout.directory_name import DirectoryKind, split_live
from logstore.rows import VARYING, Kind, Row

LOG_DIR_KEY = "."
"""The key of the row that stands for the log dir itself."""

_KEY_SEPARATOR = "\0"
_LIVE = DirectoryKind.LIVE.value


class RowState(NamedTuple):
    """What a row says that a verdict can hang on; columns as in :data:`logstore.rows.ROW_SCHEMA`."""

    kind: str
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None
    metadata_state: str | None = None
    problem: str | None = None
    due_ms: int | None = None

    @property
    def replica(self) -> tuple[str, int] | None:
        """Topic and partition, where the row tells both."""
        return None if self.topic is None or self.partition is None else (self.topic, self.partition)


class RowChange(NamedTuple):
    """One row that differs from what was known."""

    log_dir: str
    """Its absolute path."""
    key: str
    """Tells the rows of a log dir apart: the name, and for an entry of a checkpoint NUL and the partition it names."""
    before: RowState | None
    """None: it was not there."""
    after: RowState | None
    """None: it is gone."""

    @property
    def name(self) -> str:
        """The row's name, below the log dir, as Python gives it: bytes that are not UTF-8 are surrogates."""
        return name_of_key(self.key)


_FIELDS = tuple(VARYING.index(column) for column in RowState._fields)


def key_and_state(row: Row) -> tuple[str, RowState]:
    """The key of a scan's row, and what it says."""
    seen = RowState(*(row[index] for index in _FIELDS))  # type: ignore[arg-type]
    name = str(row[0])
    if seen.kind == Kind.CHECKPOINT_ENTRY:
        name += f"{_KEY_SEPARATOR}{seen.topic}-{seen.partition}"
    return name, seen


def name_of_key(key: str) -> str:
    """The name that a key stands for."""
    return key.partition(_KEY_SEPARATOR)[0]


class RowCache:
    """The rows of one log dir by their keys. Not thread-safe."""

    def __init__(self) -> None:
        self._rows: dict[str, RowState] = {}
        self._shared: dict[RowState, RowState] = {}
        self._odd: dict[tuple[str, int], set[str]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def get(self, key: str) -> RowState | None:
        """The row of a key; None: it is not known."""
        kept = self._rows.get(key)
        return None if kept is None else _full_state(key, kept)

    def items(self) -> Iterator[tuple[str, RowState]]:
        """All rows with their keys. Nothing may be put in meanwhile."""
        for key, kept in self._rows.items():
            yield key, _full_state(key, kept)

    def of_replica(self, topic: str, partition: int) -> list[tuple[str, RowState]]:
        """The rows of one partition: live, future, marked for deletion, stray, staged, in a checkpoint."""
        plain = _plain_name(topic, partition)
        kept = self._rows.get(plain)
        keys = self._odd.get((topic, partition), ())
        found = (
            [] if kept is None or kept.topic is not None or kept.kind != _LIVE else [(plain, _full_state(plain, kept))]
        )
        return found + [(key, self._rows[key]) for key in keys]

    def put(self, key: str, seen: RowState | None) -> tuple[RowState | None, RowState | None] | None:
        """Take what was seen of a key, None for gone; gives what was known and what is, or None where they agree."""
        before = self.get(key)
        if before == seen:
            return None
        if before is not None and before.replica in self._odd:
            self._forget_odd(key, before.replica)
        if seen is None:
            del self._rows[key]
        else:
            self._keep(key, seen)
        return before, seen

    def compact(self) -> None:
        """Forget the shared rests of rows that nothing uses any more."""
        used = {id(kept) for kept in self._rows.values()}
        self._shared = {rest: rest for rest in self._shared if id(rest) in used}

    def _keep(self, key: str, seen: RowState) -> None:
        replica = seen.replica
        if seen.kind == _LIVE and replica is not None and split_live(key) == replica and key == _plain_name(*replica):
            rest = seen._replace(topic=None, partition=None)
            self._rows[key] = self._shared.setdefault(rest, rest)
            return
        self._rows[key] = seen
        if replica is not None:
            self._odd.setdefault(replica, set()).add(key)

    def _forget_odd(self, key: str, replica: tuple[str, int] | None) -> None:
        if replica is None:
            return
        keys = self._odd[replica]
        keys.discard(key)
        if not keys:
            del self._odd[replica]


class ReplicasWithDirectory:
    """The partitions that have a live or a future directory, as a collection that costs nothing to make."""

    def __init__(self, known: RowCache) -> None:
        """Look through to these rows."""
        self._known = known

    def __contains__(self, replica: object) -> bool:
        match replica:
            case (str(topic), int(partition)):
                rows = self._known.of_replica(topic, partition)
                return any(seen.kind in (Kind.LIVE, Kind.FUTURE) for _, seen in rows)
            case _:
                return False

    def __iter__(self) -> Iterator[tuple[str, int]]:
        for _, seen in self._known.items():
            if seen.kind in (Kind.LIVE, Kind.FUTURE) and seen.replica is not None:
                yield seen.replica

    def __len__(self) -> int:
        return sum(1 for _ in self)


def net_changes(changes: Iterable[RowChange]) -> list[RowChange]:
    """One change for each row: from what was known first to what is known last; none where these agree."""
    merged: dict[tuple[str, str], RowChange] = {}
    for change in changes:
        earlier = merged.get((change.log_dir, change.key))
        merged[change.log_dir, change.key] = change if earlier is None else change._replace(before=earlier.before)
    return [change for change in merged.values() if change.before != change.after or change.key == LOG_DIR_KEY]


def _plain_name(topic: str, partition: int) -> str:
    """What a live replica's directory is usually called; ``orders-00`` is live too, and not called that."""
    return f"{topic}-{partition}"


def _full_state(key: str, kept: RowState) -> RowState:
    """A row with the topic and the partition that its name tells."""
    if kept.topic is not None or kept.kind != _LIVE:
        return kept
    told = split_live(key)
    return kept if told is None else kept._replace(topic=told[0], partition=told[1])
