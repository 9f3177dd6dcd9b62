"""The answer of a contender of the audit benchmark, and the files in which it leaves it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.audit import AuditResult

ANSWER_FILE = "answer.json"
FINDINGS_FILE = "findings.parquet"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an audit of the benchmark's fleet, with times and memory that only the contender can measure."""

    totals: Mapping[str, tuple[int, int]]
    """Rows and bytes by verdict."""
    several_ids: int
    """How many topics lie on the disks under several IDs."""
    session: float = 0.0
    """Seconds that Spark's session took to start."""
    job: float = 0.0
    """Seconds from there to the answer."""
    jvm_peak: int = 0
    """Resident bytes of the JVM at their highest."""

    @property
    def said(self) -> tuple[Mapping[str, tuple[int, int]], int]:
        """The part that must not differ between contenders."""
        return self.totals, self.several_ids


def complete_answer(
    found: Iterable[tuple[Any, ...]], observed: tuple[int, int], several_ids: int, **figures: Any
) -> Answer:
    """Complete an answer: what was observed (entries on all disks, and their bytes) and not found is OK.

    Each of what was found is verdict, rows, bytes, and entries on a disk.
    """
    rows = [(str(verdict), int(rows), int(size or 0), int(entries)) for verdict, rows, size, entries in found]
    totals = {verdict: (count, size) for verdict, count, size, _ in rows}
    totals["OK"] = (observed[0] - sum(row[3] for row in rows), observed[1] - sum(row[2] for row in rows))
    return Answer(totals, several_ids, **figures)


def answer_of_result(result: AuditResult, **figures: Any) -> Answer:
    """The answer that one of our own engines gave."""
    totals = {verdict: (rows, result.bytes[verdict]) for verdict, rows in result.totals.items()}
    several = {finding.subject for finding in result.fleet if finding.kind == "TOPIC_UNDER_SEVERAL_IDS"}
    return Answer(totals, len(several), **figures)


def save_answer(found: Answer, out: str) -> None:
    """Leave an answer in a folder."""
    with open(os.path.join(out, ANSWER_FILE), "w", encoding="utf-8") as file:
        json.dump(asdict(found), file)


def load_answer(out: str) -> Answer:
    """The answer that a contender left in a folder."""
    with open(os.path.join(out, ANSWER_FILE), encoding="utf-8") as file:
        values = json.load(file)
    values["totals"] = {verdict: tuple(figures) for verdict, figures in values["totals"].items()}
    return Answer(**values)
