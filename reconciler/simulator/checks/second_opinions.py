"""Asks others for the verdicts on a simulated cluster: a watch that goes on, and the engine that joins fleets.

::

    watch     what stands after all changes that it saw is what an audit of the same moment says
    engine    DuckDB's join gives each row the verdict that follows from the znodes

The watch is of one machine, and its log dirs are read as after events: entries by their names, or everything in a
sweep. No thread and no event of the system is in it. The audit by the engine takes long, so few histories have one.
Source: DESIGN §2, §3.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

import pyarrow.parquet as pq

from layout.scheme import STAGING_DIR
from logstore.scan import scan_all
from logstore.watch import RowChange, WatchedLogDir, name_of_key, net_changes
from reconciler.desired import DesiredState, by_cluster
from reconciler.simulator.checks.expected_verdicts import Found, Row, expected_state, scanned_rows, wrong_verdicts
from reconciler.simulator.checks.invariants import BrokenInvariantError
from reconciler.simulator.cluster import Cluster, Member
from reconciler.verdicts import Verdict, compare
from reconciler.watch import VerdictChange, VerdictWatch

_AUDITED = 0.06
"""In how many histories the engine audits, of those that have it."""

_MOMENTS = 5
"""One of the first so many moments is that of the engine's audit."""

_Standing: TypeAlias = tuple[str | None, str | None, str]
"""Log dir, name and verdict; None: the replica lies on no disk."""


class SecondOpinions:
    """The watch and the audit by the engine of one history."""

    def __init__(self, cluster: Cluster, *, watches: bool, audits: bool) -> None:
        """Choose a machine to watch, and the moment of the engine's audit, by the seed."""
        random = cluster.world.randomness("second opinions")
        watched, is_audited = random.choice(sorted(cluster.members)), random.random() < _AUDITED
        self._cluster, self._random = cluster, random
        self._audit_in = random.randrange(_MOMENTS) if audits and is_audited else -1
        self._member = cluster.members[watched] if watches else None
        self._watch: MachineWatch | None = None

    def ask(self) -> None:
        """Compare the verdicts of this moment.

        Raises:
            BrokenInvariantError: they differ.
        """
        wrong = list[str]()
        if self._member is not None:
            wrong += self._watched(self._member)
        if self._audit_in == 0:
            wrong += engine_differences(self._cluster)
        self._audit_in -= 1
        if wrong:
            raise BrokenInvariantError("; ".join(wrong[:8]))

    def _watched(self, member: Member) -> Iterator[str]:
        state, history = expected_state(self._cluster.zookeeper), self._cluster.world.history
        now_ms, sweeps = self._cluster.world.clock_of(member.name), self._random.random() < 0.3
        if self._watch is None or not self._watch.is_of_these_disks:
            # A disk that was put in place of another one counts as lost until a watch is started anew.
            self._watch = MachineWatch(member)
        yield from self._watch.differences(state, now_ms, sweeps=sweeps)
        history.reach("watch looks")
        history.reach("watch changes", self._watch.changes)


class MachineWatch:
    """A watch of one machine's log dirs, which reads them when it is asked.

    Attributes:
        changes: of verdicts, in the last look.
    """

    def __init__(self, member: Member) -> None:
        """Begin; nothing was read yet."""
        self._member, self._serials, self.changes, self._now_ms = member, _serials(member), 0, 0
        self._disks = {path: WatchedLogDir(path) for path in member.disks.log_dirs}
        self._verdicts = VerdictWatch(self._disks, lambda: self._now_ms)
        self._names: dict[str, set[str]] = {}

    @property
    def is_of_these_disks(self) -> bool:
        """Whether the machine still has the disks that it had at the beginning."""
        return self._serials == _serials(self._member)

    def differences(self, state: DesiredState, now_ms: int, *, sweeps: bool) -> list[str]:
        """Read what changed, and list what stands and is not what an audit says, or the other way round.

        ``now_ms``: decides what is due, unless it goes back; ``sweeps``: read everything, and not what events name.
        """
        is_first, self._now_ms = not self._now_ms, max(self._now_ms, now_ms)
        rows = scanned_rows(self._member)
        states = by_cluster([state], {row["cluster_id"] for row in rows if row["cluster_id"]})
        if is_first:
            self._read(sweeps=True)
            changes = _flat(self._verdicts.start(states))
        else:
            read = self._read(sweeps=sweeps)
            changes = _flat(self._verdicts.rows_changed(read)) if read else []
            changes += [*_flat(self._verdicts.metadata_changed(states)), *_flat(self._verdicts.time_passed())]
        self.changes = len(changes)
        audited = Counter(
            (None, None, str(each.verdict))
            if each.observed is None
            else (each.observed["log_dir"], each.observed["name"], str(each.verdict))
            for each in compare(states, rows, self._now_ms)
            if each.verdict is not Verdict.OK
        )
        return list(self._against(audited))

    def _against(self, audited: Counter[_Standing]) -> Iterator[str]:
        lost = {path for path, disk in self._disks.items() if disk.state.lost}
        standing = Counter[_Standing]()
        for each in self._verdicts.standing():
            name = None if each.key is None else name_of_key(each.key)
            if each.log_dir not in lost:
                standing[each.log_dir, name, str(each.verdict)] += 1
            elif each.verdict is not Verdict.ABSENT:
                yield f"a watch says {each.verdict} of {each.log_dir}/{name}, whose log dir is away"
        for which in sorted(standing.keys() | audited.keys(), key=str):
            log_dir, name, verdict = which
            # What lies on a disk that is away is missing to an audit, and absent to a watch that knew it.
            if standing[which] != audited[which] and log_dir not in lost and not (lost and log_dir is None):
                where = "on no disk" if log_dir is None else f"{log_dir}/{name}"
                yield f"{verdict}, {where}: {standing[which]} by a watch, and {audited[which]} by an audit"

    def _read(self, *, sweeps: bool) -> list[RowChange]:
        """Read the log dirs, all entries by their names, as after an event about each, or in a sweep."""
        changes = list[RowChange]()
        for path, disk in self._disks.items():
            names = _names(path)
            changes += disk.check()
            if not (sweeps or disk.wants_sweep or disk.state.lost):
                changes += disk.look_again(names | self._names.get(path, set()), defer=False)
            if sweeps or disk.wants_sweep or disk.state.lost:
                changes += [change for batch in disk.sweep(defer=False) for change in batch]
            changes += disk.list_files() if disk.wants_listing else []
            changes += disk.look_again(disk.deferred, defer=False) if disk.deferred else []
            changes += disk.read_checkpoints() if disk.wants_checkpoints else []
            disk.deferred.clear()
            self._names[path] = names
        return net_changes(changes)


def _serials(member: Member) -> list[int]:
    return [member.disks.serial(number) for number in range(len(member.disks.log_dirs))]


def _names(log_dir: str) -> set[str]:
    """The entries of a log dir and of its staging directory, as events would name them."""
    names = set[str]()
    for prefix in ("", f"{STAGING_DIR}/"):
        with suppress(FileNotFoundError):
            names |= {prefix + name for name in os.listdir(f"{log_dir}/{prefix}")}
    return names


def _flat(batches: Iterable[list[VerdictChange]]) -> list[VerdictChange]:
    return [change for batch in batches for change in batch]


def engine_differences(cluster: Cluster) -> list[str]:
    """Audit all disks by DuckDB, and list the differences from the verdicts that the znodes give."""
    from reconciler.audit import audit  # it takes long to be imported, and few histories need it

    seen = list(
        scan_all([path for each in cluster.members.values() for path in each.disks.log_dirs], sizes=False, jobs=0)
    )
    now_ms, state = cluster.world.now_ms, expected_state(cluster.zookeeper)
    with tempfile.TemporaryDirectory(prefix="logstore-simulated-") as folder:
        tables = [each.rows for each in seen]
        result = audit(tables, [], [state], folder, now_ms=now_ms, all_rows=True, threads=1)
        findings = pq.read_table(result.findings_path).to_pylist()
    rows = [row for each in seen for row in each.rows.to_pylist()]
    cluster.world.history.reach("audit rows", len(findings))
    wrong = list[str]()
    for member in cluster.members.values():
        here = [row for row in rows if row["log_dir"] in member.disks.log_dirs]
        found = list(_found(findings, here, member))
        wrong += [f"by DuckDB, {each}" for each in wrong_verdicts(found, here, cluster.oracle, now_ms)]
        silent = sum(row["kind"] != "log_dir" for row in here) - sum(_is_of_a_row(each) for each in found)
        if silent:
            wrong.append(f"DuckDB says nothing of {silent} rows of {member.name}")
    return wrong


def _found(findings: Sequence[Row], rows: Sequence[Row], member: Member) -> Iterator[Found]:
    """Give the findings about one broker, each with the row that it is about."""
    by_place = {_place(row): row for row in rows}
    for each in findings:
        if each["log_dir"] is None and each["broker"] == member.node_id:
            yield Found(each["verdict"], None, {**each, "node_id": each["broker"]})
        elif each["log_dir"] in member.disks.log_dirs:
            yield Found(each["verdict"], by_place[_place(each)], None)


def _is_of_a_row(found: Found) -> bool:
    """Whether a finding is of a row; a log dir that is in order has none."""
    return found.observed is not None and found.observed["kind"] != "log_dir"


def _place(row: Row) -> tuple[object, ...]:
    """What tells the rows of all log dirs apart: a checkpoint has one for each of its entries."""
    return row["log_dir"], row["name"], row["topic"], row["partition"]
