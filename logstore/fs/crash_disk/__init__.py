"""A disk that loses unsynced changes in a crash: simulations draw one of the states, tests try all of them."""

from logstore.fs.crash_disk.crash_disk import CrashDisk, truncate_change, write_change
from logstore.fs.crash_disk.disks import DiskVersion, MachineDisks, memory_folder
from logstore.fs.crash_disk.image import ROOT, ChangeKind, Image, NameChange
from logstore.fs.crash_disk.unsynced import Change, DataChange, PendingName, Unsynced
from logstore.fs.crash_disk.volume import PLAIN, Volume, copy_volume, inodes_below

__all__ = [
    "PLAIN",
    "ROOT",
    "Change",
    "ChangeKind",
    "CrashDisk",
    "DataChange",
    "DiskVersion",
    "Image",
    "MachineDisks",
    "NameChange",
    "PendingName",
    "Unsynced",
    "Volume",
    "copy_volume",
    "inodes_below",
    "memory_folder",
    "truncate_change",
    "write_change",
]
