"""A disk that loses what was not synced: one history of changes, and what a crash may leave of it."""

from logstore.fs.crash_disk.crash_disk import CrashDisk
from logstore.fs.crash_disk.volume import PLAIN, Volume, copy_volume, inodes_below

__all__ = [
    "PLAIN",
    "CrashDisk",
    "Volume",
    "copy_volume",
    "inodes_below",
]
