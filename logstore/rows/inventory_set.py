"""Many inventories read together: which of their scans count, and which files cannot be read.

A fleet keeps the inventories of many days, and a broker may have sent two. Of several scans of one log dir the newest
counts; an engine leaves out the rows of the others, so that no replica counts twice. A file that cannot be read costs
only what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from logstore.errors import InventoryError
from logstore.rows.rows import LogDirOnHost

_NAMED = 10
"""The most files or log dirs that a remark names."""


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
        return tuple(said)

    def ignored(self, path: str) -> frozenset[LogDirOnHost]:
        """Return the log dirs in one of :attr:`paths` whose rows do not count."""
        return self.superseded.get(path, frozenset())


def read_inventory_set(paths: Sequence[str], scanned_now: Iterable[LogDirOnHost] = ()) -> InventorySet:
    """Read the ``log_dir`` rows of inventories, and find the newest scan of each log dir.

    A log dir is the same one where host, path, cluster and node are the same. Of two scans of one moment, the first
    given counts.

    Args:
        paths: the files, each once.
        scanned_now: log dirs that are scanned in this run, which is newer than every inventory.
    """
    from logstore.rows.inventory import inventory_log_dirs  # which loads Arrow, and a scan of trees needs none

    found: dict[str, list[dict[str, Any]]] = {}
    unreadable: dict[str, str] = {}
    for path in paths:
        try:
            found[path] = inventory_log_dirs(path)
        except InventoryError as error:
            unreadable[path] = str(error)
    now = frozenset(scanned_now)
    newest: dict[tuple[Any, ...], tuple[int, str]] = {}
    for path, rows in found.items():
        for row in rows:
            scan = (-1 if row["scanned_ms"] is None else row["scanned_ms"], path)
            best = newest.setdefault(_identity(row), scan)
            if scan[0] > best[0]:
                newest[_identity(row)] = scan
    kept, superseded, older = [], {}, []
    for path, rows in found.items():
        counting = [row for row in rows if newest[_identity(row)][1] == path and _on_host(row) not in now]
        kept += counting
        rest = frozenset(map(_on_host, rows)) - frozenset(map(_on_host, counting))
        if rest and not counting:
            older.append(path)
        elif rest:
            superseded[path] = rest
    dropped = frozenset(older)
    return InventorySet(
        paths=tuple(path for path in found if path not in dropped),
        log_dirs=tuple(kept),
        superseded=superseded,
        older=tuple(older),
        unreadable=unreadable,
    )


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["cluster_id"], row["node_id"], *_on_host(row)


def _on_host(row: Mapping[str, Any]) -> LogDirOnHost:
    return LogDirOnHost(row["host"] or "", row["log_dir"])
