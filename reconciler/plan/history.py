"""Write the journal of a run into the log dirs that it changes, and read the journals of earlier runs.

A journal that cannot be written, for example on a full disk, does not stop the changes: every staged replica carries
its own record, and the report has the rest. A journal that cannot be read is reported and skipped.
``layout.ours.run_journal`` defines the format and the names of journals. Source: DESIGN §6.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from layout.errors import LayoutError
from layout.ours import RunJournal, encode_run_journal, is_run_journal, parse_run_journal, run_journal_name
from logstore import LogStoreError, UnreadableFileError
from logstore.fs import read_small_file, replace_file
from logstore.log_dir import DISK_FAILURES, LogDir
from logstore.repair import RepairStatus
from reconciler.desired import MetadataIdentity
from reconciler.plan.gate_inputs import EarlierRuns, Sighting, SightingKey, UsedMetadata, went_back
from reconciler.plan.plan import REPAIRS, ActionKind

MOST_READ = 100
"""Greatest number of journals of one log dir that are read: the newest ones."""

JOURNAL_LIMIT = 1 << 28
"""Greatest size of a journal in bytes; an action takes about five hundred."""

UNDER_WAY = "under way"
"""Status of an action in the journal before its result is known."""

SEEN = frozenset({ActionKind.STAGE.value, ActionKind.STAGE_STRAY.value, ActionKind.NOTE_SIGHTING.value})
"""Kinds of actions on a replica that was seen to be unwanted."""


@dataclass(slots=True)
class History:
    """The journals of some log dirs."""

    journals: list[tuple[str, RunJournal]] = field(default_factory=list)
    """Log dir and journal, oldest first for each log dir."""
    unreadable: list[str] = field(default_factory=list)
    """One sentence for each journal that could not be read."""

    def memory(self) -> EarlierRuns:
        """Summarize the journals for a plan: the metadata of earlier runs, and their sightings of unwanted replicas.

        A run of repairs condemned nothing, so its metadata holds back no later plan.
        """
        metadata: dict[str, tuple[int, tuple[int, int]]] = {}
        used: dict[str, set[UsedMetadata]] = defaultdict(set)
        sightings: dict[SightingKey, dict[str, Sighting]] = defaultdict(dict)
        written: dict[str, int] = defaultdict(int)
        for log_dir, journal in self.journals:
            written[log_dir] = max(written[log_dir], journal.started_ms, journal.finished_ms or 0)
            if journal.lines and all(line.get("kind") in REPAIRS for line in journal.lines):
                continue
            for source in journal.metadata:
                cluster, known = source.get("cluster_id", ""), (source.get("topics", ""), source.get("replicas", ""))
                if all(number.isdecimal() for number in known) and journal.started_ms >= metadata.get(cluster, (0,))[0]:
                    metadata[cluster] = journal.started_ms, (int(known[0]), int(known[1]))
                epoch, offset, as_of_ms = (_number(source, key) for key in ("epoch", "offset", "timestamp_ms"))
                used[cluster].add(UsedMetadata(source.get("source", ""), epoch, offset, as_of_ms, journal.started_ms))
            times = [ms for source in journal.metadata if (ms := _number(source, "timestamp_ms")) is not None]
            for line in journal.lines if times else ():
                if line.get("kind") in SEEN:
                    # A run that goes on writes its journal twice, and one plan is one sighting.
                    key = log_dir, line.get("inode"), line.get("topic_id")
                    sightings[key].setdefault(journal.plan, Sighting(min(times), journal.started_ms))
        return EarlierRuns(
            {cluster: numbers for cluster, (_, numbers) in metadata.items()},
            {replica: tuple(sorted(plans.values())) for replica, plans in sightings.items()},
            {cluster: tuple(sorted(found, key=lambda each: each.applied_ms)) for cluster, found in used.items()},
            dict(written),
        )

    def went_back(self, identity: MetadataIdentity, cluster: str) -> str | None:
        """Say in a clause that metadata of a cluster is older than what an applied plan was made from; None: not so."""
        return went_back(identity, self.memory().used.get(cluster, ()))

    def cut_short(self, plan: str) -> list[tuple[str, RunJournal]]:
        """Return log dir and journal of each run of this same plan that has no end."""
        return [each for each in self.journals if each[1].plan == plan and each[1].finished_ms is None]

    def noted(self, plan: str) -> set[SightingKey]:
        """Return the replicas that a run of this same plan has already noted as unwanted."""
        return {
            (log_dir, line.get("inode"), line.get("topic_id"))
            for log_dir, journal in self.journals
            if journal.plan == plan
            for line in journal.lines
            if line.get("kind") == ActionKind.NOTE_SIGHTING
        }


def _number(source: Mapping[str, str], key: str) -> int | None:
    text = source.get(key, "")
    return int(text) if text.isdecimal() and text.isascii() else None


def read_history(log_dirs: Iterable[str]) -> History:
    """Read the newest journals of log dirs, without a lock."""
    history = History()
    for log_dir in log_dirs:
        try:
            names = sorted(filter(is_run_journal, os.listdir(log_dir)))
        except OSError:
            continue  # a log dir that cannot be listed has its own finding
        for name in names[-MOST_READ:]:
            place = f"{log_dir}/{name}"
            try:
                data = read_small_file(place, JOURNAL_LIMIT)
                if data is not None:
                    history.journals.append((log_dir, parse_run_journal(data)))
            except (UnreadableFileError, LayoutError) as error:
                history.unreadable.append(f"{place} is passed over: {error}")
    return history


def write_journal(log_dir: LogDir, journal: RunJournal) -> str | None:
    """Write a journal durably into the root of its log dir; return the problem, or None."""
    name = run_journal_name(journal.started_ms, journal.plan)
    what = "the journal of this run cannot be written"
    try:
        with log_dir.changing(what):
            try:
                replace_file(log_dir.disk, log_dir.root, name, encode_run_journal(journal))
            except OSError as error:
                if error.errno in DISK_FAILURES:
                    raise
                # The run itself goes on, so this must not say that nothing was changed.
                return f"{log_dir.path}: {what}: {error.strerror}"
    except LogStoreError as error:
        return str(error)
    return None


def end_journals(
    log_dirs: Iterable[LogDir],
    cut_short: Iterable[tuple[str, RunJournal]],
    finished_ms: int,
    result_of: Callable[[str, Mapping[str, Any]], tuple[RepairStatus, str] | None],
) -> list[str]:
    """Give the journals of runs that were cut short their end; return the problems, one sentence each.

    Args:
        log_dirs: opened by this run; the journal of one that is offline stays as it is.
        cut_short: path of the log dir and journal of each such run.
        finished_ms: in ms since 1970.
        result_of: tells from the path of a log dir and a line that is under way its status and detail; None: nobody
            knows, and the line stays as it is.
    """
    online = {log_dir.path: log_dir for log_dir in log_dirs if log_dir.offline is None}
    problems = []
    for path, journal in cut_short:
        if path not in online:
            continue
        lines = []
        for line in journal.lines:
            result = result_of(path, line) if line.get("status") == UNDER_WAY else None
            lines.append(line if result is None else {**line, "status": result[0].value, "detail": result[1]})
        problem = write_journal(online[path], replace(journal, finished_ms=finished_ms, lines=tuple(lines)))
        problems += [] if problem is None else [f"{problem}; the journal of the run before has no end"]
    return problems


def journal_paths(log_dirs: Sequence[str], started_ms: int, plan: str) -> list[str]:
    """Return the paths of a run's journals."""
    return [f"{log_dir}/{run_journal_name(started_ms, plan)}" for log_dir in log_dirs]
