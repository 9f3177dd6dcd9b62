"""A disk that strikes in a chosen part of a change, and sees that what is renamed arrives durably before it leaves.

A change of many steps is long, and what matters most are a few moments of it: while the files that announce it are
written, and while they are removed. So a strike is announced by the number of changes of a disk since the change began,
since the first file had its name, or from its removal on.

A crash of the disks loses or keeps a rename as a whole. A real file system need not: it may have the directory that an
entry left, and not yet the one that it went to. So the order of the syncs is watched here (``fs.batch``), but for
entries whose batch was struck, which are about to be renamed back.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeAlias

from layout.scheme import INTENT_FILE
from logstore.fs.crash_disk import CrashDisk


class Phase(Enum):
    """From where the changes of a disk are counted."""

    BEGUN = auto()
    ANNOUNCED = auto()
    CONCLUDED = auto()


Strike: TypeAlias = tuple[Phase, int, Callable[[], None]]
"""From where to count, how many changes of a disk pass first, and what strikes then."""


class WatchedDisk(CrashDisk):
    """All disks of one machine, which are watched.

    Attributes:
        struck: whether the strike that was announced last has come.
        is_late: whether it came when the files that announce a change were being removed.
        too_early: the first sync that made an entry's leaving durable before its arrival, in words; empty: none did.
    """

    def __init__(self) -> None:
        """Announce nothing yet."""
        super().__init__(self._passes_now)
        self.struck, self.is_late, self.too_early = False, False, ""
        self._armed: list[Strike] = []
        self._since = dict.fromkeys(Phase, -1)
        self._again: Callable[[], None] | None = None
        self._moved: dict[int, tuple[int, int, str]] = {}
        """Inode of a renamed entry → those of the directories that it left and went to, and its new name."""

    def arm(self, *strikes: Strike) -> None:
        """Announce strikes, in order."""
        self.struck, self._armed = False, list(strikes)
        self._since = {phase: 0 if phase is Phase.BEGUN else -1 for phase in Phase}

    def disarm(self) -> None:
        """Let nothing go wrong any more."""
        self._armed.clear()
        self._again = None

    def forget(self) -> None:
        """Forget what is not synced; the machine has crashed."""
        self.disarm()
        self._moved.clear()

    @property
    def is_striking(self) -> bool:
        """Whether each further change is struck."""
        return self._again is not None

    def keep_on(self, strike: Callable[[], None]) -> None:
        """Strike again at each change from now on."""
        self._again = strike

    def _passes_now(self) -> None:
        if self._again is not None:
            self._again()
        passed = {phase: number for phase, number in self._since.items() if number >= 0}
        self._since.update({phase: number + 1 for phase, number in passed.items()})
        if self._armed:
            phase, after, strike = self._armed[0]
            if passed.get(phase, -1) >= after:
                del self._armed[0]
                self.struck, self.is_late = True, self._since[Phase.CONCLUDED] >= 0
                self._moved.clear()
                strike()

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        """Rename, and note where the entry came from."""
        super().rename(source, name, target, new_name)
        if new_name == INTENT_FILE and self._since[Phase.ANNOUNCED] < 0:
            self._since[Phase.ANNOUNCED] = 0
        left, arrived = (os.fstat(each).st_ino for each in (source, target))
        inode = os.stat(new_name, dir_fd=target, follow_symlinks=False).st_ino
        if self._moved.pop(inode, None) is None and left != arrived:
            self._moved[inode] = left, arrived, new_name

    def unlink(self, parent: int, name: str) -> None:
        """Unlink, and count from the first file of a change."""
        if name == INTENT_FILE and self._since[Phase.CONCLUDED] < 0:
            self._since[Phase.CONCLUDED] = 0
        super().unlink(parent, name)

    def sync(self, descriptor: int) -> None:
        """Sync, and see that nothing leaves a directory durably before it has arrived."""
        super().sync(descriptor)
        synced = os.fstat(descriptor).st_ino
        for inode, (left, arrived, name) in list(self._moved.items()):
            if synced == arrived:
                del self._moved[inode]
            elif synced == left:
                self.too_early = self.too_early or f"{name} leaves a directory durably before it has arrived in another"

    def sync_file_system(self, descriptor: int) -> bool:
        """Sync all of it."""
        self._moved.clear()
        return super().sync_file_system(descriptor)
