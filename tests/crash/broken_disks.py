"""Disks that leave out a step on purpose: each has to be found out, or the machinery proves nothing."""

from __future__ import annotations

import os
import stat

from tests.crash.recording_disk import RecordingDisk


class NothingSynced(RecordingDisk):
    """Says that it has synced, and has not."""

    def sync(self, descriptor: int) -> None:
        os.fstat(descriptor)

    def sync_file_system(self, descriptor: int) -> bool:
        os.fstat(descriptor)
        return True


class NoFileSynced(RecordingDisk):
    """Syncs directories only."""

    def sync(self, descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            super().sync(descriptor)


class NoDirectorySynced(RecordingDisk):
    """Syncs files only."""

    def sync(self, descriptor: int) -> None:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            super().sync(descriptor)


class OneSyncLeftOut(RecordingDisk):
    """Leaves out one sync, or one barrier, of all: the one whose number is ``left_out``."""

    left_out = 0
    count = 0

    def sync(self, descriptor: int) -> None:
        if self._is_taken():
            super().sync(descriptor)

    def sync_file_system(self, descriptor: int) -> bool:
        return super().sync_file_system(descriptor) if self._is_taken() else True

    def _is_taken(self) -> bool:
        self.count += 1
        return self.count - 1 != self.left_out


def without_sync(number: int) -> type[OneSyncLeftOut]:
    """A disk that leaves out that sync, counted from 0."""
    return type(f"WithoutSync{number}", (OneSyncLeftOut,), {"left_out": number})
