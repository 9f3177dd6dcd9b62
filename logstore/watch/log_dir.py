"""Read one log dir again and again: single entries by name, or everything, slice by slice.

The known rows of a log dir stay known while it is *lost*: gone, unmounted, unreadable, or no longer the same log dir. A
disk that is not mounted looks like an empty log dir, so once a log dir has shown an identity (``meta.properties``),
only the same identity is accepted; a disk that was formatted anew counts as lost until a new watch is started. Before
any row is reported as gone, the identity is read once more.

A directory that has no topic ID, and did not lie there without one before, is *deferred*: a broker makes the directory
first and writes ``partition.metadata`` a moment later, and that of a topic made anew has the name of the old one. So is
the leftover of a write, because the write usually is still going on. This module neither waits nor knows of events;
``watch`` does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from layout import checkpoint, meta_properties
from layout.errors import InvalidNameError
from layout.meta_properties import MetaProperties
from layout.scheme import LEDGER_FILE, STAGING_DIR, Scheme, sibling_staging_root
from logstore.fs import refusal
from logstore.log_dir import ExpectedIdentity, IdentityFound, read_identity, read_offset_checkpoints
from logstore.parallel import AdaptiveThreadPool
from logstore.rows import VARYING, Kind, MetadataState, Row, plain_row
from logstore.scan import KNOWN_FILES, Folder, Listing, NameRule, ScanOptions, list_log_dir, scan, scan_directories
from logstore.tunables import DIRECTORIES_PER_PIECE, SWEEP_AT_ONCE, WAITS_PAY_THREADS_FROM
from logstore.watch.row_cache import (
    LOG_DIR_KEY,
    ReplicasWithDirectory,
    RowCache,
    RowChange,
    RowState,
    key_and_state,
    name_of_key,
)

_BYTES, _DISK_BYTES, _MODIFIED = map(VARYING.index, ("bytes", "disk_bytes", "modified_ms"))
_ARRIVES_LATER = (MetadataState.MISSING, MetadataState.EMPTY)
_MOVES_REPLICAS = (Kind.LIVE, Kind.FUTURE)


@dataclass(frozen=True, slots=True)
class LogDirState:
    """The state of a log dir as a whole."""

    state: MetadataState = MetadataState.ABSENT
    problem: str | None = "it was not looked at yet"
    identity: MetaProperties | None = None
    """The last identity it has shown, kept while the log dir is lost."""
    lost: bool = True
    """Its rows are as they were last seen, which says nothing of the present."""


class WatchedLogDir:
    """A log dir, its known rows, and what should be read next. Not thread-safe.

    Attributes:
        path: absolute.
        known: its rows, except the row of the log dir itself.
        state: of the log dir.
        staging_root: where its staged replicas would lie (DESIGN §5); None for a log dir without a name of its own.
        deferred: keys that must be read a second time.
        wants_sweep: there is a hint of changes that only a sweep finds.
        wants_listing: an entry that is no directory is new or has changed.
        wants_checkpoints: a checkpoint file was written, or a replica that may be named in one came or went.
    """

    def __init__(self, log_dir: str) -> None:
        """Remember the path; nothing is read yet."""
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
        """Check whether the log dir is there and still the same; when it is back, ask for a sweep first.

        So it does where the scheme is not the one under which it was read: a disk may have refused to say it then.
        """
        state = self._observe()
        if not state.lost and (self.state.lost or _scheme_of(state) is not self._scheme):
            self.wants_sweep = True
            return []
        return self._set_state(state)

    def look_again(self, keys: Iterable[str], *, defer: bool = True) -> list[RowChange]:
        """Read some entries again, and give the changes.

        Args:
            keys: of rows; or names of entries in the log dir, or in its staging directory with the prefix of that.
            defer: defer new entries that may be unfinished.
        """
        names = {name_of_key(key) for key in keys}
        state_changes = self.check() if meta_properties.FILE_NAME in names else []
        if self.state.lost or (self.wants_sweep and meta_properties.FILE_NAME in names):
            return state_changes
        self._scan_options.ledgers.clear()
        rows: dict[str, Row | None] = {}
        for name in names | self._beside_ledgers(names):
            self._read_entry(name, rows)
        gone = [key for key, row in rows.items() if row is None and key in self.known]
        if gone and self._observe().lost:
            return state_changes + self.check()
        changes = state_changes + self._accept([row for row in rows.values() if row is not None], defer)
        return changes + self._put_all((key, None) for key in gone)

    def list_files(self) -> list[RowChange]:
        """List the entries that are no directories again, and give the changes."""
        self.wants_listing = False
        if self.state.lost:
            return []
        try:
            listing = list_log_dir(self.path, self._scheme)
        except OSError as error:
            return self._set_state(self._unlisted(error))
        return self._accept(listing.rows, defer=True)

    def read_checkpoints(self) -> list[RowChange]:
        """Read the offset checkpoints again, and give the changes: damage, and entries without a replica."""
        self.wants_checkpoints = False
        if self.state.lost:
            return []
        now = dict(map(key_and_state, self._checkpoint_rows()))
        before = [key for key, seen in self.known.items() if seen.kind == Kind.CHECKPOINT_ENTRY and key not in now]
        if before and self._observe().lost:
            return self.check()
        return self._put_all([*now.items(), *((key, None) for key in before)])

    def sweep(self, *, defer: bool = True) -> Iterator[list[RowChange]]:
        """Read everything again, and give the changes slice by slice; all at the end when the log dir was lost.

        ``defer`` is as for :meth:`look_again`.
        """
        self.wants_sweep = self.wants_listing = self.wants_checkpoints = False
        self._scan_options.ledgers.clear()
        state = self._observe()
        if state.lost:
            yield self._set_state(state)
            return
        self._scheme = _scheme_of(state)
        self.staging_root = _staging_root(self.path, self._scheme)
        try:
            listing = list_log_dir(self.path, self._scheme)
        except OSError as error:
            yield self._set_state(self._unlisted(error))
            return
        is_emptied = len(self.known) and not any(place.names for place in listing.places)
        if state.state is not MetadataState.OK and is_emptied:
            problem = f"{state.problem}; it is empty, and {len(self.known)} entries were known in it"
            yield self._set_state(LogDirState(state.state, problem, self.state.identity, lost=True))
            return
        # A log dir that comes back is reported as a whole: its rows must not look valid before they are all read.
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
        """The prefix of the names of staged replicas."""
        below = f"{STAGING_DIR}/"
        return below if self._scheme is not None else f"../{os.path.basename(self.path)}.{below}"

    def sizes_of(self, key: str) -> tuple[int, int, int | None] | None:
        """Add up the lengths of the files in a directory now, and what is allocated for them.

        Returns:
            Bytes, bytes on disk, and the newest time of change in ms since 1970, None where no file tells it, as a scan
            has them; None: it is gone, is no directory, or cannot be read.
        """
        if self.state.lost or name_of_key(key) != key or key == LOG_DIR_KEY or os.path.islink(f"{self.path}/{key}"):
            return None
        rows = scan_directories(ScanOptions(sizes=True), Folder("", f"{self.path}/"), [(key, 0)])
        found = (rows[0][_BYTES], rows[0][_DISK_BYTES], rows[0][_MODIFIED]) if rows else (None, None, None)
        length, allocated, modified_ms = found
        if not isinstance(length, int) or not isinstance(allocated, int):
            return None
        return length, allocated, modified_ms if isinstance(modified_ms, int) else None

    def _observe(self) -> LogDirState:
        """Read the present state of the log dir, and compare it with the last one known."""
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

    def _unlisted(self, error: OSError) -> LogDirState:
        problem = f"the log dir {refusal(error)}"
        return LogDirState(MetadataState.UNREADABLE, problem, self.state.identity, lost=True)

    def _set_state(self, state: LogDirState) -> list[RowChange]:
        before, self.state = self.state, state
        return (
            [] if before == state else [RowChange(self.path, LOG_DIR_KEY, _row_of_state(before), _row_of_state(state))]
        )

    def _sweep_listing(self, listing: Listing, defer: bool) -> Iterator[list[RowChange]]:
        """Read everything that was listed, then find the rows that are gone."""
        listed: set[str] = set()
        with AdaptiveThreadPool[tuple[Folder, list[tuple[str, int]]], list[Row]](
            lambda piece: scan_directories(self._scan_options, *piece)
        ) as pace:
            for place in listing.places:
                entries = list(zip(place.names, place.inodes, strict=True))
                for first in range(0, len(entries), SWEEP_AT_ONCE):
                    slice_ = entries[first : first + SWEEP_AT_ONCE]
                    batch = [
                        (place, slice_[start : start + DIRECTORIES_PER_PIECE])
                        for start in range(0, len(slice_), DIRECTORIES_PER_PIECE)
                    ]
                    rows = [row for piece in pace.map(batch, WAITS_PAY_THREADS_FROM) for row in piece]
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
        # A live broker renames meanwhile, so missing entries are read again; where that cannot be, the listing counts.
        single = {key for key in missing if name_of_key(key) == key and self._is_read_alone(key)}
        rows_now: dict[str, Row | None] = dict.fromkeys(key for key in missing if key not in single)
        for key in single:
            self._read_entry(key, rows_now)
        yield self._put_all((key, None if row is None else key_and_state(row)[1]) for key, row in rows_now.items())

    def _checkpoint_rows(self) -> Iterator[Row]:
        checkpoints = read_offset_checkpoints(self.path)
        yield from checkpoints.damaged
        yield from checkpoints.orphans(ReplicasWithDirectory(self.known))

    def _beside_ledgers(self, names: set[str]) -> set[str]:
        """Find the staged directories and strays beside each ledger that was written to, whose rows hold its words."""
        prefixes = {name.removesuffix(LEDGER_FILE) for name in names if name.rpartition("/")[2] == LEDGER_FILE}
        kinds = (Kind.STAGED, Kind.STRAY)
        return {
            key
            for key, seen in (self.known.items() if prefixes else ())
            if seen.kind in kinds and key[: key.rfind("/") + 1] in prefixes
        }

    def _folder_of(self, name: str) -> Folder | None:
        """Find the folder of an entry of the log dir or of its staging directory; None: the entry lies deeper."""
        above, _, _ = name.rpartition("/")
        if not above:
            return Folder("", f"{self.path}/")
        if self.staging_root is not None and above == self.staging_prefix[:-1]:
            return Folder(self.staging_prefix, f"{self.staging_root}/", NameRule.STAGED)
        return None

    def _is_read_alone(self, name: str) -> bool:
        """Whether an entry can be read by itself; below namespace and prefix directories only a listing can."""
        place = self._folder_of(name)
        return place is not None and (bool(place.prefix) or self._scheme in (None, Scheme.FLAT))

    def _read_entry(self, name: str, rows: dict[str, Row | None]) -> None:
        """Read one entry and put its row into ``rows``, None when it is gone; nothing when a sweep or listing must."""
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
        """Put in the rows that may be reported, and defer the others."""
        pairs = []
        for row in rows:
            key, seen = key_and_state(row)
            if defer and _may_be_unfinished(seen) and self._was_finished(key):
                self.deferred.add(key)
            else:
                pairs.append((key, seen))
        return self._put_all(pairs)

    def _was_finished(self, key: str) -> bool:
        """Whether what may be unfinished has just come, or has taken the place of something: a topic made anew, say."""
        before = self.known.get(key)
        return before is None or not _may_be_unfinished(before)

    def _put_all(self, pairs: Iterable[tuple[str, RowState | None]]) -> list[RowChange]:
        changes = []
        for key, seen in pairs:
            differs = self.known.put(key, seen)
            if differs is not None:
                changes.append(RowChange(self.path, key, *differs))
                # An entry of a checkpoint may have lost its replica, or found it again.
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


def _scheme_of(state: LogDirState) -> Scheme | None:
    return IdentityFound(state.identity, state.state, None).scheme


def _expected(known: MetaProperties | None) -> ExpectedIdentity:
    """The identity that a log dir must show, by its last one."""
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
