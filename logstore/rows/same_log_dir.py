"""Which scans found one log dir at two places: under two names of its host, after it was renamed, or on a moved disk.

What a log dir is stands in its ``meta.properties``: its broker and its ``directory.id``. Host and path say where it was
found. So of two places with one ``directory.id`` of one broker the newer scan counts, unless one scan found it at both.
A log dir without a ``directory.id``, as brokers before Kafka 3.7 make it, is known by the name of its host alone, with
the domain or without. A disk that is away tells nothing: it is the one that was at its path under a former name of its
host, which the other disks tell.

A disk that was copied while its broker runs looks the same, when both are scanned. Nothing in the scans tells it from a
host that was renamed but the times: a former name is not scanned any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logstore.rows.rows import LogDirOnHost

TOGETHER_MS = 12 * 3_600_000
"""Scans less than this apart may be of two log dirs that are there together: fleets are scanned once a day."""

_NAMED = 10
"""The most pairs of places that a remark names."""


@dataclass(frozen=True, slots=True)
class OtherPlace:
    """Where an older scan found a log dir that a newer one found elsewhere."""

    cluster_id: str
    node_id: int
    directory_id: str | None
    """None: the names of the host tell that it is one, or those that its other log dirs had."""
    older: LogDirOnHost
    newer: LogDirOnHost
    apart_ms: int | None
    """The time between the scans; None: one of them does not tell its time."""

    @property
    def is_two_names(self) -> bool:
        """Whether the host's name has a domain in one scan only."""
        return self.older.log_dir == self.newer.log_dir and is_one_host(self.older.host, self.newer.host)

    @property
    def is_certain(self) -> bool:
        """Whether this is no copy of a disk, which would be scanned about when the other is."""
        return self.is_two_names or (self.apart_ms is not None and self.apart_ms >= TOGETHER_MS)


def is_one_host(one: str, other: str) -> bool:
    """Whether two names are of one host, because one is the other without its domain."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return short == long or (short != "" and long.startswith(f"{short}."))


def on_host(row: Mapping[str, Any]) -> LogDirOnHost:
    """Return the place that a row of a scan names."""
    return LogDirOnHost(row["host"] or "", row["log_dir"])


def find_other_places(
    scans: Iterable[Mapping[str, Any]], sources: Mapping[LogDirOnHost, Collection[object]]
) -> list[OtherPlace]:
    """Find the scans that do not count, because a newer one found the same log dir at another place.

    Args:
        scans: the newest ``log_dir`` row of each place of each broker, the newest first.
        sources: what tells the scans of each place: log dirs of one host that share one were there together.
    """
    scans = list(scans)
    known = [row for row in scans if _tells_its_broker(row)]
    found: dict[int, OtherPlace] = {}
    for group in _groups(known, _by_host):
        for newer, older in _pairs(group, lambda newer, older: is_one_host(newer["host"], older["host"])):
            found[id(older)] = _other_place(newer, older)
    left = [row for row in known if id(row) not in found and row["directory_id"] is not None]
    for group in _groups(left, _by_directory):
        for newer, older in _pairs(group, lambda newer, older: not _are_together(newer, older, sources)):
            found[id(older)] = _other_place(newer, older)
    found |= {id(older): _other_place(newer, older) for newer, older in _away_under_another_name(scans, found)}
    return [found[id(row)] for row in known if id(row) in found]


def describe_other_places(places: Sequence[OtherPlace]) -> list[str]:
    """Say in a sentence for each reason which places are of one log dir, or seem to be."""
    said = []
    names = [each for each in places if each.is_two_names]
    if names:
        pairs = _listed(f"{each.older.host} and {each.newer.host}" for each in names)
        said.append(f"{_were(names)} scanned under two names of one host, and the newest scan counts alone: {pairs}")
    renamed = [each for each in places if each.is_certain and not each.is_two_names]
    away = [each for each in renamed if each.directory_id is None]
    if away:
        pairs = _listed(map(_way, away))
        said.append(
            f"{_were(away)} scanned under a former name of the host, as its other log dirs tell, and cannot tell now "
            f"what {'they are' if len(away) > 1 else 'it is'}; the newest scan counts alone: {pairs}"
        )
    moved = [each for each in renamed if each.directory_id is not None]
    if moved:
        pairs = _listed(map(_way, moved))
        said.append(
            f"{_were(moved)} found at another place before, as the directory.id tells, because the host was renamed or "
            f"the disk moved, and the newest scan counts alone: {pairs}"
        )
    unclear = [each for each in places if not each.is_certain]
    if unclear:
        pairs = _listed(f"{_at(each.older)} and {_at(each.newer)}" for each in unclear)
        said.append(
            f"{_were(unclear)} found at two places about the same time, by the directory.id: one may be a copy, and "
            f"the newest scan counts alone: {pairs}"
        )
    return said


def _were(places: Sequence[OtherPlace]) -> str:
    return f"{len(places)} log dirs were" if len(places) > 1 else "1 log dir was"


def _way(place: OtherPlace) -> str:
    older, newer = place.older, place.newer
    if older.host == newer.host:
        return f"{older.log_dir} is {newer.log_dir} of {newer.host} now"
    if older.log_dir == newer.log_dir:
        return f"{older.host} is {newer.host} now"
    return f"{_at(older)} is {_at(newer)} now"


def _at(place: LogDirOnHost) -> str:
    return f"{place.host}:{place.log_dir}"


def _listed(texts: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(texts))
    return ", ".join(distinct[:_NAMED]) + (", …" if len(distinct) > _NAMED else "")


_Row = Mapping[str, Any]


def _by_host(row: _Row) -> tuple[Any, ...] | None:
    host = (row["host"] or "").partition(".")[0].casefold()
    return (row["cluster_id"], row["node_id"], row["log_dir"], host) if host else None


def _by_directory(row: _Row) -> tuple[Any, ...]:
    return row["cluster_id"], row["node_id"], row["directory_id"]


def _groups(rows: Iterable[_Row], key: Any) -> list[list[_Row]]:
    """Gather the rows of one key, which is not None, where there are several."""
    groups: dict[Any, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [group for each, group in groups.items() if each is not None and len(group) > 1]


def _pairs(group: Sequence[_Row], is_same: Any) -> Iterable[tuple[_Row, _Row]]:
    """Pair each row with the newest of those that count and are the same log dir, if there is one."""
    counting: list[_Row] = []
    for row in group:
        newer = next((each for each in counting if is_same(each, row)), None)
        if newer is None:
            counting.append(row)
        else:
            yield newer, row


def _tells_its_broker(row: _Row) -> bool:
    return row["cluster_id"] is not None and row["node_id"] is not None


def _away_under_another_name(scans: Sequence[_Row], found: Mapping[int, OtherPlace]) -> Iterator[tuple[_Row, _Row]]:
    """Pair each scan of a disk that is away with the older ones of its path under former names of its host.

    ``found``: the scans that do not count, by the identity of their rows, which tell the former names.
    """
    renamed = {
        (each.newer.host, each.older.host)
        for each in found.values()
        if each.is_certain and each.newer.log_dir == each.older.log_dir
    }
    at_path: dict[str, list[tuple[int, _Row]]] = {}
    for number, row in enumerate(scans):
        if _tells_its_broker(row) and id(row) not in found:
            at_path.setdefault(row["log_dir"], []).append((number, row))
    for number, away in enumerate(scans):
        if _tells_its_broker(away) or not away["host"]:
            continue
        former = [
            row
            for place, row in at_path.get(away["log_dir"], ())
            if place > number
            and (is_one_host(away["host"], row["host"] or "") or (away["host"], row["host"]) in renamed)
        ]
        # Of several brokers' disks nothing tells which one it was, and none is given up.
        if len({(row["cluster_id"], row["node_id"]) for row in former}) == 1:
            yield from ((away, row) for row in former if _other_place(away, row).is_certain)


def _are_together(one: _Row, other: _Row, sources: Mapping[LogDirOnHost, Collection[object]]) -> bool:
    here, there = on_host(one), on_host(other)
    return here.host == there.host and not set(sources.get(here, ())).isdisjoint(sources.get(there, ()))


def _other_place(newer: _Row, older: _Row) -> OtherPlace:
    times = (newer["scanned_ms"], older["scanned_ms"])
    return OtherPlace(
        older["cluster_id"],
        older["node_id"],
        older["directory_id"] if older["directory_id"] == newer["directory_id"] else None,
        on_host(older),
        on_host(newer),
        None if None in times else times[0] - times[1],
    )
