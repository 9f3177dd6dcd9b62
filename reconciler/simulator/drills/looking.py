"""Reads the disks of a drilled store anew and compares them, and what the store says, with what it was given to keep.

::

    disks    each replica lies in one directory, whole, where it should be or was before a change that failed; nothing
             else lies there
    record   what is staged has its line, with its times and its checkpoint entries
    offsets  what is live has its checkpoint entries, and nothing else has any
    store    it finds what is live, by name and topic ID, and nothing else

Directories, names and checkpoints are read here by other code than the engine's own. Source: DESIGN §5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from layout import partition_metadata
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.ids import TopicId
from layout.ours import MOVE_RECORD
from layout.scheme import MARKER_FILE, STAGING_DIR, Scheme
from layout.topic import TopicPartition
from logstore import KafkaError, LogStore
from logstore.staging import Staged
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import STRANGERS, Bench
from reconciler.simulator.drills.kept_replicas import FoundDirectory, Kept, State, Where

ZERO_ID = TopicId(bytes(16))
_PREFIX_LETTERS = 2
_DRAFT, _COPY = "-delete", "-future"

_Entries = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Log dir → partition → checkpoint → offset."""


def path_of(scheme: Scheme | None, at: TopicPartition, topic_id: TopicId | None) -> str:
    """Where a live replica should lie below its log dir."""
    if scheme is Scheme.BY_TOPIC_ID:
        digits = (topic_id or ZERO_ID).hex
        return f"{digits[:_PREFIX_LETTERS]}/{digits}_{at.partition}"
    return f"{at.topic.replace(':', '/')}-{at.partition}"


def offsets_of(log_dir: str, at: TopicPartition) -> dict[str, int]:
    """Read the checkpoint entries of one partition from the files: file → offset."""
    return _offsets(log_dir).get(str(at), {})


def settle(bench: Bench, kept: list[Kept], together: Sequence[Kept] = (), *, troubled: bool = False) -> None:
    """Find each replica, and know from then on what it is.

    Args:
        bench: with an open store.
        kept: what it was given to keep; those that are found to be nowhere are taken out.
        together: were changed all or none.
        troubled: a change failed since the store was opened: until the next open drafts and copies may be left, and
            checkpoints behind.

    Raises:
        BrokenInvariantError: something is not as it was, nor as it should be.
    """
    look = _Look(bench, kept, troubled=troubled)
    chosen = dict(look.places())
    for replica in kept:
        if replica.number not in chosen:
            chosen[replica.number] = _nowhere(replica)
    changed = [each for each in together if len(set(each.states)) > 1]
    if changed and not set[int].intersection(*(set(chosen[each.number]) for each in changed)):
        raise BrokenInvariantError(f"a change of {', '.join(map(str, together))} was done for some of them only")
    for replica in kept:
        replica.states = [replica.states[place] for place in chosen[replica.number]]
    kept[:] = [each for each in kept if each.state.where is not Where.NOWHERE]
    if look.offsets is not None:
        _forget_lost_entries(kept, look.offsets)
        if bench.scheme is not Scheme.BY_TOPIC_ID:
            # There a line that is left over of a topic that was renamed since may bring its old entries back.
            _check_entries(kept, look.offsets)
    _check_store(bench.store, bench, kept)


def _nowhere(replica: Kept) -> list[int]:
    """Give the states in which nothing is found of a replica."""
    nowhere = [number for number, state in enumerate(replica.states) if state.where is Where.NOWHERE]
    if not nowhere:
        raise BrokenInvariantError(f"{replica} is lost, and should be {' or '.join(map(str, replica.states))}")
    return nowhere


def _has_twin(replica: Kept, kept: Sequence[Kept]) -> bool:
    """Whether another one of its partition and topic ID is kept.

    Then nobody can tell whose line of a ledger is left over after a crash, and the entries in it are not given back.
    """
    own = replica.topic_id, replica.state.at.partition
    return sum((each.topic_id, each.state.at.partition) == own for each in kept) > 1


def _forget_lost_entries(kept: Sequence[Kept], offsets: _Entries) -> None:
    for each in kept:
        if each.is_live and each.state.offsets and not offsets[each.state.log_dir].get(str(each.state.at)):
            each.states = [replace(state, offsets=()) for state in each.states]


class _Look:
    """One look at all disks.

    Attributes:
        offsets: the checkpoint entries on the disks; None: they may be behind.
    """

    def __init__(self, bench: Bench, kept: Sequence[Kept], *, troubled: bool) -> None:
        self._bench, self._kept, self._troubled = bench, kept, troubled
        self._staged = {(each.log_dir, each.name): each for each in bench.store.staged()}
        self.offsets: _Entries | None = None if troubled else {path: _offsets(path) for path in bench.log_dirs}

    def places(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the number of each replica that lies somewhere, and the numbers of the states in which it may be."""
        seen = set[int]()
        for path in self._bench.log_dirs:
            every = list(_directories(path))
            if self._bench.scheme is None and not {each.path for each in every}.issuperset(STRANGERS):
                raise BrokenInvariantError(f"{path} has lost one of {', '.join(STRANGERS)}, which a broker left there")
            for found in every:
                if found.path in STRANGERS:
                    continue
                if found.path.endswith(_DRAFT) and (self._troubled or self._bench.scheme is None):
                    continue
                if found.path.endswith(_COPY) and self._troubled:
                    continue  # of a move that was refused, whose copy could not be removed either: the next open does
                replica, places = self._whose(found)
                if replica.number in seen:
                    raise BrokenInvariantError(f"{replica} lies in two places; one is {found}")
                seen.add(replica.number)
                yield replica.number, places

    def _whose(self, found: FoundDirectory) -> tuple[Kept, list[int]]:
        """Give the replica that a directory is, and the numbers of the states in which it may be."""
        number = found.number
        own = [each for each in self._kept if each.number == number]
        own += [each for each in self._kept if number is not None and each.copy_of == number]
        if number is None:
            own = [
                each for each in self._kept if not each.is_made or any(one.where is Where.BEGUN for one in each.states)
            ]
        twins, wrong = [each for each in own if _has_twin(each, self._kept)], list[str]()
        for replica, lenient in (*((each, False) for each in own), *((each, True) for each in twins)):
            places = list[int]()
            for place, state in enumerate(replica.states):
                problem = next(self._differences(found, replica, state, may_lack_entries=lenient), None)
                if problem is None:
                    replica.states[place] = replace(state, log_dir=found.log_dir)
                    places.append(place)
                else:
                    wrong.append(f"{replica} as {state}: {problem}")
            if places:
                return replica, places
        raise BrokenInvariantError(f"{found} should not lie there so; {'; '.join(wrong[:4]) or 'nobody made it'}")

    def _differences(
        self, found: FoundDirectory, replica: Kept, state: State, *, may_lack_entries: bool
    ) -> Iterator[str]:
        if state.where is Where.NOWHERE or (state.log_dir and state.log_dir != found.log_dir):
            yield "it should not be in this log dir"
            return
        if (state.where is Where.LIVE) is found.is_staged:
            yield "it is staged" if found.is_staged else "it is live"
        # A move whose end is put off has its record until the next open, and is staged with it before that, perhaps.
        ignored = (partition_metadata.FILE_NAME, *((MOVE_RECORD,) if self._troubled or found.is_staged else ()))
        files = {name: data for name, data in found.files.items() if name not in ignored}
        if state.where is Where.BEGUN:
            if not files.keys() <= replica.files.keys():
                yield f"it has {', '.join(sorted(files.keys() - replica.files.keys()))}"
        elif replica.is_made and files != replica.files:
            names = [name for name in files.keys() | replica.files.keys() if files.get(name) != replica.files.get(name)]
            yield f"its files differ: {', '.join(sorted(names))}"
        if state.where is Where.LIVE:
            yield from _metadata_differences(found, replica, state, self._bench.scheme)
            entries: Mapping[str, int] = dict(state.offsets)
            if self.offsets is not None:
                entries = self.offsets[found.log_dir].get(str(state.at), {})
            if entries != dict(state.offsets) and not (
                may_lack_entries and entries.items() <= dict(state.offsets).items()
            ):
                yield f"its checkpoint entries are {entries}"
        else:
            staged = self._staged.get((found.log_dir, os.path.basename(found.path)))
            number = os.path.basename(found.path).rpartition(".")[2]
            if number.isdigit() and int(number) > self._bench.stagings[replica.topic_id, state.at.partition]:
                yield f"its name has number {number}, and so many times it was never staged"
            yield from _staged_differences(staged, replica, state)


def _metadata_differences(found: FoundDirectory, replica: Kept, state: State, scheme: Scheme | None) -> Iterator[str]:
    path = path_of(scheme, state.at, replica.topic_id)
    if found.path != path:
        yield f"it should lie in {path}"
    data = found.files.get(partition_metadata.FILE_NAME)
    text = "" if data is None else data.decode("utf-8", "replace")
    if (data is None) is not (replica.topic_id is None) or (replica.topic_id and str(replica.topic_id) not in text):
        yield f"its {partition_metadata.FILE_NAME} holds {text!r}"
    if scheme is not None and data is not None and f'"{state.at.topic}"' not in text:
        yield f"its {partition_metadata.FILE_NAME} holds {text!r}, and it is of {state.at.topic}"


def _staged_differences(staged: Staged | None, replica: Kept, state: State) -> Iterator[str]:
    record = None if staged is None else staged.record
    if staged is None or record is None:
        yield f"it has no record: {None if staged is None else staged.problem}"
        return
    if staged.in_doubt or staged.may_be_partly_purged is not (state.where is Where.BEGUN):
        yield "it is said to be half purged, or in doubt, and is not, or the other way round"
    said = (TopicPartition(record.topic, record.partition), record.topic_id, record.staged_ms, record.due_ms)
    if said != (state.at, replica.topic_id or ZERO_ID, state.staged_ms, state.due_ms):
        yield f"its record says {said}"
    if dict(record.checkpoints) != dict(state.offsets):
        yield f"its record has the checkpoint entries {dict(record.checkpoints)}"


def _check_entries(kept: Sequence[Kept], offsets: _Entries) -> None:
    for log_dir, entries in offsets.items():
        live = {str(each.state.at) for each in kept if each.is_live and each.state.log_dir == log_dir}
        if over := sorted(entries.keys() - live):
            raise BrokenInvariantError(
                f"{log_dir} has checkpoint entries of {', '.join(over)}, which is not live there"
            )


def _check_store(store: LogStore, bench: Bench, kept: Sequence[Kept]) -> None:
    """Compare the index with what is live, and ask it as requests do (KIP516-8)."""
    live = {(each.state.at.topic, each.state.at.partition): each for each in kept if each.is_live}
    entries = store.entries()
    if entries.keys() != live.keys() or store.duplicates:
        wrong = sorted(entries.keys() ^ live.keys()) or store.duplicates
        raise BrokenInvariantError(f"the store knows more than is live, or less: {wrong}")
    for key, each in live.items():
        entry, state = entries[key], each.state
        topic_id = None if each.topic_id is None else str(each.topic_id)
        path = path_of(bench.scheme, state.at, each.topic_id)
        if (entry.log_dir, entry.path, entry.topic_id) != (state.log_dir, path, topic_id):
            raise BrokenInvariantError(f"the store says {entry} of {each}, which is {state}")
        other = TopicId(bytes(reversed((each.topic_id or ZERO_ID).to_bytes())))
        wrong_id = KafkaError.NONE if each.topic_id is None else KafkaError.INCONSISTENT_TOPIC_ID
        if store.fence(state.at, each.topic_id) or store.fence(state.at, other) is not wrong_id:
            raise BrokenInvariantError(f"the store fences {each} wrongly")
        names = {one.state.at.topic for one in live.values() if one.topic_id == each.topic_id}
        if each.topic_id is not None and store.topic_of(each.topic_id) not in names:
            raise BrokenInvariantError(f"the store finds {store.topic_of(each.topic_id)} by the ID of {each}")
    live_ids = {each.topic_id for each in kept if each.is_live}
    for each in kept:
        if each.topic_id is not None and each.topic_id not in live_ids and store.topic_of(each.topic_id) is not None:
            raise BrokenInvariantError(f"the store finds a topic by the ID of {each}, which is not live")
        if (each.state.at.topic, each.state.at.partition) not in live:
            answers = store.fence(each.state.at), store.fence(each.state.at, each.topic_id or TopicId(bytes([1] * 16)))
            if answers != (KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID):
                raise BrokenInvariantError(f"the store answers {answers} of {each}, which is not live")


def _directories(log_dir: str) -> Iterator[FoundDirectory]:
    """List the directories of replicas on a disk, in the log dir and beside it."""
    beside = f"{log_dir}.{STAGING_DIR}"
    for root in (log_dir, beside):
        for folder, directories, names in os.walk(root):
            is_root = folder in (log_dir, beside, f"{log_dir}/{STAGING_DIR}")
            is_prefix = len(os.path.basename(folder)) == _PREFIX_LETTERS and folder.count("/") == root.count("/") + 1
            if is_root or directories or MARKER_FILE in names or (is_prefix and not names):
                continue
            files = {name: Path(folder, name).read_bytes() for name in names}
            is_staged = os.path.dirname(folder) in (beside, f"{log_dir}/{STAGING_DIR}") or folder.endswith("-stray")
            path = (
                folder[len(log_dir) + 1 :]
                if root == log_dir
                else f"../{os.path.basename(beside)}/{folder[len(beside) + 1 :]}"
            )
            yield FoundDirectory(log_dir, path, is_staged, files)


def _offsets(log_dir: str) -> dict[str, dict[str, int]]:
    """Read the checkpoints of a log dir: partition → file → offset."""
    found: dict[str, dict[str, int]] = {}
    for file in OFFSET_CHECKPOINTS:
        try:
            with open(f"{log_dir}/{file}", encoding="ascii") as text:
                lines = text.read().split("\n")[2:]
        except FileNotFoundError:
            continue
        for topic, partition, offset in (line.split(" ") for line in lines if line):
            found.setdefault(f"{topic}-{partition}", {})[file] = int(offset)
    return found
