"""Finds the rows of one topic in many inventories, and in log dirs that were scanned just now.

Of several scans of one log dir the newest says what lies there, and the older ones since when, also where they found it
at another place (:mod:`logstore.rows.same_log_dir`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeVar

import pyarrow as pa

from layout.topic import NAMESPACE_SEPARATOR
from logstore import InventoryError
from logstore.parallel import processors
from logstore.rows import (
    Kind,
    LogDirOnHost,
    OtherPlace,
    find_other_places,
    find_rows,
    fitting_rows,
    inventory_values,
    on_host,
)
from reconciler.verdicts import Row
from reconciler.whereabouts.subject import Subject

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Found:
    """What inventories and scans say of some topics."""

    rows: tuple[Row, ...] = ()
    """The rows of the topics, from the newest scan of each log dir."""
    log_dirs: tuple[Row, ...] = ()
    """The newest ``log_dir`` row of each log dir that was scanned."""
    since: Mapping[tuple[Any, ...], int] = field(default_factory=dict)
    """By :func:`place_of`: when the first of the given scans saw it there, ms since 1970."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Inventories that cannot be read, each with the sentence that says why."""
    other_places: tuple[OtherPlace, ...] = ()
    """Where older scans found log dirs that newer ones found elsewhere."""


def search(values: Mapping[str, Collection[str]], inventories: Sequence[str], scanned: Sequence[pa.Table]) -> Found:
    """Find the rows that have one of some values, by column, in the newest scan of each log dir.

    ``scanned``: the rows of log dirs that were scanned just now, which is newer than every inventory.
    """
    # By its name the row of a log dir is found in one row group of a file, and by its kind in most.
    wanted = {"name": (".",), **values}
    read, unreadable = _of_each(inventories, lambda path: find_rows(path, wanted).to_pylist())
    now = [row for table in scanned for row in fitting_rows(table, wanted).to_pylist()]
    rows = [*now, *(row for rows in read for row in rows)]
    brokers: dict[LogDirOnHost, set[tuple[Any, ...]]] = {}
    for row in rows:
        if (row["cluster_id"], row["node_id"]) != _NO_BROKER:
            brokers.setdefault(on_host(row), set()).add((row["cluster_id"], row["node_id"]))
    newest = _newest(rows, now, brokers)
    other_places = _other_places(newest.values(), now, read)
    moved = {}
    for each in other_places:
        broker = (each.cluster_id, each.node_id)
        moved[*broker, *each.older] = (*broker, *each.newer)
        newest.pop((*broker, *each.older), None)
    current: dict[tuple[Any, ...], Row] = {}
    since: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if row["kind"] == Kind.LOG_DIR.value:
            continue
        place, scan = _place_now(row, moved), newest.get(_log_dir_of(row, brokers))
        if row["scanned_ms"] is not None:
            since[place] = min(row["scanned_ms"], since.get(place, row["scanned_ms"]))
        if scan is not None and _scanned(scan) == _scanned(row):
            current.setdefault((*place, row["kind"]), row)
    return Found(tuple(current.values()), tuple(newest.values()), since, unreadable, tuple(other_places))


_Brokers = Mapping[LogDirOnHost, Collection[tuple[Any, ...]]]


def _newest(rows: Iterable[Row], now: Collection[Row], brokers: _Brokers) -> dict[tuple[Any, ...], Row]:
    """Choose the newest ``log_dir`` row of each place."""
    fresh = set(map(on_host, now))
    newest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if row["kind"] == Kind.LOG_DIR.value and (row in now or on_host(row) not in fresh):
            best = newest.setdefault(_log_dir_of(row, brokers), row)
            if _scanned(row) > _scanned(best):
                newest[_log_dir_of(row, brokers)] = row
    return newest


def _other_places(newest: Iterable[Row], now: Sequence[Row], read: Sequence[Sequence[Row]]) -> list[OtherPlace]:
    """Find older scans of log dirs that newer ones found elsewhere, among the newest ones of each place."""
    sources: dict[LogDirOnHost, set[int]] = {}
    for number, rows in enumerate([now, *read]):
        for row in rows:
            if row["kind"] == Kind.LOG_DIR.value:
                sources.setdefault(on_host(row), set()).add(number)
    fresh = set(map(on_host, now))
    return find_other_places(sorted(newest, key=lambda row: (on_host(row) not in fresh, -_scanned(row))), sources)


def nearest(
    subject: Subject, inventories: Sequence[str], scanned: Sequence[pa.Table], also: Iterable[str]
) -> list[str]:
    """Find the topic names or the topic IDs that are nearest to what was asked for, in inventories and scans.

    ``also``: names or IDs that the metadata knows.
    """
    column = "topic" if subject.topic_id is None else "topic_id"
    read, _ = _of_each(inventories, lambda path: inventory_values(path, column))
    held = [values for each in (*read, *(table.column(column) for table in scanned)) for values in each.chunks]
    known = {*also, *pa.chunked_array(held, pa.string()).unique().to_pylist()} - {None}
    asked = subject.text if subject.partition is None else subject.partition[0]
    ranked = sorted((rank, name) for name in known for rank in (_distance(asked, name),) if rank is not None)
    return [name for _, name in ranked[:_NEAREST]]


_NEAREST, _FURTHEST = 3, 2


def _distance(asked: str, name: str) -> int | None:
    """Rank a name by how near it is to what was asked for; None: too far.

    Nearest is the same name in a namespace or in other case, then one that differs in a letter or two beside each
    other, and then one that has what was asked for in it.
    """
    if name.rpartition(NAMESPACE_SEPARATOR)[2].casefold() == asked.casefold():
        return 0
    if abs(len(name) - len(asked)) <= _FURTHEST:
        shortest, longest = sorted((len(asked), len(name)))
        start, end = _shared(asked, name), _shared(asked[::-1], name[::-1])
        differing = longest - start - min(end, shortest - start)
        if differing <= _FURTHEST and differing < shortest:
            return differing
    return _FURTHEST + 1 if len(asked) > _FURTHEST and asked.casefold() in name.casefold() else None


def _shared(one: str, other: str) -> int:
    """Count the characters at the start of two texts that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _of_each(paths: Sequence[str], read: Callable[[str], Result]) -> tuple[list[Result], dict[str, str]]:
    """Read all inventories, as many at once as there are processors; also return what cannot be read, and why."""
    unreadable: dict[str, str] = {}

    def read_one(path: str) -> list[Result]:
        try:
            return [read(path)]
        except InventoryError as error:
            unreadable[path] = str(error)
            return []

    with ThreadPoolExecutor(processors()) as pool:
        found = [each for several in pool.map(read_one, paths) for each in several]
    return found, {path: unreadable[path] for path in paths if path in unreadable}


def place_of(row: Row) -> tuple[Any, ...]:
    """Identify a directory of a fleet and the topic ID in it, from scan to scan."""
    return *_log_dir_of(row, {}), row["name"], row["topic"], row["partition"], row["topic_id"]


def _place_now(row: Row, moved: Mapping[tuple[Any, ...], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Identify a directory as :func:`place_of` does, and by the log dir's last place where it was found at others."""
    log_dir, *rest = place_of(row)[:_LOG_DIR], *place_of(row)[_LOG_DIR:]
    while log_dir in moved:
        log_dir = moved[log_dir]
    return *log_dir, *rest


_NO_BROKER = (None, None)
_LOG_DIR = 4
"""The number of values of :func:`_log_dir_of`, with which those of :func:`place_of` begin."""


def _log_dir_of(row: Row, brokers: _Brokers) -> tuple[Any, ...]:
    """Identify a log dir; one whose disk was away, and could not tell its broker, is that of its host and path.

    ``brokers``: the brokers that other scans know at a host and a path; where there are several, it is none of theirs.
    """
    broker, place = (row["cluster_id"], row["node_id"]), on_host(row)
    known = brokers.get(place, ())
    return *(next(iter(known)) if broker == _NO_BROKER and len(known) == 1 else broker), *place


def _scanned(row: Row) -> int:
    return -1 if row["scanned_ms"] is None else int(row["scanned_ms"])
