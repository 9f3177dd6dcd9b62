"""Many inventories read together: which of their scans count, and which files cannot be read.

A fleet keeps the inventories of many days, and a broker may have sent two. Of several scans of one log dir the newest
counts, also where they found it at several places (:mod:`logstore.rows.same_log_dir`); an engine leaves out the rows of
the others, so that no replica counts twice. A file that cannot be read costs only what it holds.

Of files whose names say that they hold the same log dirs (:mod:`logstore.rows.inventory_layout`), the newest is read,
and an older one only where that cannot be read: a folder may hold the scans of a year. What lies in a store is copied
to this machine once, checked there, and read from there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from logstore.errors import InventoryError, InventoryStoreError, StoreDownError
from logstore.parallel import processors
from logstore.rows.inventory_layout import parse_scan_name
from logstore.rows.rows import LogDirFacts, LogDirOnHost
from logstore.rows.same_log_dir import OtherPlace, describe_other_places, find_other_places, on_host
from logstore.rows.uris import fetch, is_uri
from logstore.tunables import STORE_THREADS

_NAMED = 10
"""The most files or log dirs that a remark names."""


class Copies:
    """Copies of inventories on this machine; they go with this object, and at the end of the process at the latest."""

    def __init__(self, parent: str | None) -> None:
        """Take the folder for the folder of copies, which is made for the first one; None: that for temporary files."""
        self._parent = parent
        self._folder: str | None = None
        self._making = threading.Lock()
        self.paths: dict[str, str] = {}
        """The paths of the copies, by the inventories as they were given."""

    def prepare(self) -> None:
        """Make the folder, once; threads may ask for it together.

        Raises:
            StoreDownError: it cannot be made.
        """
        with self._making:
            if self._folder is not None:
                return
            from tempfile import TemporaryDirectory

            try:
                folder = TemporaryDirectory(prefix="logstore-inventories-", dir=self._parent)
            except OSError as error:
                raise StoreDownError(
                    f"there is no room for copies of inventories: {error.strerror}; set TMPDIR"
                ) from error
            weakref.finalize(self, folder.cleanup)
            self._folder = folder.name

    def take(self, number: int, uri: str) -> str:
        """Fetch an inventory, and return the path of its copy; threads may do this together, each number once.

        Raises:
            InventoryStoreError, StoreDownError: as :func:`logstore.rows.uris.fetch`.
        """
        assert self._folder is not None
        path = os.path.join(self._folder, f"{number}.parquet")
        fetch(uri, path)
        self.paths[uri] = path
        return path

    def complete(self, number: int, given: str, path: str) -> None:
        """Copy an inventory, given as itself or as a URI and now at a path, to one with every column.

        Raises:
            InventoryError: its rows are damaged.
            StoreDownError: the copy cannot be written.
        """
        from logstore.rows.inventory import complete_inventory

        self.prepare()
        assert self._folder is not None
        copy = os.path.join(self._folder, f"{number}-whole.parquet")
        try:
            complete_inventory(path, copy)
        except OSError as error:
            raise StoreDownError(f"{given} cannot be copied ({error.strerror}): set TMPDIR to another place") from error
        self.paths[given] = copy


@dataclass(frozen=True, slots=True)
class InventorySet:
    """Inventories that count together."""

    paths: tuple[str, ...] = ()
    """Files with at least one scan that counts, in the given order."""
    log_dirs: tuple[Mapping[str, Any], ...] = ()
    """The ``log_dir`` rows that count, in ROW_SCHEMA's columns."""
    superseded: Mapping[str, frozenset[LogDirOnHost]] = field(default_factory=dict)
    """By one of :attr:`paths`: its log dirs of which there is a newer scan. Their rows do not count."""
    older: tuple[str, ...] = ()
    """Files of which no scan counts, because there is a newer one of each log dir."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Files that are no sound inventory, each with the sentence that says why and what to do."""
    other_places: tuple[OtherPlace, ...] = ()
    """Scans that do not count, because a newer one found the same log dir elsewhere."""
    copies: Copies = field(default_factory=lambda: Copies(None), compare=False)
    """What was fetched from a store, or got the columns that an older release did not write."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files that were given, whether they count or not."""
        return (*self.paths, *self.older, *self.unreadable)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on the scans that do not count, because there are newer ones."""
        said = []
        if self.older:
            names = ", ".join(self.older[:_NAMED]) + (", …" if len(self.older) > _NAMED else "")
            many = len(self.older) > 1
            what = f"{len(self.older)} older inventories do" if many else "1 older inventory does"
            whose = "their" if many else "its"
            said.append(f"{what} not count, because {whose} log dirs were scanned again since: {names}")
        for path, ignored in self.superseded.items():
            names = ", ".join(sorted(each.log_dir for each in ignored)[:_NAMED])
            said.append(f"{path} does not count for log dirs that were scanned again since: {names}")
        return (*said, *describe_other_places(self.other_places))

    def readable(self, path: str) -> str:
        """Return the file on this machine that holds one of :attr:`paths`: itself, or its copy."""
        return self.copies.paths.get(path, path)

    def ignored(self, path: str) -> frozenset[LogDirOnHost]:
        """Return the log dirs in one of :attr:`paths` whose rows do not count."""
        return self.superseded.get(path, frozenset())


def read_inventory_set(
    paths: Sequence[str], scanned_now: Iterable[LogDirFacts] = (), copies_in: str | None = None
) -> InventorySet:
    """Read the ``log_dir`` rows of inventories, and find the newest scan of each log dir.

    A log dir is the same one where host, path, cluster and node are the same, and where
    :func:`logstore.rows.same_log_dir.find_other_places` says so. One that could not tell its identity, because its disk
    was away, is the one that other inventories know at its host and path, where they know only one. Of two scans of one
    moment, the first given counts.

    Args:
        paths: the files, each once: paths and URIs.
        scanned_now: log dirs that are scanned in this run, which is newer than every inventory.
        copies_in: the folder for copies of what lies in a store; None: that for temporary files.

    Raises:
        StoreDownError: a store cannot be reached, so that nothing can be had from it.
    """
    copies = Copies(copies_in)
    read = _read_newest(paths, copies)
    rows_of = dict(read.found)
    found = {path: rows_of[path] for path in paths if path in rows_of}
    now = [asdict(each) for each in scanned_now]
    kept, other_places = _choose_newest(found, now)
    superseded, older = {}, set(read.older)
    for path, rows in found.items():
        rest = frozenset(map(on_host, rows)) - frozenset(map(on_host, kept[path]))
        if rest and not kept[path]:
            older.add(path)
        elif rest:
            superseded[path] = rest
    return InventorySet(
        paths=tuple(path for path in found if path not in older),
        log_dirs=tuple(row for rows in kept.values() for row in rows),
        superseded=superseded,
        older=tuple(path for path in paths if path in older),
        unreadable={path: read.unreadable[path] for path in paths if path in read.unreadable},
        other_places=tuple(other_places),
        copies=copies,
    )


_NOW = ""
"""What stands for the path of a file where there is none: the log dirs are scanned in this run."""


def _choose_newest(
    found: Mapping[str, Sequence[_LogDirRow]], now: Sequence[_LogDirRow]
) -> tuple[dict[str, list[_LogDirRow]], list[OtherPlace]]:
    """Choose the rows of each file that count; also return which do not, because they are of another place."""
    brokers = _known_brokers(found.values())
    scanned_now = frozenset(map(on_host, now))
    newest: dict[tuple[Any, ...], tuple[int, str, _LogDirRow]] = {}
    sources: dict[LogDirOnHost, set[str]] = {place: {_NOW} for place in scanned_now}
    for path, rows in found.items():
        for row in rows:
            if on_host(row) in scanned_now:
                continue
            sources.setdefault(on_host(row), set()).add(path)
            scan = (-1 if row["scanned_ms"] is None else row["scanned_ms"], path, row)
            best = newest.setdefault(_identity(row, brokers), scan)
            if scan[0] > best[0]:
                newest[_identity(row, brokers)] = scan
    scans = [*now, *(row for _, _, row in sorted(newest.values(), key=lambda scan: -scan[0]))]
    other_places = find_other_places(scans, sources)
    for each in other_places:
        newest.pop((each.cluster_id, each.node_id, *each.older), None)
    kept = {
        path: [row for row in rows if newest.get(_identity(row, brokers), (0, None))[1] == path]
        for path, rows in found.items()
    }
    return kept, other_places


@dataclass(slots=True)
class _Read:
    """What some files hold."""

    found: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    """Files that could be read, with their ``log_dir`` rows."""
    older: list[str] = field(default_factory=list)
    """Files that were not read, because a newer one of the same log dirs was."""
    unreadable: dict[str, str] = field(default_factory=dict)


def _read_newest(paths: Sequence[str], copies: Copies) -> _Read:
    """Read files, some at a time, and of several with the same log dirs the newest that can be read."""
    groups: dict[object, list[tuple[int, str]]] = {}
    for number, path in enumerate(paths):
        name = parse_scan_name(path)
        groups.setdefault(path if name is None else name.log_dirs, []).append((number, path))
    here = [group for group in groups.values() if not any(is_uri(path) for _, path in group)]
    away = [group for group in groups.values() if any(is_uri(path) for _, path in group)]
    if away:
        copies.prepare()
    parts = [*_read_together(here, copies, processors()), *_read_together(away, copies, STORE_THREADS)]
    whole = _Read()
    for part in parts:
        whole.found += part.found
        whole.older += part.older
        whole.unreadable.update(part.unreadable)
    return whole


def _read_together(groups: Sequence[Sequence[tuple[int, str]]], copies: Copies, threads: int) -> Sequence[_Read]:
    """Read groups of files by so many threads, which wait for a store, or check bytes without Python's lock."""
    if len(groups) < 2 or threads < 2:
        return [_read_group(group, copies) for group in groups]
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads, thread_name_prefix="inventory")
    try:
        return list(pool.map(lambda group: _read_group(group, copies), groups))
    finally:
        pool.shutdown(cancel_futures=True)


def _read_group(group: Sequence[tuple[int, str]], copies: Copies) -> _Read:
    """Read the newest of some files that can be read; they hold the same log dirs."""
    # Which loads Arrow, and a scan of trees needs none.
    from logstore.rows.inventory import has_all_columns, inventory_log_dirs

    if len(group) > 1:
        group = sorted(group, key=lambda one: -_scanned_ms(one[1]))
    read = _Read()
    for place, (number, path) in enumerate(group):
        local = path
        try:
            local = copies.take(number, path) if is_uri(path) else path
            read.found.append((path, inventory_log_dirs(local)))
            if not has_all_columns(local):
                copies.complete(number, path, local)
        except StoreDownError:
            raise
        except (InventoryError, InventoryStoreError) as error:
            read.unreadable[path] = str(error).replace(local, path)
            continue
        read.older += [each for _, each in group[place + 1 :]]
        break
    return read


def _scanned_ms(path: str) -> int:
    name = parse_scan_name(path)
    return -1 if name is None else name.scanned_ms


_LogDirRow = Mapping[str, Any]


def _known_brokers(files: Iterable[Sequence[_LogDirRow]]) -> Mapping[LogDirOnHost, frozenset[Any]]:
    """Gather the brokers, as cluster and node, that each log dir of a host is said to belong to."""
    known: dict[LogDirOnHost, set[Any]] = {}
    for rows in files:
        for row in rows:
            if _broker(row) != _NO_BROKER:
                known.setdefault(on_host(row), set()).add(_broker(row))
    return {log_dir: frozenset(brokers) for log_dir, brokers in known.items()}


_NO_BROKER = (None, None)


def _broker(row: _LogDirRow) -> tuple[Any, Any]:
    return row["cluster_id"], row["node_id"]


def _identity(row: _LogDirRow, brokers: Mapping[LogDirOnHost, frozenset[Any]]) -> tuple[Any, ...]:
    broker, place = _broker(row), on_host(row)
    known = brokers.get(place, ())
    if broker == _NO_BROKER and len(known) == 1:
        (broker,) = known
    return *broker, *place
