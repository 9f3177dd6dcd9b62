"""Holds the findings of an audit against the truth about the sample fleet, finding by finding."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from logstore.rows import Kind
from tools.fleet.sample_fleet import Truth
from tools.fleet.sample_plan import Planted, PlantedFleet


def differences(
    truth: Truth, folder: str, findings: Iterable[Mapping[str, Any]], fleet: Iterable[tuple[str, str]]
) -> list[str]:
    """List the findings that were not planted, and the planted ones that the audit did not find, a sentence each.

    Findings have the columns of ``reconciler.audit.FINDING_SCHEMA``; ``fleet`` is kind and subject of each fleet
    finding.
    """
    # A log dir without identity does not tell its broker, so what lies on a disk is known by its place alone.
    planted = Counter(_known_by(entry) for entry in truth.findings)
    found = Counter(_known_by(_as_planted(row, folder)) for row in findings)
    wanted_fleet = Counter(truth.fleet)
    found_fleet = Counter(PlantedFleet(kind, subject) for kind, subject in fleet)
    return [
        *(f"planted and not found: {' '.join(map(str, key))}" for key in (planted - found).elements()),
        *(f"found and not planted: {' '.join(map(str, key))}" for key in (found - planted).elements()),
        *(f"planted and not found: {entry.kind} {entry.subject}" for entry in (wanted_fleet - found_fleet).elements()),
        *(f"found and not planted: {entry.kind} {entry.subject}" for entry in (found_fleet - wanted_fleet).elements()),
    ]


def _known_by(entry: Planted) -> tuple[str, str, str]:
    return entry.verdict, entry.log_dir or f"broker {entry.broker}", entry.name


def _as_planted(row: Mapping[str, Any], folder: str) -> Planted:
    by_partition = row["log_dir"] is None or row["kind"] == Kind.CHECKPOINT_ENTRY
    name = f"{row['topic']}-{row['partition']}" if by_partition else row["name"]
    home = "" if row["log_dir"] is None else os.path.relpath(row["log_dir"], os.path.realpath(folder))
    return Planted(row["verdict"], home, name, -1 if row["broker"] is None else row["broker"])
