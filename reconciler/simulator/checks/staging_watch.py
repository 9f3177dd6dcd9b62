"""Checks the staged replicas of a simulated cluster after every event: why they were staged, and why they are gone.

The staging directories are listed anew each time and compared with the store's index, so that the check relies neither
on the engine's reports nor on its memory::

    staged    never, even for a moment, a wanted replica that is the only one in sync and holds acknowledged records;
              with a due time that is not before the delay of its topic
    gone      purged, and due by its machine's clock; or live again under its topic ID
    live      until it is staged: a replica never vanishes, and no other one takes its place
    back      what comes live is restored where it lies staged, with its checkpoint entries (``returns``)

Changes that a crash or a failed disk undoes are checked when the broker is up again.
Source: DESIGN §5; KIP516-5, KIP516-6, KIP516-7.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from layout.directory_name import DirectoryKind, parse, parse_staged
from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.scheme import STAGING_DIR
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, STALE_DELAY, LogStoreError, Settings
from logstore.purge import Purged
from logstore.store import Entry, LogStore
from reconciler.simulator.checks.returns import lost_offsets, shared_directories, wrongly_made
from reconciler.simulator.cluster import Member, Oracle
from reconciler.text import moment
from reconciler.verdicts import Verdict

_Identity = tuple[str, int | None]
"""A topic ID as text, and a partition."""

_ZERO_ID = str(TopicId(bytes(16)))


@dataclass(slots=True)
class _LastLook:
    """The state of one machine when it was last checked.

    Attributes:
        store: of the broker; None: it was down.
        live: the store's index.
        staged: serial of a disk → name → record, of the replicas that are staged there.
        names: serial of a disk → name → when it was seen first, by the machine's time; None: it was staged while the
            broker was down or starting, so that the time is not known.
        purged: records of the replicas that were reported as purged since.
        changed: whether its disks were changed since.
        settings: of the store; what a topic of the same name brings along may have changed them within an event.
    """

    store: LogStore | None = None
    live: Mapping[tuple[str, int], Entry] = field(default_factory=dict)
    staged: dict[int, dict[str, StagedRecord | None]] = field(default_factory=dict)
    names: dict[int, dict[str, int | None]] = field(default_factory=dict)
    purged: list[StagedRecord] = field(default_factory=list)
    changed: bool = True
    settings: Settings = field(default_factory=Settings)


class StagingWatch:
    """Watches the staging directories of all machines."""

    def __init__(self, oracle: Oracle, acknowledged: Callable[[TopicPartition], bool]) -> None:
        """Begin; every machine is new.

        ``acknowledged`` says whether a partition, under its present topic ID, holds an acknowledged record.
        """
        self._oracle, self._acknowledged = oracle, acknowledged
        self._looks: dict[int, _LastLook] = {}

    def purged(self, member: Member, purged: Purged, now_ms: int) -> Iterator[str]:
        """Note a purge that a broker reports, at its machine's time, and yield what is wrong with it."""
        record = purged.record
        if record is None:
            return  # an empty directory: its replica was reported before, or the next look misses it
        self._seen(member).purged.append(record)
        if record.due_ms > now_ms:
            yield f"{member.name} purged {purged.location}, {_too_early(record, now_ms)}"

    def look_inside(self, member: Member, now_ms: int) -> Iterator[str]:
        """Check the names between two changes of a disk, within an event, and yield what is wrong.

        A replica that is staged and restored at once is seen only here. Only names are read, because nothing else can
        be read safely in the middle of a change.
        """
        disks, seen = member.disks, self._seen(member)
        seen.changed = True
        for number in disks.online:
            known = seen.names.setdefault(disks.serial(number), {})
            names = _staged_names(f"{disks.log_dirs[number]}/{STAGING_DIR}")
            if names == known.keys():
                continue
            for name in sorted(known.keys() - names):
                del known[name]
            for name in sorted(names - known.keys()):
                known[name] = None if seen.store is None else now_ms
                yield from self._check_staged(member, name)

    def look(self, member: Member, now_ms: int, *, everywhere: bool = True) -> Iterator[str]:
        """Check the disks of a machine after an event, at its time, and yield what is wrong.

        ``everywhere``: also if no disk of the machine was changed since the last look, as by a fault.
        """
        seen = self._seen(member)
        if not (everywhere or seen.changed) and member.running and member.broker.store is seen.store:
            seen.settings = seen.store.settings
            return
        yield from self.look_inside(member, now_ms)
        seen.changed = False
        if not member.running:
            seen.store, seen.live = None, {}
            return
        store, live = member.broker.store, member.broker.store.entries()
        came, went = self._changes(member, seen)
        same_life = store is seen.store
        for record, since_ms in came:
            yield from self._check_due_time(member, record, since_ms, seen.settings)
        seen.settings = store.settings
        identities: set[_Identity] = {(entry.topic_id or _ZERO_ID, key[1]) for key, entry in live.items()}
        # While the broker was down, one may have been restored by hand, and at its start staged under another name.
        again = set() if same_life else {(str(record.topic_id), record.partition) for record, _ in came}
        for name, record in went:
            undone = (str(record.topic_id), record.partition) in identities | again
            if record.due_ms > now_ms and not undone and record not in seen.purged:
                yield f"{member.name} lost {name}, {_too_early(record, now_ms)}"
        back = [record for _, record in went]
        if same_life:
            yield from _vanished(member, seen, live, identities)
            yield from wrongly_made(member, seen.live, live, back)
        yield from lost_offsets(member, live, back)
        yield from shared_directories(member, live)
        seen.store, seen.live = store, live
        seen.purged.clear()

    def _seen(self, member: Member) -> _LastLook:
        found = self._looks.get(member.node_id)
        if found is None:
            found = self._looks[member.node_id] = _LastLook()
        return found

    def _changes(
        self, member: Member, seen: _LastLook
    ) -> tuple[list[tuple[StagedRecord, int | None]], list[tuple[str, StagedRecord]]]:
        """The replicas staged since the last look, and when; and the ones no longer staged; on the disks that work."""
        came: list[tuple[StagedRecord, int | None]] = []
        went: list[tuple[str, StagedRecord]] = []
        disks = member.disks
        records: dict[tuple[str, str], StagedRecord | None] | None = None
        for number in disks.online:
            log_dir, serial = disks.log_dirs[number], disks.serial(number)
            known = seen.staged.setdefault(serial, {})
            names = _staged_names(f"{log_dir}/{STAGING_DIR}")
            same = names == known.keys() and member.broker.store is seen.store
            if same or log_dir in member.broker.store.offline:
                continue
            if records is None:
                records = _staged_records(member.broker.store)
            for name in sorted(names):
                if (log_dir, name) not in records:
                    continue  # it is being staged or purged
                record = records[log_dir, name]
                # While the broker was down, one may have been restored by hand, and at its start staged again.
                if name not in known or known[name] != record:
                    known[name] = record
                    came += [] if record is None else [(record, seen.names[serial].get(name))]
            for name in sorted(known.keys() - names):
                former = known.pop(name)
                went += [] if former is None else [(f"{STAGING_DIR}/{name}", former)]
        return came, went

    def _check_due_time(
        self, member: Member, record: StagedRecord, since_ms: int | None, before: Settings
    ) -> Iterator[str]:
        partition = TopicPartition(record.topic, record.partition)
        setting = STALE_DELAY if record.verdict in list(Verdict) else DELETE_DELAY
        began_ms = record.staged_ms if since_ms is None else since_ms
        soonest_ms = began_ms + min(each.of(record.topic, setting) for each in (before, member.broker.store.settings))
        if record.due_ms < soonest_ms:
            early_ms = soonest_ms - record.due_ms
            yield f"{member.name} staged {partition}, due at {moment(record.due_ms)}, {early_ms} ms too early"

    def _check_staged(self, member: Member, name: str) -> Iterator[str]:
        """Check whether a directory that was just staged may be staged."""
        staged = parse_staged(name)
        for partition, replica in self._oracle.on(member.node_id).items():
            if (staged.topic_id, staged.partition) != (replica.topic_id, partition.partition):
                continue
            if replica.isr == (member.node_id,) and self._acknowledged(partition) and not _is_copied(member, partition):
                yield (
                    f"{member.name} staged {partition}, the only replica in sync, which holds acknowledged records of "
                    f"topic ID {replica.topic_id}"
                )


def _too_early(record: StagedRecord, now_ms: int) -> str:
    """Say by how much a directory went before it was due; both times are of the machine's clock."""
    return f"{record.due_ms - now_ms} ms too early: it was due at {moment(record.due_ms)}"


def _vanished(
    member: Member, seen: _LastLook, live: Mapping[tuple[str, int], Entry], identities: set[_Identity]
) -> Iterator[str]:
    """Replicas that were live, and are now neither live nor staged nor purged."""
    staged = [parse_staged(name) for names in seen.names.values() for name in names]
    here = identities | {(str(each.topic_id), each.partition) for each in staged}
    here |= {(str(record.topic_id), record.partition) for record in seen.purged}
    for (topic, number), entry in seen.live.items():
        now = live.get((topic, number))
        got_its_id = now is not None and entry.topic_id is None and now[:2] == entry[:2]
        if now != entry and not got_its_id and (entry.topic_id or _ZERO_ID, number) not in here:
            yield f"{member.name} let go of {topic}-{number} of topic ID {entry.topic_id}, and did not stage it"


def _is_copied(member: Member, partition: TopicPartition) -> bool:
    """Whether a whole copy waits on another disk, so that the original of a move may be staged (KIP516-3)."""
    names = (name for number in member.disks.online for name in _staged_names(member.disks.log_dirs[number]))
    futures = (each for each in map(parse, names) if each.kind is DirectoryKind.FUTURE)
    return any((each.topic, each.partition) == (partition.local_topic, partition.partition) for each in futures)


def _staged_names(path: str) -> set[str]:
    try:
        return set(os.listdir(path))
    except FileNotFoundError:
        return set()


def _staged_records(store: LogStore) -> dict[tuple[str, str], StagedRecord | None]:
    """Log dir and name → record, of all staged replicas."""
    try:
        return {(each.log_dir, each.name): each.record for each in store.staged()}
    except LogStoreError:
        return {}  # a disk failed just now: the others are checked next time
