"""Verdicts that change: from rows and metadata that changed to what the case table says now, and what it said before.

Only what a change can touch is judged again. The joined row of a partition hangs on the rows of the same broker, topic
and partition, and on what the metadata says of the topic's name and ID; so those rows and that part of the metadata are
picked, and handed to ``compare``. Nothing is decided here but one thing: everything in a log dir that is *lost* has the
verdict of the log dir itself, ABSENT (the table's first line), until it is back.

Of verdicts, only those that are not OK are kept. A replica that is nowhere and one that lies on a disk are the same one
to a reader: where the one turns into the other, that is one change, from MISSING to OK or back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from logstore.rows import Kind
from logstore.watch import LOG_DIR_KEY, LogDirState, RowChange, RowState, WatchedLogDir, name_of_key
from reconciler.desired import BrokerKey, DesiredState
from reconciler.verdicts import Judged, Verdict, compare
from reconciler.watch.wanted import WantedReplicas

BATCH = 4096
"""Partitions that are judged at a time."""

Replica: TypeAlias = tuple[BrokerKey, str, int]
"""Broker, topic, partition."""


class VerdictChange(NamedTuple):
    """One verdict that differs from what it was."""

    log_dir: str | None
    """None: the replica is nowhere, and was nowhere."""
    key: str | None
    """Of the row, see :attr:`logstore.watch.RowChange.key`; None as for the log dir."""
    broker: BrokerKey
    topic: str | None
    partition: int | None
    disk_topic_id: str | None
    metadata_topic_id: str | None
    """Of the wanted replica, else of the topic's name."""
    before: str
    """A :class:`~reconciler.verdicts.Verdict`, or "" when it was not there."""
    after: str
    """The same, or "" when it is gone."""
    evidence: str
    """Why the verdict is what it is; "" when it is gone."""

    @property
    def name(self) -> str | None:
        """Below the log dir, as Python gives it: bytes that are not UTF-8 are surrogates."""
        return None if self.key is None else name_of_key(self.key)


class _CurrentVerdict(NamedTuple):
    """What is to be told of a replica that is nowhere."""

    verdict: str = ""
    evidence: str = ""
    metadata_topic_id: str | None = None


_GONE = _CurrentVerdict()


@dataclass(slots=True)
class _ChangeBatch:
    """What came and went since the last time, and what is told of it."""

    new: set[tuple[str, str]] = field(default_factory=set)
    """Log dir and key of rows that were not there."""
    gone: dict[Replica, list[RowChange]] = field(default_factory=dict)
    """Rows that are gone."""
    told: list[VerdictChange] = field(default_factory=list)

    def taken(self) -> list[VerdictChange]:
        """What is told of it so far, once."""
        told, self.told = self.told, []
        return told


class VerdictWatch:
    """What was told of each replica, and what differs now. Not thread-safe: of the thread that polls the watch.

    Its methods give changes in batches, as they are found: a log dir that went is told before the 100,000 rows in it
    are. Each must be read to its end before the next is called.
    """

    def __init__(self, disks: Mapping[str, WatchedLogDir], now_ms: Callable[[], int]) -> None:
        """Take the log dirs of a watch that was started, by path, and a clock in ms since 1970."""
        self._disks, self._now_ms = disks, now_ms
        self._states: Mapping[str, DesiredState] = {}
        self._wanted = WantedReplicas({}, ())
        self._brokers: dict[str, BrokerKey] = {}
        self._seen_states: dict[str, LogDirState] = {}
        self._told: dict[str, dict[str, Verdict]] = {path: {} for path in disks}
        self._nowhere: dict[Replica, Verdict] = {}
        self._lost: set[str] = set()
        self._due: dict[tuple[str, str], int] = {}

    def start(self, states: Mapping[str, DesiredState]) -> Iterator[list[VerdictChange]]:
        """Judge everything for the first time; every verdict that is not OK, as a change from nothing.

        Args:
            states: as :func:`reconciler.desired.by_cluster` gives them.

        Raises:
            MetadataError: a saved state cannot be read any more.
        """
        self._take(states)
        batch = _ChangeBatch({(path, key) for path, disk in self._disks.items() for key in (LOG_DIR_KEY, *disk.known)})
        for told in self._judge_all(batch):
            yield [change for change in told if change.after != Verdict.OK]

    def rows_changed(self, changes: Sequence[RowChange]) -> Iterator[list[VerdictChange]]:
        """Judge what changed rows can touch.

        Args:
            changes: one for each row, as :meth:`logstore.watch.Watch.poll` gives them.
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
        """Go by another desired state from now on, and judge what the two say differently.

        Raises:
            MetadataError: a saved state cannot be read any more; then everything stays as it was.
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
        # Staged replicas whose record is lost tell no topic, but they have an ID and a partition.
        alone = [
            (path, key)
            for path, disk in self._disks.items()
            for key, seen in disk.known.items()
            if not seen.replica and seen.topic_id in touched
        ]
        yield from self._judge_batches(replicas, alone, batch)

    def time_passed(self) -> Iterator[list[VerdictChange]]:
        """Judge what became due by now."""
        now, batch = self._now_ms(), _ChangeBatch()
        due = [place for place, due_ms in self._due.items() if due_ms <= now]
        for place in due:
            del self._due[place]
        if due:
            yield from self._judge_batches(set(), due, batch)

    def _take(self, states: Mapping[str, DesiredState]) -> None:
        brokers = {path: _broker_of(disk.state) for path, disk in self._disks.items()}
        wanted = WantedReplicas(states, set(brokers.values()))
        self._states, self._brokers, self._wanted = states, brokers, wanted
        self._seen_states = {path: disk.state for path, disk in self._disks.items()}

    # Picking what to judge

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
        """Judge replicas, and rows that need no others to be judged, one broker and some thousands at a time."""
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
        """Judge the log dirs themselves, and then tell what was in those that are lost now."""
        rows = [_mapping(disk, LOG_DIR_KEY, None) for disk in self._disks.values()]
        lost = []
        for judged in compare({}, rows, self._now_ms()):
            assert judged.observed is not None
            path, _ = judged.observed["place"]
            self._tell_row((path, LOG_DIR_KEY), None, judged, batch)
            if self._disks[path].state.lost and path not in self._lost:
                lost.append((path, judged))
        yield batch.taken()
        for path, judged in lost:
            for key, seen in self._disks[path].known.items():
                before = self._told[path].get(key, Verdict.OK)
                if before is not judged.verdict:
                    batch.told.append(self._change((path, key), seen, (before, judged.verdict), judged.evidence))
                if len(batch.told) >= BATCH:
                    yield batch.taken()
        yield batch.taken()

    def _judge(
        self, broker: BrokerKey, replicas: set[Replica], alone: Sequence[tuple[str, str]], batch: _ChangeBatch
    ) -> None:
        """Judge some replicas of one broker with all rows of them, and some rows by themselves; tell what differs."""
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
                self._tell_row(place, rows[place], judged, batch)
        for replica in sorted(replicas):
            self._tell_whereabouts(replica, None if replica in held_by_lost else nowhere.get(replica), batch)

    # Telling what differs

    def _tell_row(self, place: tuple[str, str], seen: RowState | None, judged: Judged, batch: _ChangeBatch) -> None:
        path, key = place
        told, verdict = self._told[path], judged.verdict
        before: str = Verdict.ABSENT if path in self._lost and key != LOG_DIR_KEY else told.get(key, Verdict.OK)
        if place in batch.new:
            batch.new.discard(place)
            replica = (self._brokers[path], *seen.replica) if seen and seen.replica else None
            was_nowhere = seen is not None and seen.kind == Kind.LIVE and replica in self._nowhere
            before = self._nowhere.pop(replica) if was_nowhere and replica is not None else ""
        if verdict is Verdict.OK:
            told.pop(key, None)
        else:
            told[key] = verdict
        if verdict is Verdict.STAGED and seen is not None and seen.due_ms is not None:
            self._due[place] = seen.due_ms
        if before != verdict:
            metadata_id = judged.row.wanted_topic_id or judged.row.name_topic_id or None
            batch.told.append(self._change(place, seen, (before, verdict), judged.evidence, metadata_id))

    def _row_is_gone(self, change: RowChange, broker: BrokerKey, batch: _ChangeBatch) -> None:
        seen = change.before
        self._due.pop((change.log_dir, change.key), None)
        if seen is not None and seen.kind == Kind.LIVE and seen.replica:
            batch.gone.setdefault((broker, *seen.replica), []).append(change)
        else:
            self._tell_gone(change, _GONE, batch)

    def _tell_gone(self, change: RowChange, now: _CurrentVerdict, batch: _ChangeBatch) -> None:
        told = self._told[change.log_dir].pop(change.key, Verdict.OK)
        before = Verdict.ABSENT if change.log_dir in self._lost else told
        if before != now.verdict:
            place = (change.log_dir, change.key)
            batch.told.append(
                self._change(place, change.before, (before, now.verdict), now.evidence, now.metadata_topic_id)
            )

    def _tell_whereabouts(self, replica: Replica, judged: Judged | None, batch: _ChangeBatch) -> None:
        """Tell what went of a replica, and whether it is wanted and nowhere now."""
        before, now = self._nowhere.pop(replica, ""), _GONE
        if judged is not None:
            self._nowhere[replica] = judged.verdict
            now = _CurrentVerdict(judged.verdict, judged.evidence, judged.row.wanted_topic_id or None)
        gone = batch.gone.pop(replica, [])
        if gone and not before:
            # What lay on the disk is nowhere now: one change, told of where it lay.
            self._tell_gone(gone.pop(0), now, batch)
            before = now.verdict
        for change in gone:
            self._tell_gone(change, _GONE, batch)
        if before != now.verdict:
            batch.told.append(
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
    """The rows to judge, by log dir and key; and the replicas that lie in a lost log dir, as far as one knows."""
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
    """A row as ``compare`` takes it, with its place; None for the log dir itself."""
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
