"""Readings of a watch: how things stand, by log dir and verdict, and how often a verdict changed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.watch import LOG_DIR_KEY
from reconciler.metrics import families as of
from reconciler.metrics.families import Readings, broker_label
from reconciler.metrics.of_findings import read_log_dir
from reconciler.verdicts import UNWANTED, Verdict

if TYPE_CHECKING:
    from logstore.watch import WatchedLogDir
    from reconciler.watch import StandingVerdict, VerdictChange

_STAGED = {Verdict.STAGED: "waiting", Verdict.STAGED_DUE: "due"}


def begin_watch(readings: Readings, now_s: float) -> None:
    """Say since when the watch runs, in seconds since 1970."""
    readings.add(of.WATCH_START, now_s)


def read_changes(readings: Readings, changes: Iterable[VerdictChange]) -> None:
    """Count verdicts that changed."""
    for change in changes:
        readings.add(of.WATCH_CHANGES, 1, change.after or "GONE")


def read_watch(
    readings: Readings,
    log_dirs: Mapping[str, WatchedLogDir],
    standing: Iterable[StandingVerdict],
    weights: Mapping[tuple[str, str], int],
) -> None:
    """Take in how things stand now.

    Args:
        readings: to be added to.
        log_dirs: as the watch knows them, by path.
        standing: every verdict other than OK.
        weights: log dir and key of a replica that the cluster does not want → its space on the disk, where known.
    """
    others = Counter[str]()
    for path, disk in log_dirs.items():
        place = _place(disk)
        read_log_dir(readings, place, disk.state.state)
        readings.add(of.ORPHANS, 0, *place)
        readings.add(of.ORPHAN_BYTES, 0, *place)
        others[path] = 0
    for each in standing:
        place = (each.broker.cluster, broker_label(each.broker.node), each.log_dir or "")
        readings.add(of.REPLICAS, 1, *place, each.verdict)
        if each.log_dir is not None and each.key != LOG_DIR_KEY:
            others[each.log_dir] += 1
        if each.verdict in UNWANTED:
            readings.add(of.ORPHANS, 1, *place)
            readings.add(of.ORPHAN_BYTES, weights.get((each.log_dir or "", each.key or ""), 0), *place)
        if each.verdict in _STAGED:
            readings.add(of.STAGED, 1, *place, _STAGED[each.verdict])
        if each.due_ms is not None:
            readings.least(of.FIRST_DUE, each.due_ms / 1000, *place)
    for path, disk in log_dirs.items():
        readings.add(of.REPLICAS, len(disk.known) - others[path], *_place(disk), Verdict.OK)


def _place(disk: WatchedLogDir) -> tuple[str, str, str]:
    identity = disk.state.identity
    if identity is None:
        return "", "", disk.path
    return identity.cluster_id or "", broker_label(identity.node_id), disk.path
