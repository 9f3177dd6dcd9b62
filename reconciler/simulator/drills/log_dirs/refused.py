"""A game with one restore that the system refuses, on a disk that failed or only has no room, and with what is left.

The disk failed, or its file system has turned read-only: the log dir is offline, and nothing more is asked of it.
Otherwise the replica is staged as before. A crash may bring back what was undone, though the log dir was closed in
order meanwhile. Then the next open sees to it that the replica has its checkpoint entries where it is live. Source:
FACTS §1.5; DESIGN §5; KIP516-7.
"""

from __future__ import annotations

import errno
import os
from contextlib import closing
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.scheme import Scheme
from logstore import ChangeFailedError, LogDir, LogStore, LogStoreError, ManualClock, OfflineLogDirError, StoreOptions
from logstore.fs.crash_disk import MachineDisks
from logstore.staging import Candidate, Placement, list_staged, restore, stage
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.looking import offsets_of
from reconciler.simulator.drills.made import AT, add_replica, make_log_dir

_OF_THE_DISK: Final = (errno.EIO, errno.EROFS, errno.ENXIO, errno.ESTALE)
_OF_A_REQUEST: Final = (errno.ENOSPC, errno.EDQUOT, errno.EACCES)
_LONGEST: Final = 9
"""Changes of a disk in a restore."""

_BEHIND_THE_RENAME: Final = 0.6
"""How likely the refused change is one of the syncs that follow the rename, so that this is undone."""

_SYNCS: Final = 2
"""Syncs that make a rename durable: of the directory that the replica lies in, and of the one in which it lay."""


class _Refusal:
    """Refuses one change of a disk.

    Attributes:
        after: so many others are let pass before it; less than 0: nothing is refused.
        once: changes are counted from when this path is there.
        number: of the error.
        changes: how many were asked for.
    """

    def __init__(self) -> None:
        self.after, self.once, self.number, self.changes = -1, "/", 0, 0

    def __call__(self) -> None:
        """Let a change pass, or not."""
        self.changes += 1
        if self.after < 0 or not os.path.exists(self.once):
            return
        self.after -= 1
        if self.after == -1:
            raise OSError(self.number, os.strerror(self.number))


def play_refused(random: Random) -> str:
    """Play one restore; gives what it was.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    refusal, topic_id = _Refusal(), TopicId(random.randbytes(16))
    scheme = random.choice((Scheme.FLAT, None))
    placement = Placement.INSIDE if scheme else random.choice((Placement.SIBLING, Placement.IN_PLACE))
    with MachineDisks.in_memory(1, random.getrandbits(32), refusal) as disks:
        path = disks.log_dirs[0]
        make_log_dir(path, disks.disk, random, scheme)
        with LogDir.open(path, disk=disks.disk) as log_dir:
            offsets = add_replica(log_dir, topic_id, random)
            stage(log_dir, [Candidate(str(AT), AT, topic_id, "S", "a drill", 9)], 1, placement=placement)
        refusal.number = random.choice(random.choice((_OF_THE_DISK, _OF_A_REQUEST, _OF_A_REQUEST)))
        after = random.randrange(_LONGEST)
        if random.random() < _BEHIND_THE_RENAME:
            refusal.once, after = f"{path}/{AT}", random.randrange(_SYNCS)
        with LogDir.open(path, disk=disks.disk) as log_dir:
            found = _restored(log_dir, refusal, after)
        disks.crash(random)
        options = StoreOptions(ManualClock(), disk=disks.disk, jobs=0, placement=placement)
        with closing(LogStore.open([path], options)) as store:
            is_live, staged = store.find(AT) is not None, store.staged()
            entries = offsets_of(path, AT)
    if is_live is bool(staged) or (found == "done" and not is_live):
        raise BrokenInvariantError(f"a restore was {found}; the replica is live: {is_live}, and staged: {staged}")
    records = [dict(each.record.checkpoints) for each in staged if each.record is not None]
    if (entries, records) != ((offsets, []) if is_live else ({}, [offsets])):
        raise BrokenInvariantError(
            f"a restore was {found}, live is {is_live}; the checkpoint entries are {entries}, the record's {records}"
        )
    return f"restore_{found}"


def _restored(log_dir: LogDir, refusal: _Refusal, after: int) -> str:
    """Restore the replica, which one refusal may end; gives how it ended."""
    (staged,) = list_staged(log_dir)
    refusal.after = after
    try:
        restore(log_dir, staged)
    except LogStoreError as error:
        kind = OfflineLogDirError if refusal.number in _OF_THE_DISK else ChangeFailedError
        is_offline = log_dir.offline is not None
        if type(error) is not kind or is_offline is not (kind is OfflineLogDirError):
            raise BrokenInvariantError(
                f"{os.strerror(refusal.number)}: {type(error).__name__}, and the log dir is offline: {is_offline}"
            ) from error
        if is_offline:
            _untouched(log_dir, refusal)
            return "offline"
        if [each.location for each in list_staged(log_dir)] != [staged.location]:
            raise BrokenInvariantError("a restore is refused, and the replica is not staged any more") from error
        return "refused"
    finally:
        refusal.after = -1
    return "done"


def _untouched(log_dir: LogDir, refusal: _Refusal) -> None:
    """Nothing more is asked of a disk that failed."""
    before = refusal.changes
    try:
        with log_dir.changing("a drill changes nothing"):
            pass
    except OfflineLogDirError:
        if refusal.changes == before:
            return
    raise BrokenInvariantError("a log dir is offline, and is changed all the same")
