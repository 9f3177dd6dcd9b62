"""Games with replicas of full disks, whose records lie on another disk.

Two log dirs of one last name, each of which has a copy of one partition, share the folder for spare records. What
becomes of one copy says nothing about the other one. And where a purge was cut short, the spare record says so after
any crash, so that what may be half empty is never restored. Source: DESIGN §5.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Final

from layout.ids import TopicId
from logstore import LogDir, LogStore, LogStoreError, ManualClock, StoreOptions
from logstore.fs import Directory, make_directory, write_new_file
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import FallbackRecords
from logstore.purge import PurgeRules, purge
from logstore.staging import Candidate, Placement, Staged, list_staged, restore, stage
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import PowerCut
from reconciler.simulator.drills.fault import Fault
from reconciler.simulator.drills.looking import offsets_of
from reconciler.simulator.drills.made import AT, add_replica, make_log_dir

_DUE_MS: Final = 10
_LONGEST: Final = 12
"""Changes of a disk in a purge."""

_SEGMENTS: Final = tuple(f"{number:020}.log" for number in range(3))


@contextmanager
def _spare(
    random: Random, log_dirs: int, passes: Callable[[], None] = lambda: None
) -> Iterator[tuple[MachineDisks, list[str], FallbackRecords]]:
    """Give the disks of a machine, the paths of log dirs, and the fallback records, which lie on the last disk."""
    with MachineDisks.in_memory(log_dirs + 1, random.getrandbits(32), passes) as disks:
        *paths, last = disks.log_dirs
        with Directory.open(os.path.dirname(last)) as mounted:
            make_directory(disks.disk, mounted, "spare").close()
        yield disks, paths, FallbackRecords(f"{os.path.dirname(last)}/spare", disks.disk)


def _staged_on_a_full_disk(
    disks: MachineDisks, number: int, random: Random, topic_id: TopicId, fallback: FallbackRecords
) -> dict[str, int]:
    """Stage the replica of a new log dir, which is full meanwhile; gives its checkpoint entries."""
    path = disks.log_dirs[number]
    make_log_dir(path, disks.disk, random, None)
    with LogDir.open(path, disk=disks.disk) as log_dir:
        offsets = add_replica(log_dir, topic_id, random)
        with log_dir.root.child(str(AT)) as replica:
            for name in _SEGMENTS:
                write_new_file(disks.disk, replica, name, b"records", durable=False)
        disks.fill(number)
        candidate = Candidate(str(AT), AT, topic_id, "S", "a drill", _DUE_MS)
        stage(log_dir, [candidate], 0, placement=Placement.IN_PLACE, fallback=fallback)
        disks.disk.sync_file_system(log_dir.root.descriptor)
    disks.make_room(number)
    return offsets


def _reopened(disks: MachineDisks, paths: list[str], fallback: FallbackRecords) -> None:
    """Open a store on each log dir by itself, which recovers what a crash left."""
    options = StoreOptions(ManualClock(), disk=disks.disk, jobs=0, placement=Placement.IN_PLACE)
    for path in paths:
        LogStore.open([path], replace(options, fallback_records=fallback.folder)).close()


def play_spare(random: Random) -> str:
    """Stage two copies of a partition on full disks, and restore one; gives what it was.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    topic_id = TopicId(random.randbytes(16))
    with _spare(random, 2) as (disks, paths, fallback):
        offsets = {
            path: _staged_on_a_full_disk(disks, number, random, topic_id, fallback) for number, path in enumerate(paths)
        }
        random.shuffle(paths)
        live, other = paths
        log_dir = LogDir.open(live, disk=disks.disk)
        restore(log_dir, list_staged(log_dir, fallback)[0], fallback=fallback)
        log_dir.abandon()
        disks.crash(random)
        _reopened(disks, paths, fallback)
        with LogDir.open(other, disk=disks.disk) as log_dir:
            records = [each.record for each in list_staged(log_dir, fallback)]
        if offsets_of(live, AT) != offsets[live]:
            raise BrokenInvariantError(f"a copy is live with {offsets_of(live, AT)}, and should with {offsets[live]}")
        found = [None if each is None else dict(each.checkpoints) for each in records]
        if found != [offsets[other]]:
            raise BrokenInvariantError(f"the other copy is staged with {found}, and should with {offsets[other]}")
    return "spare"


def play_half_purged(random: Random) -> str:
    """Cut a purge of what was staged on a full disk short, and try to restore what is left; gives what it was.

    Raises:
        BrokenInvariantError: it is restored, or said to be whole, and a part of it is gone.
    """
    fault = Fault(random, _LONGEST, lambda _: None)
    with _spare(random, 1, fault.passes) as (disks, paths, fallback):
        _staged_on_a_full_disk(disks, 0, random, TopicId(random.randbytes(16)), fallback)
        log_dir = LogDir.open(paths[0], disk=disks.disk)
        fault.announce()
        try:
            purge([log_dir], PurgeRules(_DUE_MS), workers=1, fallback=fallback, look_at_processes=False)
        except PowerCut:
            pass
        finally:
            fault.disarm()
            log_dir.abandon()
        disks.crash(random)
        _reopened(disks, paths, fallback)
        with LogDir.open(paths[0], disk=disks.disk) as log_dir:
            for each in list_staged(log_dir, fallback):
                _look_at_what_is_left(log_dir, each, fallback)
    return "half_purged"


def _look_at_what_is_left(log_dir: LogDir, staged: Staged, fallback: FallbackRecords) -> None:
    is_whole = set(_SEGMENTS) < set(os.listdir(f"{log_dir.path}/{staged.location}"))
    if not is_whole and not staged.may_be_partly_purged:
        raise BrokenInvariantError(f"a part of {staged.location} is purged, and it is said to be whole")
    try:
        restore(log_dir, staged, fallback=fallback)
    except LogStoreError as error:
        if not staged.may_be_partly_purged:
            raise BrokenInvariantError(
                f"no purge has begun with {staged.location}; it is not restored: {error}"
            ) from error
        return
    if staged.may_be_partly_purged:
        raise BrokenInvariantError(f"{staged.location} is restored, and a purge has begun with it")
