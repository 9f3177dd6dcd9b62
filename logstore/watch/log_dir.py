"""One log dir that is looked at again and again: only the entries that are named, or everything, slice by slice.

What was known of it stays known while it is *lost*: gone, unmounted, unreadable, or not the log dir that it was. A disk
that is not mounted looks like an empty log dir, so once a log dir has shown an identity (``meta.properties``), only the
same identity is taken for it; a disk that was formatted anew counts as lost until it is watched anew. Before anything
is told to be gone, the identity is looked at once more.

A directory that is new and has no topic ID yet is *held back*: a broker makes the directory first and writes
``partition.metadata`` a moment later. So is what a write left over, which mostly is a write that goes on. Nothing here
waits, and nothing here knows of events: that is for ``watch``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from layout import checkpoint, meta_properties
from layout.errors import InvalidNameError
from layout.meta_properties import MetaProperties
from layout.scheme import STAGING_DIR, Scheme, sibling_staging_root
from logstore.fs import refusal
from logstore.log_dir import ExpectedIdentity, IdentityFound, read_identity, read_offset_checkpoints
from logstore.parallel import AdaptiveThreadPool
from logstore.rows import VARYING, Kind, MetadataState, Row, plain_row
from logstore.scan import KNOWN_FILES, Folder, Listing, NameRule, ScanOptions, list_log_dir, scan, scan_directories
from logstore.watch.row_cache import (
    LOG_DIR_KEY,
    ReplicasWithDirectory,
    RowCache,
    RowChange,
    RowState,
    key_and_state,
    name_of_key,
)

SLICE = 512
"""Directories of a sweep that are looked into at a time: warm that takes 5 ms, and other work waits no longer."""

_DIRECTORIES_PER_TASK, _TASKS_THREADS_PAY_FROM = 64, 8
_BYTES = VARYING.index("bytes")
_ARRIVES_LATER = (MetadataState.MISSING, MetadataState.EMPTY)
_MOVES_REPLICAS = (Kind.LIVE, Kind.FUTURE)


@dataclass(frozen=True, slots=True)
class LogDirState:
    """What is true of the log dir as a whole."""

    state: MetadataState = MetadataState.ABSENT
    problem: str | None = "it was not looked at yet"
    identity: MetaProperties | None = None
    """As it was shown last, also while the log dir is lost."""
    lost: bool = True
    """What is known of its rows is what was seen last, and says nothing of now."""


class WatchedLogDir:
    """See the module. Not thread-safe: one thread looks.

    Attributes:
        path: absolute.
        known: its rows, apart from the one that stands for the log dir.
        state: of the log dir.
        staging_root: where its staged replicas would lie (DESIGN §5); None for a log dir without a name of its own.
        deferred: keys that wait for a second look.
        wants_sweep: something was seen that only a sweep can tell.
        wants_listing: something that is no directory is new or has changed.
        wants_checkpoints: a checkpoint file was written, or a replica that may be named in one came or went.
    """

    def __init__(self, log_dir: str) -> None:
        """Take its path; nothing is read yet."""
        self.path = os.path.abspath(log_dir)
        self.known = RowCache()
        self.state = LogDirState()
        self.deferred: set[str] = set()
        self.wants_sweep = True
        self.wants_listing = self.wants_checkpoints = False
        self.staging_root = _staging_root(self.path, None)
        self._scheme: Scheme | None = None
        self._scan_options = ScanOptions(sizes=False)
        self._was_there = False

    def check(self) -> list[RowChange]:
        """Find out whether it is there and is the log dir that it was. When it is back, a sweep is wanted first."""
        state = self._observe()
        if self.state.lost and not state.lost:
            self.wants_sweep = True
            return []
        return self._set_state(state)

    def look_again(self, keys: Iterable[str], *, defer: bool = True) -> list[RowChange]:
        """Read the named entries again; what changed.

        Args:
            keys: of rows, or names of entries in the log dir or, behind their prefix, in its staging directory.
            defer: hold back what is new and may not be finished.
        """
        names = {name_of_key(key) for key in keys}
        state_changes = self.check() if meta_properties.FILE_NAME in names else []
        if self.state.lost:
            return state_changes
        rows: dict[str, Row | None] = {}
        for name in names:
            self._read_entry(name, rows)
        gone = [key for key, row in rows.items() if row is None and key in self.known]
        if gone and self._observe().lost:
            return state_changes + self.check()
        changes = state_changes + self._accept([row for row in rows.values() if row is not None], defer)
        return changes + self._put_all((key, None) for key in gone)

    def list_files(self) -> list[RowChange]:
        """Tell again what is no directory."""
        self.wants_listing = False
        if self.state.lost:
            return []
        try:
            listing = list_log_dir(self.path, self._scheme)
        except OSError as error:
            return self._set_state(self._unlisted(error))
        return self._accept(listing.rows, defer=True)

    def read_checkpoints(self) -> list[RowChange]:
        """Read the offset checkpoints again: damage, and entries that no replica answers for."""
        self.wants_checkpoints = False
        if self.state.lost:
            return []
        now = dict(map(key_and_state, self._checkpoint_rows()))
        before = [key for key, seen in self.known.items() if seen.kind == Kind.CHECKPOINT_ENTRY and key not in now]
        if before and self._observe().lost:
            return self.check()
        return self._put_all([*now.items(), *((key, None) for key in before)])

    def sweep(self, *, defer: bool = True) -> Iterator[list[RowChange]]:
        """Read everything again, a slice at a time. While the log dir is lost, all that changed comes at the end.

        Args:
            defer: as for :meth:`look_again`.
        """
        self.wants_sweep = self.wants_listing = self.wants_checkpoints = False
        state = self._observe()
        if state.lost:
            yield self._set_state(state)
            return
        self._scheme = IdentityFound(state.identity, state.state, None).scheme
        self.staging_root = _staging_root(self.path, self._scheme)
        try:
            listing = list_log_dir(self.path, self._scheme)
        except OSError as error:
            yield self._set_state(self._unlisted(error))
            return
        if state.state is not MetadataState.OK and self._is_emptied(listing):
            problem = f"{state.problem}; it is empty, and {len(self.known)} entries were known in it"
            yield self._set_state(LogDirState(state.state, problem, self.state.identity, lost=True))
            return
        # What comes back is told as a whole, or else a partition dir that is gone would look well for a moment.
        comes_back, waiting = self.state.lost and self._was_there, list[RowChange]()
        self._was_there = True
        if not comes_back:
            yield self._set_state(state)
        for changes in self._sweep_listing(listing, defer):
            if comes_back:
                waiting += changes
                yield []
            else:
                yield changes
        if comes_back:
            yield self._set_state(self._observe()) + waiting
        self.known.compact()

    @property
    def staging_prefix(self) -> str:
        """What stands before the names of staged replicas."""
        below = f"{STAGING_DIR}/"
        return below if self._scheme is not None else f"../{os.path.basename(self.path)}.{below}"

    def bytes_of(self, key: str) -> int | None:
        """Add up the files of a directory, now; None where it is gone or is none."""
        if self.state.lost or name_of_key(key) != key or key == LOG_DIR_KEY or os.path.islink(f"{self.path}/{key}"):
            return None
        rows = scan_directories(ScanOptions(sizes=True), Folder("", f"{self.path}/"), [(key, 0)])
        size = rows[0][_BYTES] if rows else None
        return size if isinstance(size, int) else None

    def _observe(self) -> LogDirState:
        """What is true of the log dir now, against what was known of it."""
        known = self.state.identity
        if not os.path.isdir(self.path):
            seen = scan(self.path, sizes=False)
            return LogDirState(MetadataState.ABSENT, seen.problem, known, lost=True)
        found = read_identity(self.path, _expected(known))
        if found.state is MetadataState.ABSENT:
            return LogDirState(found.state, found.problem, known, lost=True)
        if found.state is not MetadataState.OK and known is not None and known.node_id is not None:
            return LogDirState(found.state, found.problem, known, lost=True)
        return LogDirState(found.state, found.problem, found.identity, lost=False)

    def _is_emptied(self, listing: Listing) -> bool:
        return bool(len(self.known)) and not any(place.names for place in listing.places)

    def _unlisted(self, error: OSError) -> LogDirState:
        problem = f"the log dir {refusal(error)}"
        return LogDirState(MetadataState.UNREADABLE, problem, self.state.identity, lost=True)

    def _set_state(self, state: LogDirState) -> list[RowChange]:
        before, self.state = self.state, state
        return (
            [] if before == state else [RowChange(self.path, LOG_DIR_KEY, _row_of_state(before), _row_of_state(state))]
        )

    def _sweep_listing(self, listing: Listing, defer: bool) -> Iterator[list[RowChange]]:
        """Look into everything that was listed, then see what is gone."""
        listed: set[str] = set()
        with AdaptiveThreadPool[tuple[Folder, list[tuple[str, int]]], list[Row]](
            lambda piece: scan_directories(self._scan_options, *piece)
        ) as pace:
            for place in listing.places:
                entries = list(zip(place.names, place.inodes, strict=True))
                for first in range(0, len(entries), SLICE):
                    slice_ = entries[first : first + SLICE]
                    batch = [
                        (place, slice_[start : start + _DIRECTORIES_PER_TASK])
                        for start in range(0, len(slice_), _DIRECTORIES_PER_TASK)
                    ]
                    rows = [row for piece in pace.map(batch, _TASKS_THREADS_PAY_FROM) for row in piece]
                    listed.update(str(row[0]) for row in rows)
                    yield self._accept(rows, defer)
        self.wants_checkpoints = False
        rest = [*listing.rows, *self._checkpoint_rows()]
        listed.update(key_and_state(row)[0] for row in rest)
        yield self._accept(rest, defer)
        missing = [key for key in self.known if key not in listed]
        if missing and self._observe().lost:
            self.wants_sweep = True
            return
        # A live broker renames meanwhile; what cannot be read by itself is as the listing had it.
        single = {key for key in missing if name_of_key(key) == key and self._is_read_alone(key)}
        rows_now: dict[str, Row | None] = dict.fromkeys(key for key in missing if key not in single)
        for key in single:
            self._read_entry(key, rows_now)
        yield self._put_all((key, None if row is None else key_and_state(row)[1]) for key, row in rows_now.items())

    def _checkpoint_rows(self) -> Iterator[Row]:
        checkpoints = read_offset_checkpoints(self.path)
        yield from checkpoints.damaged
        yield from checkpoints.orphans(ReplicasWithDirectory(self.known))

    def _folder_of(self, name: str) -> Folder | None:
        """Where an entry of the log dir or of its staging directory lies; None for what lies deeper."""
        above, _, _ = name.rpartition("/")
        if not above:
            return Folder("", f"{self.path}/")
        if self.staging_root is not None and above == self.staging_prefix[:-1]:
            return Folder(self.staging_prefix, f"{self.staging_root}/", NameRule.STAGED)
        return None

    def _is_read_alone(self, name: str) -> bool:
        """Whether an entry's place tells how its name is read, which below tiers and prefixes only a listing does."""
        place = self._folder_of(name)
        return place is not None and (bool(place.prefix) or self._scheme in (None, Scheme.FLAT))

    def _read_entry(self, name: str, rows: dict[str, Row | None]) -> None:
        """Read one entry into ``rows``: its row, or None when there is none, or nothing when that takes more."""
        place = self._folder_of(name)
        if place is None or not self._is_read_alone(name):
            self.wants_sweep = True
            return
        entry = name[len(place.prefix) :]
        if entry in checkpoint.OFFSET_CHECKPOINTS:
            self.wants_checkpoints = True
        try:
            status = os.lstat(place.path + entry)
        except (FileNotFoundError, NotADirectoryError):
            rows[name] = None
            return
        except OSError:
            self.wants_listing = True
            return
        if stat.S_ISDIR(status.st_mode):
            if self._scheme is not None and name == STAGING_DIR:
                self.wants_sweep = True
                return
            found = scan_directories(self._scan_options, place, [(entry, status.st_ino)])
            rows[name] = found[0] if found else None
        elif entry in KNOWN_FILES and stat.S_ISREG(status.st_mode):
            rows[name] = None
        else:
            self.wants_listing = True

    def _accept(self, rows: Iterable[Row], defer: bool) -> list[RowChange]:
        """Put in the rows that may be told; the others wait for a second look."""
        pairs = []
        for row in rows:
            key, seen = key_and_state(row)
            if defer and key not in self.known and _may_be_unfinished(seen):
                self.deferred.add(key)
            else:
                pairs.append((key, seen))
        return self._put_all(pairs)

    def _put_all(self, pairs: Iterable[tuple[str, RowState | None]]) -> list[RowChange]:
        changes = []
        for key, seen in pairs:
            differs = self.known.put(key, seen)
            if differs is not None:
                changes.append(RowChange(self.path, key, *differs))
                # An entry of a checkpoint lost its replica, or found it again.
                if any(each is not None and each.kind in _MOVES_REPLICAS for each in differs) and None in differs:
                    self.wants_checkpoints = True
        return changes


def _staging_root(log_dir: str, scheme: Scheme | None) -> str | None:
    if scheme is not None:
        return f"{log_dir}/{STAGING_DIR}"
    try:
        return sibling_staging_root(log_dir)
    except InvalidNameError:
        return None


def _expected(known: MetaProperties | None) -> ExpectedIdentity:
    """The identity that a log dir has to show, by the one that it has shown."""
    if known is None:
        return ExpectedIdentity()
    directory_id = None if known.directory_id is None else str(known.directory_id)
    return ExpectedIdentity(known.cluster_id, known.node_id, directory_id)


def _row_of_state(state: LogDirState) -> RowState:
    row = plain_row(LOG_DIR_KEY, Kind.LOG_DIR, metadata_state=state.state, problem=state.problem)
    return key_and_state(row)[1]


def _may_be_unfinished(seen: RowState) -> bool:
    if seen.kind == Kind.LEFTOVER:
        return True
    return seen.topic is not None and seen.metadata_state in _ARRIVES_LATER
