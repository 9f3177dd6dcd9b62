"""Keep the rows of one log dir as they were last seen, compactly, and find the changes when a row is seen again.

A broker has 100,000 directories, nearly all of them live replicas whose name holds topic and partition. For such a
replica only the other fields of its row are kept, and the replicas of a topic share them; so a replica costs its name
and an entry of a dictionary, about 120 bytes. Sizes, times and offsets are not kept: they change all the time on a live
broker, and no verdict depends on them.
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
    """The columns of a row on which a verdict can depend, as in :data:`logstore.rows.ROW_SCHEMA`."""

    kind: str
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None
    metadata_state: str | None = None
    problem: str | None = None
    due_ms: int | None = None

    @property
    def replica(self) -> tuple[str, int] | None:
        """Topic and partition, where the row has both."""
        return None if self.topic is None or self.partition is None else (self.topic, self.partition)


class RowChange(NamedTuple):
    """One row that differs from its last known state."""

    log_dir: str
    """Absolute path of the log dir."""
    key: str
    """Tells the rows of a log dir apart: the name, and for an entry of a checkpoint NUL and the partition it names."""
    before: RowState | None
    """None: the row is new."""
    after: RowState | None
    """None: the row is gone."""

    @property
    def name(self) -> str:
        """The row's name below the log dir; bytes that are not UTF-8 are surrogates."""
        return name_of_key(self.key)


_FIELDS = tuple(VARYING.index(column) for column in RowState._fields)


def key_and_state(row: Row) -> tuple[str, RowState]:
    """Split a row of a scan into its key and its state."""
    seen = RowState(*(row[index] for index in _FIELDS))  # type: ignore[arg-type]
    name = str(row[0])
    if seen.kind == Kind.CHECKPOINT_ENTRY:
        name += f"{_KEY_SEPARATOR}{seen.topic}-{seen.partition}"
    return name, seen


def name_of_key(key: str) -> str:
    """Take the row's name out of its key."""
    return key.partition(_KEY_SEPARATOR)[0]


class RowCache:
    """The rows of one log dir by their keys. Not thread-safe."""

    def __init__(self) -> None:
        self._rows: dict[str, RowState] = {}
        """Without topic and partition where the key holds both."""
        self._shared: dict[RowState, RowState] = {}
        """The states that the rows of several replicas share."""
        self._full_rows: dict[tuple[str, int], set[str]] = {}
        """Replica → keys of its rows that are kept in full."""

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def get(self, key: str) -> RowState | None:
        """Find the row of a key; None: it is not known."""
        kept = self._rows.get(key)
        return None if kept is None else _full_state(key, kept)

    def items(self) -> Iterator[tuple[str, RowState]]:
        """Iterate over all keys and rows. Nothing may be put in meanwhile."""
        for key, kept in self._rows.items():
            yield key, _full_state(key, kept)

    def of_replica(self, topic: str, partition: int) -> list[tuple[str, RowState]]:
        """Find the rows of one partition: live, future, marked for deletion, stray, staged, in a checkpoint."""
        plain = _plain_name(topic, partition)
        kept = self._rows.get(plain)
        keys = self._full_rows.get((topic, partition), ())
        found = (
            [] if kept is None or kept.topic is not None or kept.kind != _LIVE else [(plain, _full_state(plain, kept))]
        )
        return found + [(key, self._rows[key]) for key in keys]

    def put(self, key: str, seen: RowState | None) -> tuple[RowState | None, RowState | None] | None:
        """Put in the new state of a row.

        ``seen`` is None where the row is gone.

        Returns:
            The state before and after; None: they are equal.
        """
        before = self.get(key)
        if before == seen:
            return None
        if before is not None and before.replica in self._full_rows:
            self._forget_full_row(key, before.replica)
        if seen is None:
            del self._rows[key]
        else:
            self._keep(key, seen)
        return before, seen

    def compact(self) -> None:
        """Drop the shared states that no row uses any more."""
        used = {id(kept) for kept in self._rows.values()}
        self._shared = {state: state for state in self._shared if id(state) in used}

    def _keep(self, key: str, seen: RowState) -> None:
        replica = seen.replica
        if seen.kind == _LIVE and replica is not None and split_live(key) == replica and key == _plain_name(*replica):
            state = seen._replace(topic=None, partition=None)
            self._rows[key] = self._shared.setdefault(state, state)
            return
        self._rows[key] = seen
        if replica is not None:
            self._full_rows.setdefault(replica, set()).add(key)

    def _forget_full_row(self, key: str, replica: tuple[str, int] | None) -> None:
        if replica is None:
            return
        keys = self._full_rows[replica]
        keys.discard(key)
        if not keys:
            del self._full_rows[replica]


class ReplicasWithDirectory:
    """The replicas that have a live or a future directory: a view of a row cache, which costs nothing to make."""

    def __init__(self, known: RowCache) -> None:
        """Make a view of these rows."""
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
    """Merge the changes of each row into one, from its first to its last state; drop it where these are equal."""
    merged: dict[tuple[str, str], RowChange] = {}
    for change in changes:
        earlier = merged.get((change.log_dir, change.key))
        merged[change.log_dir, change.key] = change if earlier is None else change._replace(before=earlier.before)
    return [change for change in merged.values() if change.before != change.after or change.key == LOG_DIR_KEY]


def _plain_name(topic: str, partition: int) -> str:
    """The usual name of a live replica's directory; ``orders-00`` is live too, and has another name."""
    return f"{topic}-{partition}"


def _full_state(key: str, kept: RowState) -> RowState:
    """Add the topic and the partition that the key holds."""
    if kept.topic is not None or kept.kind != _LIVE:
        return kept
    replica = split_live(key)
    return kept if replica is None else kept._replace(topic=replica[0], partition=replica[1])
