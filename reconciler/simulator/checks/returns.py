"""Checks what comes live on a machine: whether it should have been restored, and came back whole (KIP516-6).

::

    restored   a replica is not made empty while the same one, whole, is staged on a disk that works
    offsets    the checkpoint entries that a staged replica had are there again when it is live again
    names      no checkpoint keeps the name that a replica had before it was renamed
    paths      no two replicas have one directory

The ledgers and the checkpoints are read from the disks anew. Source: DESIGN §5; KIP516-6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from layout.ids import TopicId
from layout.ours import StagedRecord
from logstore import LogStoreError
from logstore.log_dir import read_offset_checkpoints
from logstore.store import Entry, LogStore
from reconciler.simulator.cluster import Member

Live = Mapping[tuple[str, int], Entry]
"""Topic and partition → the store's entry."""

_ZERO_ID = str(TopicId(bytes(16)))


def wrongly_made(member: Member, before: Live, live: Live, went: Sequence[StagedRecord]) -> Iterator[str]:
    """Yield each replica that is new here although it lies staged, whole, on a disk that works.

    ``before``: the replicas at the last look, under the same store; ``went``: what was staged then, and is not now.
    """
    came = _identities(live) - _identities(before) - {(str(each.topic_id), each.partition) for each in went}
    if not came:
        return
    try:
        staged = member.broker.store.staged()
    except LogStoreError:
        return  # a disk failed just now
    for each in staged:
        record = each.record
        is_whole = record is not None and not (each.may_be_partly_purged or each.in_doubt or each.unread)
        if record is not None and is_whole and (str(record.topic_id), record.partition) in came:
            yield f"{member.name} made {record.topic}-{record.partition} empty, and it lies whole in {each.location}"


def lost_offsets(member: Member, live: Live, went: Sequence[StagedRecord]) -> Iterator[str]:
    """Yield each replica that is live again, and lacks a checkpoint entry that it had before it was staged."""
    by_identity = {(entry.topic_id or _ZERO_ID, key[1]): (key, entry) for key, entry in live.items()}
    for record in went:
        back = by_identity.get((str(record.topic_id), record.partition))
        if back is None or not record.checkpoints or _is_put_off(member.broker.store, back[1].log_dir):
            continue
        key, entry = back
        found = read_offset_checkpoints(entry.log_dir)
        missing = [file for file in record.checkpoints if key not in found.entries.get(file, {})]
        if missing and not found.damaged and _works(member, entry.log_dir):
            yield f"{member.name} restored {key[0]}-{key[1]} without its entry in {', '.join(missing)}"


def former_names(member: Member, before: Live, live: Live) -> Iterator[str]:
    """Yield each checkpoint that still has an entry of a replica under the name that it had at the last look."""
    now = {(entry.topic_id, key[1]): (key, entry) for key, entry in live.items() if entry.topic_id is not None}
    for key, entry in before.items():
        renamed = None if entry.topic_id is None else now.get((entry.topic_id, key[1]))
        if renamed is None or renamed[0] == key or key in live or _is_put_off(member.broker.store, entry.log_dir):
            continue
        if _works(member, entry.log_dir):
            entries = read_offset_checkpoints(entry.log_dir).entries
            for file in sorted(file for file, found in entries.items() if key in found):
                yield f"{member.name} renamed {key[0]}-{key[1]} to {renamed[0][0]}, and {file} has its former name"


def shared_directories(member: Member, live: Live) -> Iterator[str]:
    """Yield each directory that two replicas have."""
    places = Counter((entry.log_dir, entry.path) for entry in live.values())
    for (_, path), number in places.items():
        if number > 1:
            yield f"{member.name} has {number} replicas in {path}"


def _identities(live: Live) -> set[tuple[str, int]]:
    return {(entry.topic_id, key[1]) for key, entry in live.items() if entry.topic_id is not None}


def _works(member: Member, path: str) -> bool:
    """Whether the disk of a log dir works; of one that failed, the store may not know that yet."""
    return path not in member.broker.store.offline and member.disks.log_dirs.index(path) in member.disks.online


def _is_put_off(store: LogStore, path: str) -> bool:
    """Whether a log dir has something left to do at its next open, such as checkpoints that a full disk refused."""
    return any(each.path == path and each.leave_unclean for each in store.log_dirs)
