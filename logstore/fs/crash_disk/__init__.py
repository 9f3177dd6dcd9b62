"""A disk that loses unsynced changes in a crash, for simulations and tests."""

from logstore.fs.crash_disk.crash_disk import CrashDisk
from logstore.fs.crash_disk.volume import PLAIN, Volume, copy_volume, inodes_below

__all__ = [
    "PLAIN",
    "CrashDisk",
    "Volume",
    "copy_volume",
    "inodes_below",
]
