"""Games with what belongs to which log dir: spare records on another disk, and partition dirs named like namespaces.

Two log dirs of one last name, each of which has a copy of one partition, are full, so that their records lie on a third
disk. What becomes of one copy says nothing about the other one. And a namespace that was not made has no replicas,
though a partition dir has its name: one that lay in it would be purged with it. Source: DESIGN §5; KIP37-1.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from random import Random

from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import InvalidNamespaceError, LogDir, LogStore, ManualClock, StoreOptions
from logstore.fs import Directory, make_directory
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import FallbackRecords
from logstore.staging import Candidate, Placement, list_staged, restore, stage
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.looking import offsets_of
from reconciler.simulator.drills.made import AT, add_replica, make_log_dir


def play_spare(random: Random) -> str:
    """Stage two copies of a partition on full disks, and restore one; gives what it was.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    topic_id = TopicId(random.randbytes(16))
    with MachineDisks.in_memory(3, random.getrandbits(32)) as disks:
        *paths, third = disks.log_dirs
        with Directory.open(os.path.dirname(third)) as mounted:
            make_directory(disks.disk, mounted, "spare").close()
        fallback = FallbackRecords(f"{os.path.dirname(third)}/spare", disks.disk)
        offsets = dict[str, dict[str, int]]()
        for number, path in enumerate(paths):
            make_log_dir(path, disks.disk, random, None)
            with LogDir.open(path, disk=disks.disk) as log_dir:
                offsets[path] = add_replica(log_dir, topic_id, random)
                disks.fill(number)
                candidate = Candidate(str(AT), AT, topic_id, "S", "a drill", 9)
                stage(log_dir, [candidate], 1, placement=Placement.IN_PLACE, fallback=fallback)
        for number in disks.full:
            disks.make_room(number)
        random.shuffle(paths)
        live, other = paths
        log_dir = LogDir.open(live, disk=disks.disk)
        restore(log_dir, list_staged(log_dir, fallback)[0], fallback=fallback)
        log_dir.abandon()
        disks.crash(random)
        options = StoreOptions(ManualClock(), disk=disks.disk, jobs=0, placement=Placement.IN_PLACE)
        for path in paths:
            LogStore.open([path], replace(options, fallback_records=fallback.folder)).close()
        with LogDir.open(other, disk=disks.disk) as log_dir:
            records = [each.record for each in list_staged(log_dir, fallback)]
        _look(live, other, offsets, [None if each is None else dict(each.checkpoints) for each in records])
    return "spare"


def _look(live: str, other: str, offsets: dict[str, dict[str, int]], records: list[dict[str, int] | None]) -> None:
    if offsets_of(live, AT) != offsets[live]:
        raise BrokenInvariantError(f"a copy is live with {offsets_of(live, AT)}, and should with {offsets[live]}")
    if records != [offsets[other]]:
        raise BrokenInvariantError(f"the other copy is staged with {records}, and should with {offsets[other]}")


def play_tier(random: Random) -> str:
    """Create a replica in a namespace that was not made, though a directory has its name; gives what it was.

    Raises:
        BrokenInvariantError: it is created.
    """
    name, inner = f"orders-{random.randrange(3)}", TopicPartition("clicks", random.randrange(3))
    with MachineDisks.in_memory(1, random.getrandbits(32)) as disks:
        (path,) = disks.log_dirs
        make_log_dir(path, disks.disk, random, Scheme.NAMESPACED)
        with closing(LogStore.open([path], StoreOptions(ManualClock(), disk=disks.disk, jobs=0))) as store:
            store.create(TopicPartition("orders", int(name[-1])), TopicId(random.randbytes(16)))
            at = TopicPartition(f"{name}:{inner.topic}", inner.partition)
            try:
                store.create(at, TopicId(random.randbytes(16)))
            except InvalidNamespaceError:
                pass
            else:
                raise BrokenInvariantError(f"{at} is created, and nobody made its namespace")
    return "tier"
