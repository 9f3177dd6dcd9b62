"""Checks the staged replicas of a simulated cluster after every event: why they were staged, and why they are gone.

The staging directories are listed anew each time and compared with the store's index, so that the check relies neither
on the engine's reports nor on its memory::

    staged    never, even for a moment, a wanted replica that is the only one in sync and holds acknowledged records, or
              that was wanted since it was wanted first; with a due time that is not before the delay of its topic, and
              with its entries in the checkpoints
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
from typing import NamedTuple

from layout.directory_name import DirectoryKind, DirectoryName, parse, parse_staged
from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.scheme import STAGING_DIR
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, STALE_DELAY, LogStoreError, Settings
from logstore.fs.crash_disk import DiskVersion
from logstore.log_dir import read_offset_checkpoints
from logstore.purge import Purged
from logstore.store import Entry, LogStore
from reconciler.simulator.checks.returns import former_names, lost_offsets, shared_directories, wrongly_made
from reconciler.simulator.cluster import Member, Oracle
from reconciler.text import moment
from reconciler.verdicts import Verdict

_Identity = tuple[str, int | None]
"""A topic ID as text, and a partition."""

_ZERO_ID = str(TopicId(bytes(16)))


class _NewlyStaged(NamedTuple):
    """A replica that was staged since the last look.

    Attributes:
        record: of it.
        since_ms: when it was seen first, by the machine's time; None: that is not known.
        entries: the checkpoints that had an entry of it.
    """

    record: StagedRecord
    since_ms: int | None
    entries: frozenset[str]


@dataclass(slots=True)
class _LastLook:
    """The state of one machine when it was last checked.

    Attributes:
        store: of the broker; None: it was down.
        live: the store's index.
        staged: serial of a disk → name → record, of the replicas that are staged there.
        names: serial of a disk → name → when it was seen first, by the machine's time; None: it was staged while the
            broker was down or starting, so that the time is not known.
        versions: serial of a disk → its version when its names were read last.
        purged: records of the replicas that were reported as purged since.
        changed: whether its disks were changed since.
        was_down: whether the broker was down since.
        gone: serial of a disk and name of what was staged there, and then was not any more: a crash may bring it back.
        entries: serial of a disk and name of a replica that was just staged → the checkpoints that had an entry of it.
        held: serial of a disk → what was live on it, when it worked.
        at_start: what was live when the broker that is up was started.
        settings: of the store; what a topic of the same name brings along may have changed them within an event.
    """

    store: LogStore | None = None
    live: Mapping[tuple[str, int], Entry] = field(default_factory=dict)
    staged: dict[int, dict[str, StagedRecord | None]] = field(default_factory=dict)
    names: dict[int, dict[str, int | None]] = field(default_factory=dict)
    versions: dict[int, DiskVersion] = field(default_factory=dict)
    purged: list[StagedRecord] = field(default_factory=list)
    changed: bool = True
    was_down: bool = True
    gone: set[tuple[int, str]] = field(default_factory=set)
    entries: dict[tuple[int, str], frozenset[str]] = field(default_factory=dict)
    held: dict[int, frozenset[_Identity]] = field(default_factory=dict)
    at_start: frozenset[_Identity] = frozenset()
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

    def look_inside(self, member: Member, now_ms: int, *, everywhere: bool = False) -> Iterator[str]:
        """Check the names between two changes of a disk, within an event, and yield what is wrong.

        ``everywhere``: also on a disk that was not changed through its machine since the last look, as by hand.

        A replica that is staged and restored at once is seen only here. Only names are read, because nothing else can
        be read safely in the middle of a change.
        """
        disks, seen = member.disks, self._seen(member)
        seen.changed = True
        seen.was_down |= not member.running
        for number in disks.online:
            serial, version = disks.serial(number), disks.version(number)
            known = seen.names.setdefault(serial, {})
            if seen.versions.get(serial) == version and not everywhere:
                continue  # another disk was changed
            seen.versions[serial] = version
            names = _staged_names(f"{disks.log_dirs[number]}/{STAGING_DIR}")
            if names == known.keys():
                continue
            for name in sorted(known.keys() - names):
                del known[name]
                seen.gone.add((serial, name))
            for name in sorted(names - known.keys()):
                known[name] = None if seen.store is None else now_ms
                comes_back = seen.was_down and (serial, name) in seen.gone
                yield from self._check_staged(member, seen, name, comes_back=comes_back)
                if not comes_back:
                    seen.entries[serial, name] = _entries_of(seen, disks.log_dirs[number], name)

    def look(self, member: Member, now_ms: int, *, everywhere: bool = True) -> Iterator[str]:
        """Check the disks of a machine after an event, at its time, and yield what is wrong.

        ``everywhere``: also if no disk of the machine was changed since the last look, as by a fault.
        """
        seen = self._seen(member)
        if not (everywhere or seen.changed) and member.running and member.broker.store is seen.store:
            seen.settings = seen.store.settings
            return
        yield from self.look_inside(member, now_ms, everywhere=everywhere)
        seen.changed = False
        if not member.running:
            seen.store, seen.live, seen.at_start = None, {}, frozenset()
            return
        store, live = member.broker.store, member.broker.store.entries()
        came, went = self._changes(member, seen)
        same_life = store is seen.store
        for each in came:
            yield from self._check_due_time(member, each.record, each.since_ms, seen.settings)
            yield from _lost_entries(member, each)
        seen.settings = store.settings
        identities: set[_Identity] = {(entry.topic_id or _ZERO_ID, key[1]) for key, entry in live.items()}
        # While the broker was down, one may have been restored by hand, and at its start staged under another name.
        again = set() if same_life else {(str(each.record.topic_id), each.record.partition) for each in came}
        for name, record in went:
            undone = (str(record.topic_id), record.partition) in identities | again
            if record.due_ms > now_ms and not undone and record not in seen.purged:
                yield f"{member.name} lost {name}, {_too_early(record, now_ms)}"
        back = [record for _, record in went]
        if not same_life:
            seen.at_start = frozenset(identities)
        else:
            yield from _vanished(member, seen, live, identities)
            yield from wrongly_made(member, seen.live, live, back)
            yield from self._made_anew(member, seen, identities)
            yield from former_names(member, seen.live, live)
        _note_held(member, seen, live)
        seen.entries.clear()
        yield from lost_offsets(member, live, back)
        yield from shared_directories(member, live)
        seen.store, seen.live, seen.was_down = store, live, False
        seen.purged.clear()

    def _seen(self, member: Member) -> _LastLook:
        found = self._looks.get(member.node_id)
        if found is None:
            found = self._looks[member.node_id] = _LastLook()
        return found

    def _changes(self, member: Member, seen: _LastLook) -> tuple[list[_NewlyStaged], list[tuple[str, StagedRecord]]]:
        """The replicas staged since the last look; and the ones no longer staged; on the disks that work."""
        came: list[_NewlyStaged] = []
        went: list[tuple[str, StagedRecord]] = []
        disks = member.disks
        records: dict[tuple[str, str], StagedRecord | None] | None = None
        for number in disks.online:
            log_dir, serial = disks.log_dirs[number], disks.serial(number)
            known = seen.staged.setdefault(serial, {})
            names = seen.names[serial].keys()
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
                    if record is not None:
                        had = seen.entries.get((serial, name), frozenset())
                        came.append(_NewlyStaged(record, seen.names[serial].get(name), had))
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

    def _check_staged(self, member: Member, seen: _LastLook, name: str, *, comes_back: bool) -> Iterator[str]:
        """Check whether a directory that was just staged may be staged; ``comes_back``: a crash may have done it."""
        staged = parse_staged(name)
        for partition, replica in self._oracle.on(member.node_id).items():
            if (staged.topic_id, staged.partition) != (replica.topic_id, partition.partition):
                continue
            if replica.isr == (member.node_id,) and self._acknowledged(partition) and not _is_copied(member, partition):
                yield (
                    f"{member.name} staged {partition}, the only replica in sync, which holds acknowledged records of "
                    f"topic ID {replica.topic_id}"
                )
            elif self._must_stay(member, seen, replica.topic_id, partition.partition) and not (
                comes_back or _is_copied(member, partition)
            ):
                yield f"{member.name} staged {partition} of topic ID {replica.topic_id}, which was wanted all the time"

    def _must_stay(self, member: Member, seen: _LastLook, topic_id: TopicId | None, number: int) -> bool:
        """Whether a replica was wanted all the time, and is named by every request that must name all.

        The FULL request to a broker that registers lacks a partition that has no leader yet. What the broker has of it
        already, as a plan made it, is staged then, until the request that names it brings it back.
        """
        if topic_id is None or not self._oracle.is_steady(topic_id, number, member.node_id):
            return False
        return (str(topic_id), number) not in seen.at_start or self._was_led(member, topic_id, number)

    def _was_led(self, member: Member, topic_id: TopicId, number: int) -> bool:
        """Whether a partition had a leader before a broker registered, so that it is nothing new to the broker."""
        return self._oracle.was_led(topic_id, number, before=self._oracle.registered(member.node_id))

    def _made_anew(self, member: Member, seen: _LastLook, identities: set[_Identity]) -> Iterator[str]:
        """Replicas that are made though they lie on a disk that is away, and were wanted all the time."""
        disks = member.disks
        away = {identity for number in disks.offline for identity in seen.held.get(disks.serial(number), ())}
        before = {(entry.topic_id or _ZERO_ID, key[1]) for key, entry in seen.live.items()}
        for topic_id, number in sorted((identities & away) - before, key=str):
            if number is None or not self._oracle.is_steady(TopicId.parse(topic_id), number, member.node_id):
                continue
            if self._was_led(member, TopicId.parse(topic_id), number):
                yield f"{member.name} made {number} of topic ID {topic_id} anew, which lies on a disk that is away"


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


def _entries_of(seen: _LastLook, log_dir: str, name: str) -> frozenset[str]:
    """Which checkpoints have an entry of a replica that is just being staged: the entries go later."""
    staged = parse_staged(name)
    of = next((key for key, entry in seen.live.items() if _is_of(entry, key[1], staged)), None)
    if of is None:
        return frozenset()
    found = read_offset_checkpoints(log_dir).entries
    return frozenset(file for file in found if of in found[file])


def _is_of(entry: Entry, number: int, staged: DirectoryName) -> bool:
    return (entry.topic_id, number) == (str(staged.topic_id), staged.partition)


def _lost_entries(member: Member, staged: _NewlyStaged) -> Iterator[str]:
    record, missing = staged.record, sorted(staged.entries - staged.record.checkpoints.keys())
    if missing and not any(each.leave_unclean for each in member.broker.store.log_dirs):
        yield f"{member.name} staged {record.topic}-{record.partition} without its entry in {', '.join(missing)}"


def _note_held(member: Member, seen: _LastLook, live: Mapping[tuple[str, int], Entry]) -> None:
    """Note what is live on each disk that works; of one that does not, what was live on it before."""
    disks, store = member.disks, member.broker.store
    for number in disks.online:
        path = disks.log_dirs[number]
        if path not in store.offline:
            here = ((entry.topic_id or _ZERO_ID, key[1]) for key, entry in live.items() if entry.log_dir == path)
            seen.held[disks.serial(number)] = frozenset(here)


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
