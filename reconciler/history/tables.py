"""The layout of a history, and which runs are in it.

    DIR/findings/day=2026-11-25/RUN.parquet   FINDING_SCHEMA, a row for each finding
    DIR/topics/day=2026-11-25/RUN.parquet     the topics in the metadata of the run
    DIR/fleet/day=2026-11-25/RUN.parquet      the findings of the fleet as a whole
    DIR/brokers/day=2026-11-25/RUN.parquet    what the verdicts of each broker rest on, for the next incremental audit
    DIR/totals/day=2026-11-25/RUN.parquet     rows and bytes by verdict

Each row also has the run's ID, the time of the audit, and the time of the scan that it rests on. Any engine reads a
table as a folder of Parquet files partitioned by day, in UTC. A run counts when its totals are there, which come last.
A file that is still written has another suffix, which no reader takes. DIR may be a URI in a store, where a file is
there when it is whole. Where :mod:`reconciler.history.delta` has kept a ``_delta_log`` beside the days, a table is a
Delta table as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa

from logstore.rows import fetch, is_uri, join_uri, list_uri
from reconciler.audit import BASIS_SCHEMA, FINDING_SCHEMA, FLEET_SCHEMA, EarlierAudit, EarlierRun, FleetKey
from reconciler.errors import UsageError
from reconciler.history.files import is_there, locate, names_in, open_parquet
from reconciler.text import listed

FINDINGS, TOPICS, FLEET, BROKERS, TOTALS = "findings", "topics", "fleet", "brokers", "totals"
TABLES = (FINDINGS, TOPICS, FLEET, BROKERS, TOTALS)
"""The tables in the order in which a run is added to them."""

OF_RUN = [
    pa.field("run_id", pa.string()),
    pa.field("audited_ms", pa.int64()),  # when the audit began, ms since 1970
    pa.field("scanned_ms", pa.int64()),  # the scan that the row rests on; of several the oldest; null: not known
]
"""What every row has at its end."""

SCHEMAS = {
    FINDINGS: pa.schema([*FINDING_SCHEMA, *OF_RUN]),
    TOPICS: pa.schema([pa.field(name, pa.string()) for name in ("cluster", "topic", "topic_id")] + OF_RUN),
    FLEET: pa.schema([*FLEET_SCHEMA, *OF_RUN]),
    BROKERS: pa.schema([*BASIS_SCHEMA, *OF_RUN]),
    TOTALS: pa.schema(
        [
            pa.field("verdict", pa.string()),
            pa.field("rows", pa.int64()),
            pa.field("bytes", pa.int64()),  # null: the scans did not add up sizes
            pa.field("disk_bytes", pa.int64()),
            pa.field("in_doubt", pa.int64()),
            *OF_RUN,
        ]
    ),
}

SUFFIX = ".parquet"
_DAY = re.compile(r"day=(\d{4}-\d{2}-\d{2})")
_RUN = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """One run in a history; runs are ordered by time."""

    run_id: str
    """``20261125T221503.204Z-1a2b3c4d``: when it began, in UTC, and what tells it from others of that moment."""
    folder: str
    """The history: a folder or a URI."""

    @property
    def day(self) -> str:
        """The day in UTC, as partitions name it."""
        return f"{self.run_id[:4]}-{self.run_id[4:6]}-{self.run_id[6:8]}"

    def path(self, table: str) -> str:
        """The file of its rows in one of :data:`TABLES`."""
        return join_uri(self.folder, table, f"day={self.day}", self.run_id + SUFFIX)


def new_run_id(audited_ms: int, unique: str) -> str:
    """Name a run by the time of its audit, so that IDs are in the order of time, and by some random hex digits."""
    seconds, ms = divmod(audited_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}.{ms:03}Z-{unique[:8]}"


def is_run_id(text: str) -> bool:
    """Whether a text has the form of a run's ID."""
    return _RUN.fullmatch(text) is not None


def day_of(name: str) -> str | None:
    """Read the day in the name of a partition; None: it is none of a history's."""
    match = _DAY.fullmatch(name)
    return None if match is None else match[1]


def check_history(folder: str) -> None:
    """Refuse a folder that holds anything but a history, as a log dir or a report does.

    Raises:
        UsageError: it does, or it cannot be listed.
    """
    try:
        strangers = sorted(set(names_in(folder)) - set(TABLES))
    except OSError as error:
        raise UsageError(f"--history {folder}: {error.strerror}") from error
    if strangers:
        raise UsageError(f"--history {folder}: it holds {strangers[0]!r}, which no history does: name another folder")


def list_runs(folder: str) -> list[Run]:
    """List the runs of a history, the oldest first; none where there is no such folder.

    Raises:
        UsageError: the folder cannot be listed.
    """
    found = []
    for day, name in _totals(folder):
        run = Run(name.removesuffix(SUFFIX), folder)
        if name.endswith(SUFFIX) and is_run_id(run.run_id) and run.day == day_of(day):
            found.append(run)
    return sorted(found)


CLOCKS_APART_MS = 5 * 60_000
"""How far the clocks of two machines that use one history may be apart before anybody has to know of it."""


class Runs(NamedTuple):
    """The runs of a history by a clock, each part the oldest first."""

    so_far: Sequence[Run]
    """Those that count: the last one is the latest."""
    to_come: Sequence[Run]
    """Those of a time to come, because a clock was wrong then or is now; they would hide all runs until then."""


def runs_by_clock(folder: str, now_ms: int) -> Runs:
    """List the runs of a history, and set those apart that are of a time to come.

    Raises:
        UsageError: the folder cannot be listed.
    """
    runs = list_runs(folder)
    end = new_run_id(now_ms + CLOCKS_APART_MS, "~")
    number = sum(run.run_id < end for run in runs)
    return Runs(runs[:number], runs[number:])


def describe_runs_to_come(folder: str, now_ms: int) -> str | None:
    """Say which runs of a history do not count yet; None: all do.

    Raises:
        UsageError: the folder cannot be listed.
    """
    to_come = [run.run_id for run in runs_by_clock(folder, now_ms).to_come]
    if not to_come:
        return None
    runs, are, they = ("run", "is", "it counts") if len(to_come) == 1 else ("runs", "are", "they count")
    return (
        f"--history {folder}: {runs} {listed(to_come)} {are} of a time to come, because a clock was wrong then or is "
        f"now; until then {they} for nothing here, unless named by ID or day"
    )


def _totals(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the files of all days' totals, as day and name."""
    if is_uri(folder):  # where one request lists a thousand files, and one for each day would take long
        for each in list_uri(join_uri(folder, TOTALS)) or ():
            day, _, name = each.name.partition("/")
            yield day, name
        return
    for day in _names(os.path.join(folder, TOTALS)):
        yield from ((day, name) for name in (_names(os.path.join(folder, TOTALS, day)) if day_of(day) else ()))


def _names(folder: str) -> list[str]:
    try:
        return names_in(folder)
    except NotADirectoryError:
        return []  # a file beside the days
    except OSError as error:
        raise UsageError(f"{folder} cannot be listed: {error.strerror}") from error


Place = tuple[str | None, int | None, str | None, str | None, str | None]
"""A finding on a disk: cluster, broker, log dir, name, and the topic ID on the disk."""


def first_seen(folder: str, topics: Collection[str], now_ms: int) -> dict[Place, int]:
    """Tell when each finding of some topics was first seen: the time of that scan, ms since 1970.

    Only the row groups are read that may hold the topics. What was in order then is no finding, and is not known.
    Runs of a time to come count for nothing.

    Raises:
        UsageError: a run cannot be read.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    names = ["cluster_id", "broker", "log_dir", "name", "disk_topic_id", "scanned_ms"]
    seen: dict[Place, int] = {}
    try:
        system, _ = locate(folder)
        paths = [locate(run.path(FINDINGS))[1] for run in runs_by_clock(folder, now_ms).so_far]
        found = ds.dataset(paths, SCHEMAS[FINDINGS], "parquet", system)
        fits = pc.field("topic").isin(pa.array(sorted(topics), pa.string())) & pc.field("scanned_ms").is_valid()
        for row in found.to_table(columns=names, filter=fits).to_pylist():
            *place, scanned_ms = (row[name] for name in names)
            seen[tuple(place)] = min(scanned_ms, seen.get(tuple(place), scanned_ms))
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise UsageError(f"--history {folder} cannot be read: {reason:.200}") from error
    return seen


def last_audit(folder: str, now_ms: int, copies_in: str | None = None) -> tuple[Run, EarlierAudit] | None:
    """Find the newest run, for an incremental audit after it; None: there is none, or an older release wrote it.

    Args:
        folder: the history, a folder or a URI.
        now_ms: the time by which no run of a time to come is the newest.
        copies_in: a folder for copies of what lies in a store, which an engine cannot read there.

    Raises:
        UsageError: the folder cannot be listed.
        InventoryStoreError: the store cannot be reached, or refuses.
    """
    runs = runs_by_clock(folder, now_ms).so_far
    if not runs or not is_there(runs[-1].path(BROKERS)):
        return None
    paths = {}
    for table in (FINDINGS, TOPICS, BROKERS):
        paths[table] = os.path.abspath(runs[-1].path(table))
        if is_uri(folder):
            assert copies_in is not None
            paths[table] = os.path.join(copies_in, f"{table}{SUFFIX}")
            fetch(runs[-1].path(table), paths[table])
    return runs[-1], EarlierAudit(findings=paths[FINDINGS], topics=paths[TOPICS], basis=paths[BROKERS])


def earlier_runs(folder: str, most: int, now_ms: int) -> list[EarlierRun]:
    """Read the totals of the newest runs that are of no time to come, at most so many, the newest first.

    Raises:
        UsageError: one cannot be read.
    """
    found = []
    for run in reversed(runs_by_clock(folder, now_ms).so_far[-most:]):
        try:
            rows = open_parquet(run.path(TOTALS)).read(SCHEMAS[TOTALS].names).to_pylist()
            fleet = _fleet_of(run)
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise UsageError(f"{run.path(TOTALS)} cannot be read: {reason:.200}; remove it to go on") from error
        found.append(
            EarlierRun(
                run.run_id,
                next((row["audited_ms"] for row in rows), None),
                {row["verdict"]: row["rows"] for row in rows},
                {row["verdict"]: row["disk_bytes"] for row in rows if row["disk_bytes"] is not None},
                fleet,
            )
        )
    return found


def _fleet_of(run: Run) -> frozenset[FleetKey] | None:
    """Read which findings of the fleet a run has; None: it is of a release that did not keep them."""
    if not is_there(run.path(FLEET)):
        return None
    rows = open_parquet(run.path(FLEET)).read(list(FleetKey._fields)).to_pylist()
    return frozenset(FleetKey(**row) for row in rows)
