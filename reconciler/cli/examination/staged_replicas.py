"""What is staged on a broker's disks: what waits, what is due, and what of it frees a full disk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from logstore import LogStoreError
from logstore.log_dir import FallbackRecords, ReadOnlyLogDir
from logstore.scan import Observation
from logstore.staging import Placement, Staged, find_staged
from reconciler.cli.examination.room import worth_having
from reconciler.next_steps import worth_freeing
from reconciler.policy import PolicyRules
from reconciler.verdicts import Judged, Verdict


def recorded_elsewhere(seen: Observation, fallback: FallbackRecords) -> set[str]:
    """Find the names of what is staged in a log dir itself, and has its record on another disk."""
    try:
        found = fallback.read(seen.log_dir)
    except LogStoreError:
        found = None
    entries = {} if found is None else found.entries
    return {row["name"] for row in seen.rows.to_pylist() if row["kind"] == "staged" and row["name"] in entries}


def count_staged(
    log_dirs: Sequence[str], fallback: FallbackRecords, rules: PolicyRules, now_ms: int
) -> tuple[int, int, int | None, int]:
    """Count what waits or is held, and what is due; find the earliest due time; count what is due inside."""
    counts, earliest, inside = Counter[bool](), None, 0
    for path in log_dirs:
        for staged in _recorded(path, fallback):
            goes = staged.is_due(now_ms) and rules.keeping(staged.topic, now_ms) is None
            counts[goes] += 1
            inside += goes and staged.placement is not Placement.SIBLING
            if not staged.is_due(now_ms) and staged.due_ms is not None:
                earliest = staged.due_ms if earliest is None else min(earliest, staged.due_ms)
    return counts[False], counts[True], earliest, inside


def _recorded(log_dir: str, fallback: FallbackRecords) -> list[Staged]:
    """List what is staged in a log dir and has its record, there or in the folder of fallback records."""
    try:
        with ReadOnlyLogDir.open(log_dir) as opened:
            return [staged for staged in find_staged(opened, fallback) if staged.record is not None]
    except (LogStoreError, OSError):
        return []  # the scan has a row with the problem of this log dir


def worth_purging(
    full: Sequence[str], judged: Sequence[Judged], gone: set[str], in_the_way: set[str | None]
) -> tuple[list[tuple[str, str]], int]:
    """Find staged replicas on full disks that give room worth having, and their sum; not what is ``gone``.

    Returns:
        The log dir and the location of each, and the bytes of all.
    """
    found, total = list[tuple[str, str]](), 0
    rows = [each.observed or {} for each in judged if each.verdict is Verdict.STAGED]
    for path in map(os.path.abspath, full):
        here = {row["name"]: row["disk_bytes"] or 0 for row in rows if row["log_dir"] == path}
        waiting = {name: here[name] for name in here.keys() - gone}
        worth = worth_freeing(waiting, worth_having(path), in_the_way)
        found += ((path, name) for name in worth)
        total += sum(map(here.__getitem__, worth))
    return found, total
