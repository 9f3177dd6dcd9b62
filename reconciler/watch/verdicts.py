"""Judge replicas again after changes of rows and metadata, and report the verdicts that differ from before.

Only replicas that a change can affect are judged again. The joined row of a partition depends on the rows of the same
broker, topic and partition, and on the metadata about the topic's name and ID. So these rows and this part of the
metadata are picked and passed to ``compare``. One rule is added here: every replica in a *lost* log dir has the verdict
of the log dir itself, ABSENT (the table's first line), until the log dir is back.

Only verdicts other than OK are kept. A missing replica and the same replica on a disk are one replica to a reader: when
it appears or disappears, that is one change, from MISSING to OK or back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from logstore.rows import Kind
from logstore.watch import LOG_DIR_KEY, LogDirState, RowChange, RowState, WatchedLogDir, name_of_key
from reconciler.desired import BrokerKey, DesiredState
from reconciler.verdicts import CASES, Doubt, Judged, Verdict, compare
from reconciler.watch.wanted import WantedReplicas

BATCH = 4096
"""Greatest number of partitions that are judged at a time."""

Replica: TypeAlias = tuple[BrokerKey, str, int]
"""Broker, topic, partition."""


class VerdictChange(NamedTuple):
    """One verdict that differs from before."""

    log_dir: str | None
    """None: the replica is on no disk, and was on none before."""
    key: str | None
    """Key of the row, see :attr:`logstore.watch.RowChange.key`; None where ``log_dir`` is None."""
    broker: BrokerKey
    topic: str | None
    partition: int | None
    disk_topic_id: str | None
    metadata_topic_id: str | None
    """Topic ID of the wanted replica, or else of the topic's name."""
    before: str
    """A :class:`~reconciler.verdicts.Verdict`; "" for a new replica."""
    after: str
    """A :class:`~reconciler.verdicts.Verdict`; "" for a replica that is gone."""
    evidence: str
    """The sentence that goes with ``after``; "" for a replica that is gone."""
    condemned_as_of_ms: int | None = None
    """As of when the metadata speaks that condemns what lies on the disk, in ms since 1970, so that the verdict is in
    doubt where the disk is newer; None: nothing condemns it, or the time is not known."""

    @property
    def name(self) -> str | None:
        """Path below the log dir as Python decodes it: bytes that are not UTF-8 are surrogates."""
        return None if self.key is None else name_of_key(self.key)


class StandingVerdict(NamedTuple):
    """One verdict other than OK, as it stands now."""

    broker: BrokerKey
    log_dir: str | None
    """None: the replica is on no disk."""
    key: str | None
    """Key of the row; None where ``log_dir`` is None."""
    verdict: Verdict
    due_ms: int | None = None
    """When a purge may take it, in ms since 1970; None: it is not staged, or is due already."""


class _CurrentVerdict(NamedTuple):
    """The verdict on a replica that is on no disk."""

    verdict: str = ""
    evidence: str = ""
    metadata_topic_id: str | None = None


_GONE = _CurrentVerdict()


@dataclass(slots=True)
class _ChangeBatch:
    """New and removed rows since the last batch, and the changes found so far."""

    new: set[tuple[str, str]] = field(default_factory=set)
    """Log dir and key of new rows."""
    gone: dict[Replica, list[RowChange]] = field(default_factory=dict)
    """Removed rows by replica."""
    changes: list[VerdictChange] = field(default_factory=list)

    def taken(self) -> list[VerdictChange]:
        """Return the changes found so far, and forget them."""
        changes, self.changes = self.changes, []
        return changes


class VerdictWatch:
    """The reported verdict of each replica, and the changes since. Not thread-safe: of the thread that polls the watch.

    Methods yield changes in batches, as they are found: a lost log dir is reported before the 100,000 rows in it. Each
    iterator must be read to its end before the next method is called.
    """

    def __init__(self, disks: Mapping[str, WatchedLogDir], now_ms: Callable[[], int]) -> None:
        """Take the log dirs of a started watch, by path, and a clock in ms since 1970."""
        self._disks, self._now_ms = disks, now_ms
        self._states: Mapping[str, DesiredState] = {}
        self._wanted = WantedReplicas({}, ())
        self._brokers: dict[str, BrokerKey] = {}
        self._seen_states: dict[str, LogDirState] = {}
        self._reported: dict[str, dict[str, Verdict]] = {path: {} for path in disks}
        self._nowhere: dict[Replica, Verdict] = {}
        self._lost: set[str] = set()
        self._due: dict[tuple[str, str], int] = {}

    def start(self, states: Mapping[str, DesiredState]) -> Iterator[list[VerdictChange]]:
        """Judge everything for the first time; yield every verdict other than OK as a change from nothing.

        ``states``: as :func:`reconciler.desired.by_cluster` returns them.

        Raises:
            MetadataError: a saved state cannot be read any more.
        """
        self._take(states)
        batch = _ChangeBatch({(path, key) for path, disk in self._disks.items() for key in (LOG_DIR_KEY, *disk.known)})
        for changes in self._judge_all(batch):
            yield [change for change in changes if change.after != Verdict.OK]

    def rows_changed(self, changes: Sequence[RowChange]) -> Iterator[list[VerdictChange]]:
        """Judge the replicas that changed rows can affect.

        Args:
            changes: one for each row, as :meth:`logstore.watch.Watch.poll` returns them.
        """
        has_other_scope = any(self._seen_states.get(path) != disk.state for path, disk in self._disks.items())
        if has_other_scope:
            self._take(self._states)
        batch, replicas, alone = _ChangeBatch(), set[Replica](), list[tuple[str, str]]()
        for change in changes:
            if change.key == LOG_DIR_KEY:
                continue
            broker = self._brokers[change.log_dir]
            replicas.update((broker, *seen.replica) for seen in (change.before, change.after) if seen and seen.replica)
            if change.before is None:
                batch.new.add((change.log_dir, change.key))
            if change.after is None:
                self._row_is_gone(change, broker, batch)
            elif change.after.replica is None:
                alone.append((change.log_dir, change.key))
        if has_other_scope:
            yield from self._judge_all(batch, replicas)
        else:
            yield from self._judge_batches(replicas, alone, batch)

    def metadata_changed(self, states: Mapping[str, DesiredState]) -> Iterator[list[VerdictChange]]:
        """Use new desired states from now on, and judge the replicas of topics that differ.

        Raises:
            MetadataError: a saved state cannot be read any more; the former states stay in use.
        """
        before, batch = self._wanted, _ChangeBatch()
        self._take(states)
        touched = before.difference(self._wanted)
        if touched is None:
            yield from self._judge_all(batch)
            return
        replicas = {replica for replica in self._nowhere if replica[1] in touched}
        for broker in set(self._brokers.values()):
            replicas.update((broker, *wanted) for wanted in self._wanted.of_broker(broker) if wanted[0] in touched)
        for path, disk in self._disks.items():
            replicas.update(
                (self._brokers[path], *seen.replica)
                for _, seen in disk.known.items()
                if seen.replica and (seen.topic in touched or seen.topic_id in touched)
            )
        # A staged replica whose record is lost names no topic, but it has a topic ID and a partition.
        alone = [
            (path, key)
            for path, disk in self._disks.items()
            for key, seen in disk.known.items()
            if not seen.replica and seen.topic_id in touched
        ]
        yield from self._judge_batches(replicas, alone, batch)

    def time_passed(self) -> Iterator[list[VerdictChange]]:
        """Judge the staged replicas that have become due."""
        now, batch = self._now_ms(), _ChangeBatch()
        due = [place for place, due_ms in self._due.items() if due_ms <= now]
        for place in due:
            del self._due[place]
        if due:
            yield from self._judge_batches(set(), due, batch)

    def standing(self) -> Iterator[StandingVerdict]:
        """Yield every verdict other than OK that stands now; in a lost log dir all rows are as absent as it is."""
        for path, reported in self._reported.items():
            broker = self._brokers[path]
            if self._disks[path].state.lost:
                absent = reported.get(LOG_DIR_KEY, Verdict.ABSENT)
                for key in (LOG_DIR_KEY, *(key for key, _ in self._disks[path].known.items())):
                    yield StandingVerdict(broker, path, key, absent)
                continue
            for key, verdict in reported.items():
                yield StandingVerdict(broker, path, key, verdict, self._due.get((path, key)))
        for (broker, _, _), verdict in self._nowhere.items():
            yield StandingVerdict(broker, None, None, verdict)

    def _take(self, states: Mapping[str, DesiredState]) -> None:
        brokers = {path: _broker_of(disk.state) for path, disk in self._disks.items()}
        wanted = WantedReplicas(states, set(brokers.values()))
        self._states, self._brokers, self._wanted = states, brokers, wanted
        self._seen_states = {path: disk.state for path, disk in self._disks.items()}

    # Picking replicas to judge

    def _judge_all(self, batch: _ChangeBatch, also: Iterable[Replica] = ()) -> Iterator[list[VerdictChange]]:
        """Judge the log dirs, every row in them, and every wanted replica."""
        yield from self._judge_log_dirs(batch)
        replicas, alone = {*self._nowhere, *also}, list[tuple[str, str]]()
        for broker in set(self._brokers.values()):
            replicas.update((broker, *wanted) for wanted in self._wanted.of_broker(broker))
        for path, disk in self._disks.items():
            for key, seen in disk.known.items():
                if seen.replica:
                    replicas.add((self._brokers[path], *seen.replica))
                else:
                    alone.append((path, key))
        yield from self._judge_batches(replicas, alone, batch)
        self._lost = {path for path, disk in self._disks.items() if disk.state.lost}

    def _judge_batches(
        self, replicas: Collection[Replica], alone: Sequence[tuple[str, str]], batch: _ChangeBatch
    ) -> Iterator[list[VerdictChange]]:
        """Judge replicas, and rows that are judged alone, one broker and some thousands at a time."""
        for broker in sorted(set(self._brokers.values())):
            places = [place for place in alone if self._brokers[place[0]] == broker]
            for first in range(0, len(places), BATCH):
                self._judge(broker, set(), places[first : first + BATCH], batch)
                yield batch.taken()
        ordered = sorted(replicas)
        first = 0
        while first < len(ordered):
            broker = ordered[first][0]
            some = {replica for replica in ordered[first : first + BATCH] if replica[0] == broker}
            self._judge(broker, some, [], batch)
            first += len(some)
            yield batch.taken()
        yield batch.taken()

    def _judge_log_dirs(self, batch: _ChangeBatch) -> Iterator[list[VerdictChange]]:
        """Judge the log dirs themselves, then report the rows of log dirs that are lost now."""
        rows = [_mapping(disk, LOG_DIR_KEY, None) for disk in self._disks.values()]
        lost = []
        for judged in compare({}, rows, self._now_ms()):
            assert judged.observed is not None
            path, _ = judged.observed["place"]
            self._report_row((path, LOG_DIR_KEY), None, judged, batch)
            if self._disks[path].state.lost and path not in self._lost:
                lost.append((path, judged))
        yield batch.taken()
        for path, judged in lost:
            for key, seen in self._disks[path].known.items():
                before = self._reported[path].get(key, Verdict.OK)
                if before is not judged.verdict:
                    batch.changes.append(self._change((path, key), seen, (before, judged.verdict), judged.evidence))
                if len(batch.changes) >= BATCH:
                    yield batch.taken()
        yield batch.taken()

    def _judge(
        self, broker: BrokerKey, replicas: set[Replica], alone: Sequence[tuple[str, str]], batch: _ChangeBatch
    ) -> None:
        """Judge some replicas of one broker with all their rows, and some rows alone; report the differences."""
        disks = {path: disk for path, disk in self._disks.items() if self._brokers[path] == broker}
        rows, held_by_lost = _rows_of(disks, replicas, alone)
        names = {replica[1] for replica in replicas} | {seen.topic for seen in rows.values() if seen.topic}
        topic_ids = {seen.topic_id for seen in rows.values() if seen.topic_id}
        states = self._wanted.about(broker.cluster, names, topic_ids)
        mappings = [_mapping(disk, LOG_DIR_KEY, None) for disk in disks.values()]
        mappings += [_mapping(disks[path], key, seen) for (path, key), seen in rows.items()]
        nowhere: dict[Replica, Judged] = {}
        for judged in compare(states, mappings, self._now_ms()):
            if judged.observed is None:
                assert judged.wanted is not None
                nowhere[broker, judged.wanted["topic"], judged.wanted["partition"]] = judged
            elif judged.observed["place"] in rows:
                place = judged.observed["place"]
                self._report_row(place, rows[place], judged, batch)
        for replica in sorted(replicas):
            self._report_whereabouts(replica, None if replica in held_by_lost else nowhere.get(replica), batch)

    # Reporting differences

    def _report_row(self, place: tuple[str, str], seen: RowState | None, judged: Judged, batch: _ChangeBatch) -> None:
        path, key = place
        reported, verdict = self._reported[path], judged.verdict
        before: str = Verdict.ABSENT if path in self._lost and key != LOG_DIR_KEY else reported.get(key, Verdict.OK)
        if place in batch.new:
            batch.new.discard(place)
            replica = (self._brokers[path], *seen.replica) if seen and seen.replica else None
            was_nowhere = seen is not None and seen.kind == Kind.LIVE and replica in self._nowhere
            before = self._nowhere.pop(replica) if was_nowhere and replica is not None else ""
        if verdict is Verdict.OK:
            reported.pop(key, None)
        else:
            reported[key] = verdict
        if verdict is Verdict.STAGED and seen is not None and seen.due_ms is not None:
            self._due[place] = seen.due_ms
        if before != verdict:
            metadata_id = judged.row.wanted_topic_id or judged.row.name_topic_id or None
            change = self._change(place, seen, (before, verdict), judged.evidence, metadata_id)
            if CASES[judged.case].doubt is Doubt.CHANGED_SINCE_METADATA and change.broker.cluster in self._states:
                as_of_ms = self._states[change.broker.cluster].identity.as_of_ms
                change = change._replace(condemned_as_of_ms=as_of_ms)
            batch.changes.append(change)

    def _row_is_gone(self, change: RowChange, broker: BrokerKey, batch: _ChangeBatch) -> None:
        seen = change.before
        self._due.pop((change.log_dir, change.key), None)
        if seen is not None and seen.kind == Kind.LIVE and seen.replica:
            batch.gone.setdefault((broker, *seen.replica), []).append(change)
        else:
            self._report_gone(change, _GONE, batch)

    def _report_gone(self, change: RowChange, now: _CurrentVerdict, batch: _ChangeBatch) -> None:
        reported = self._reported[change.log_dir].pop(change.key, Verdict.OK)
        before = Verdict.ABSENT if change.log_dir in self._lost else reported
        if before != now.verdict:
            place = (change.log_dir, change.key)
            batch.changes.append(
                self._change(place, change.before, (before, now.verdict), now.evidence, now.metadata_topic_id)
            )

    def _report_whereabouts(self, replica: Replica, judged: Judged | None, batch: _ChangeBatch) -> None:
        """Report the removed rows of a replica, and whether the replica is wanted and missing now."""
        before, now = self._nowhere.pop(replica, ""), _GONE
        if judged is not None:
            self._nowhere[replica] = judged.verdict
            now = _CurrentVerdict(judged.verdict, judged.evidence, judged.row.wanted_topic_id or None)
        gone = batch.gone.pop(replica, [])
        if gone and not before:
            # A replica that was on the disk is missing now: one change, with its former place.
            self._report_gone(gone.pop(0), now, batch)
            before = now.verdict
        for change in gone:
            self._report_gone(change, _GONE, batch)
        if before != now.verdict:
            batch.changes.append(
                VerdictChange(None, None, *replica, None, now.metadata_topic_id, before, now.verdict, now.evidence)
            )

    def _change(
        self,
        place: tuple[str, str],
        seen: RowState | None,
        verdicts: tuple[str, str],
        evidence: str,
        metadata_topic_id: str | None = None,
    ) -> VerdictChange:
        path, key = place
        what = RowState(Kind.LOG_DIR) if seen is None else seen
        return VerdictChange(
            path,
            key,
            self._brokers[path],
            what.topic,
            what.partition,
            what.topic_id,
            metadata_topic_id,
            *verdicts,
            evidence,
        )


def _rows_of(
    disks: Mapping[str, WatchedLogDir], replicas: Collection[Replica], alone: Iterable[tuple[str, str]]
) -> tuple[dict[tuple[str, str], RowState], set[Replica]]:
    """Return the rows to judge, by log dir and key, and the replicas that were last seen in a lost log dir."""
    rows: dict[tuple[str, str], RowState] = {}
    held_by_lost: set[Replica] = set()
    for path, disk in disks.items():
        for replica in replicas:
            found = disk.known.of_replica(replica[1], replica[2])
            if not disk.state.lost:
                rows.update({(path, key): seen for key, seen in found})
            elif any(seen.kind == Kind.LIVE for _, seen in found):
                held_by_lost.add(replica)
    for path, key in alone:
        row = disks[path].known.get(key)
        if row is not None and not disks[path].state.lost:
            rows[path, key] = row
    return rows, held_by_lost


def _broker_of(state: LogDirState) -> BrokerKey:
    identity = state.identity
    if identity is None:
        return BrokerKey("", -1)
    return BrokerKey(identity.cluster_id or "", -1 if identity.node_id is None else identity.node_id)


def _mapping(disk: WatchedLogDir, key: str, seen: RowState | None) -> dict[str, Any]:
    """Return a row as ``compare`` takes it, with its place; ``seen`` is None for the log dir itself."""
    identity = disk.state.identity
    if seen is None:
        seen = RowState(Kind.LOG_DIR, metadata_state=disk.state.state, problem=disk.state.problem)
    directory_id = None if identity is None or identity.directory_id is None else str(identity.directory_id)
    return {
        "cluster_id": None if identity is None else identity.cluster_id,
        "node_id": None if identity is None else identity.node_id,
        "directory_id": directory_id,
        "place": (disk.path, key),
        **seen._asdict(),
    }
