"""Games with places that look right: a partition dir named like a namespace, and a folder on another file system.

A namespace that was not made has no replicas, though a partition dir has its name: one that lay in it would be purged
with it. And no rename leads from a log dir to a folder beside its path where the path is a link to another disk, so
nothing is staged there. Source: DESIGN §5; KIP37-1.
"""

from __future__ import annotations

import os
from contextlib import closing
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.scheme import STAGING_DIR, Scheme
from layout.topic import TopicPartition
from logstore import InvalidNamespaceError, LogStore, ManualClock, StoreOptions
from logstore.fs import Directory, Disk, make_directory
from logstore.fs.crash_disk import MachineDisks, memory_folder
from logstore.log_dir import ReadOnlyLogDir
from logstore.staging import Placement, choose_placement
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.made import make_log_dir

_ELSEWHERE: Final = "/proc"
"""Lies on a file system of its own."""


def play_place(random: Random) -> str:
    """Choose the place of what is staged from a broker's log dir, whose path may be a link; gives what it was.

    Raises:
        BrokenInvariantError: no rename leads there, or one would lead to a better place.
    """
    with memory_folder() as folder:
        has_sibling, is_linked = random.random() < 0.7, random.random() < 0.5
        with Directory.open(folder) as mounted:
            make_directory(Disk(), mounted, "data").close()
            if has_sibling:
                make_directory(Disk(), mounted, f"data.{STAGING_DIR}").close()
        # Of a path that is a link the log dir is what lies behind it, and its neighbours are those of the link.
        behind = os.open(_ELSEWHERE if is_linked else f"{folder}/data", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with ReadOnlyLogDir(Directory(behind, f"{folder}/data"), None) as log_dir:
            found = choose_placement(log_dir)
    wanted = Placement.IN_PLACE if is_linked else Placement.SIBLING
    if found is not wanted:
        raise BrokenInvariantError(f"replicas are staged {found}, and should be {wanted}; linked: {is_linked}")
    return "place"


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
