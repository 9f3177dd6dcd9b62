"""The answer of a contender of the audit benchmark, and the files in which it leaves it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.audit import AuditResult

ANSWER_FILE = "answer.json"
FINDINGS_FILE = "findings.parquet"

LIMIT = 1000
"""Rows of each kind of fleet finding that an audit tells, and that are compared."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an audit of the benchmark's fleet, with times and memory that only the contender can measure."""

    totals: Mapping[str, tuple[int, int]]
    """Rows and bytes by verdict."""
    several_ids: int
    """How many topics lie on the disks under several IDs."""
    log_dirs: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """Rows, bytes and bytes on disk by broker, log dir and verdict, as one text; empty: what was not asked for."""
    fleet: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the findings of the fleet are about, by kind, as far as there are some."""
    session: float = 0.0
    """Seconds that Spark's session took to start."""
    job: float = 0.0
    """Seconds from there to the answer."""
    jvm_peak: int = 0
    """Resident bytes of the JVM at their highest."""

    @property
    def said(self) -> tuple[object, ...]:
        """The part that must not differ between contenders."""
        return self.totals, self.several_ids, self.log_dirs, self.fleet


def complete_answer(
    found: Iterable[tuple[Any, ...]],
    observed: Iterable[tuple[Any, ...]],
    fleet: Mapping[str, Iterable[str]],
) -> Answer:
    """Complete an answer: what was observed in a log dir and not found there is OK.

    Args:
        found: verdict, broker, log dir, rows, bytes, bytes on disk, and entries on the disk.
        observed: broker, log dir, entries, bytes and bytes on disk of each log dir.
        fleet: what the findings of the fleet are about, by kind.
    """
    log_dirs = dict[str, tuple[int, int, int]]()
    left = {(broker, log_dir): Counter(_figures(*figures)) for broker, log_dir, *figures in observed}
    for verdict, broker, log_dir, rows, size, disk, entries in found:
        log_dirs[_place(broker, log_dir, verdict)] = (int(rows), int(size or 0), int(disk or 0))
        if (broker, log_dir) in left:
            left[broker, log_dir].subtract(_figures(entries, size, disk))
    for (broker, log_dir), figures in left.items():
        if figures["rows"]:
            log_dirs[_place(broker, log_dir, "OK")] = (figures["rows"], figures["bytes"], figures["disk_bytes"])
    return _answer(log_dirs, fleet)


def answer_of_result(result: AuditResult) -> Answer:
    """The answer that one of our own engines gave."""
    log_dirs = {
        _place(each.node, each.log_dir, each.verdict): (each.rows, each.bytes, each.disk_bytes)
        for each in result.by_log_dir
    }
    fleet = dict[str, list[str]]()
    for finding in result.fleet:
        if finding.subject != "more":
            fleet.setdefault(finding.kind, []).append(finding.subject)
    return _answer(log_dirs, fleet)


def _figures(entries: int, size: int | None, disk: int | None) -> dict[str, int]:
    return {"rows": int(entries), "bytes": int(size or 0), "disk_bytes": int(disk or 0)}


def _place(broker: int, log_dir: str | None, verdict: str) -> str:
    return f"broker {broker} {log_dir or 'nowhere'} {verdict}"


def _answer(log_dirs: Mapping[str, tuple[int, int, int]], fleet: Mapping[str, Iterable[str]]) -> Answer:
    """Sum up what lies in the log dirs by verdict, and name each subject of the fleet once."""
    totals = dict[str, tuple[int, int]]()
    for place, (rows, size, _) in log_dirs.items():
        verdict = place.rpartition(" ")[2]
        before = totals.get(verdict, (0, 0))
        totals[verdict] = before[0] + rows, before[1] + size
    subjects = {kind: sorted(set(named)) for kind, named in fleet.items()}
    subjects = {kind: named for kind, named in sorted(subjects.items()) if named}
    return Answer(totals, len(subjects.get("TOPIC_UNDER_SEVERAL_IDS", ())), log_dirs, subjects)


def save_answer(found: Answer, out: str) -> None:
    """Leave an answer in a folder."""
    with open(os.path.join(out, ANSWER_FILE), "w", encoding="utf-8") as file:
        json.dump(asdict(found), file)


def load_answer(out: str) -> Answer:
    """The answer that a contender left in a folder."""
    with open(os.path.join(out, ANSWER_FILE), encoding="utf-8") as file:
        values = json.load(file)
    for name in ("totals", "log_dirs"):
        values[name] = {key: tuple(figures) for key, figures in values[name].items()}
    return Answer(**values)
