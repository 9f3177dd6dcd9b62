"""A game with one change that the system refuses, on a disk that failed or only has no room, and with what is left.

A replica is staged or restored. The disk failed, or its file system has turned read-only: the log dir is offline, and
nothing more is asked of it. Otherwise the replica is as before, and stays so where it was to be staged, or it is live
and its offsets come later. After a restore a crash may bring back what was undone, though the log dir was closed in
order meanwhile. Then the next open sees to it that the replica has its checkpoint entries where it is live, and where
it is staged again before that, its record has them. Source: FACTS §1.5; DESIGN §5; KIP516-7.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
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
_LONGEST: Final = {"restore": 9, "stage": 16}
"""Changes of a disk in either."""

_SYNCS: Final = (0, 1)
"""Changes behind the rename and before the syncs that make it durable: of the directory that the replica lies in, and
of the one in which it lay."""

_OFFSETS: Final = (2, 3, 4, 7)
"""Changes behind the rename and before some of those that write the checkpoint entries of a restored replica."""


class _Refusal:
    """Refuses one change of a disk.

    Attributes:
        after: so many others are let pass before it; less than 0: nothing is refused.
        counts: whether changes are counted by now.
        number: of the error.
        changes: how many were asked for.
    """

    def __init__(self) -> None:
        self.after, self.number, self.changes = -1, 0, 0
        self.counts: Callable[[], bool] = lambda: True

    def __call__(self) -> None:
        """Let a change pass, or not."""
        self.changes += 1
        if self.after < 0 or not self.counts():
            return
        self.after -= 1
        if self.after == -1:
            raise OSError(self.number, os.strerror(self.number))


def play_refused(random: Random) -> str:
    """Stage a replica, or restore it; gives what it was, and how it ended.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    refusal, topic_id = _Refusal(), TopicId(random.randbytes(16))
    what = random.choice(("restore", "stage"))
    scheme = random.choice((Scheme.FLAT, None))
    placement = Placement.INSIDE if scheme else random.choice((Placement.SIBLING, Placement.IN_PLACE))
    candidate = Candidate(str(AT), AT, topic_id, "S", "a drill", 9)
    with MachineDisks.in_memory(1, random.getrandbits(32), refusal) as disks:
        path = disks.log_dirs[0]
        make_log_dir(path, disks.disk, random, scheme)
        with LogDir.open(path, disk=disks.disk) as log_dir:
            offsets = add_replica(log_dir, topic_id, random)
            if what == "restore":
                stage(log_dir, [candidate], 1, placement=placement)
        refusal.number = random.choice(random.choice((_OF_THE_DISK, _OF_A_REQUEST, _OF_A_REQUEST)))
        after = _drawn(random, refusal, what, path)
        with LogDir.open(path, disk=disks.disk) as log_dir:
            found = _changed(log_dir, refusal, after, [] if what == "restore" else [candidate], placement)
            if found == "done" and log_dir.is_marked and random.random() < 0.5:
                log_dir.abandon()
        disks.crash(random)
        is_staged_again = random.random() < 0.3 and os.path.exists(f"{path}/{AT}")
        if is_staged_again:
            with LogDir.open(path, disk=disks.disk) as log_dir:
                stage(log_dir, [candidate], 1, placement=placement)
        options = StoreOptions(ManualClock(), disk=disks.disk, jobs=0, placement=placement)
        with closing(LogStore.open([path], options)) as store:
            is_live, staged = store.find(AT) is not None, store.staged()
            entries = offsets_of(path, AT)
    known = {"restore": {"done": True}, "stage": {"done": False, "refused": True}}[what].get(found, is_live)
    if is_live is bool(staged) or is_live is not (known and not is_staged_again):
        raise BrokenInvariantError(f"a {what} was {found}; the replica is live: {is_live}, and staged: {staged}")
    records = [dict(each.record.checkpoints) for each in staged if each.record is not None]
    if (entries, records) != ((offsets, []) if is_live else ({}, [offsets])):
        raise BrokenInvariantError(
            f"a {what} was {found}, live is {is_live}; the checkpoint entries are {entries}, the record's {records}"
        )
    return f"{what}_{found}"


def _drawn(random: Random, refusal: _Refusal, what: str, path: str) -> int:
    """Draw the change that is refused: any, or one of those behind the rename of the replica."""
    where = random.choice(("anywhere", "syncs", "syncs", "syncs", "offsets" if what == "restore" else "syncs"))
    if where == "anywhere":
        return random.randrange(_LONGEST[what])
    refusal.counts = lambda: os.path.exists(f"{path}/{AT}") is (what == "restore")
    return random.choice(_SYNCS if where == "syncs" else _OFFSETS)


def _changed(log_dir: LogDir, refusal: _Refusal, after: int, candidates: list[Candidate], placement: Placement) -> str:
    """Stage the candidate, or restore what is staged, which one refusal may end; gives how it ended."""
    before = list_staged(log_dir)
    refusal.after = after
    try:
        if candidates:
            stage(log_dir, candidates, 1, placement=placement)
        else:
            restore(log_dir, before[0])
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
        if [each.location for each in list_staged(log_dir)] != [each.location for each in before]:
            raise BrokenInvariantError("a change is refused, and what was staged is not staged, or more is") from error
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
