"""The disks of one machine as folders below a root: mounted, failing, full, back again, replaced, mistaken for others.

::

    root/
    ├── disk-1/              mount point of the first disk
    │   ├── data/            the log dir on it; made by whoever formats it
    │   └── data.deleting/   where a log dir is not ours, what is staged from it
    ├── disk-2/ ...
    ├── .offline/<serial>/   a disk that failed, while it is away; its mount point holds an empty ``data/`` then
    ├── .aside/<serial>/     files of a disk that lost their names, until that is durable
    └── .ruins/<number>/     what is left of a disk that failed, for those who still have it open

A disk that fails loses what a crash could take of it. When it comes back, what was opened before stays dead: whoever
uses it has to open the log dir again, as after a real failure. Everything is changed through :attr:`MachineDisks.disk`,
which is handed to ``StoreOptions``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from random import Random

from layout import meta_properties
from logstore.fs import Directory, make_directory, remove_tree
from logstore.fs.crash_disk import PLAIN, CrashDisk, Volume, copy_volume, inodes_below

LOG_DIR = "data"
_OFFLINE, _ASIDE, _RUINS = ".offline", ".aside", ".ruins"


class MachineDisks:
    """The disks of one machine, by number from 0.

    Attributes:
        root: the folder that holds everything.
        disk: the primitive changes, for the engine and for whoever else writes to these disks.
    """

    def __init__(self, root: str, count: int, passes: Callable[[], None] = lambda: None) -> None:
        """Mount so many empty disks.

        Args:
            root: an empty folder, in memory for speed; it is made, with its parents, where it is not there.
            count: of disks.
            passes: called before each change, ``lambda: world.passes(machine)``: so that a power cut may come there.
        """
        self.root, self.disk = os.path.realpath(root), CrashDisk(passes)
        self.disk.fail = self._fails_now
        self._serials = self._ruined = 0
        for name in (_OFFLINE, _ASIDE, _RUINS):
            _make(f"{self.root}/{name}")
        self._volumes = [self._new_volume(number) for number in range(count)]

    @property
    def log_dirs(self) -> list[str]:
        """The paths of the log dirs, whether or not there is something at them."""
        return [f"{self._mount_point(number)}/{LOG_DIR}" for number in range(len(self._volumes))]

    @property
    def online(self) -> list[int]:
        """The disks that work, full or not."""
        return [number for number, volume in enumerate(self._volumes) if not volume.is_offline]

    @property
    def offline(self) -> list[int]:
        """The disks that failed."""
        return [number for number, volume in enumerate(self._volumes) if volume.is_offline]

    @property
    def full(self) -> list[int]:
        """The disks on which nothing more fits."""
        return [number for number, volume in enumerate(self._volumes) if volume.is_full]

    def serial(self, number: int) -> int:
        """Tells a disk from every other that was ever mounted there."""
        return self._volumes[number].serial

    def is_empty(self, number: int) -> bool:
        """Whether a disk has no log dir, or the beginning of one: it has to be formatted. A failed one is not empty."""
        volume = self._volumes[number]
        return not volume.is_offline and not os.path.lexists(f"{volume.path}/{LOG_DIR}/{meta_properties.FILE_NAME}")

    def check(self, path: str) -> None:
        """Ask before reading a path below a mount point.

        Raises:
            OSError: EIO; the disk that is mounted there failed.
        """
        for number, volume in enumerate(self._volumes):
            if volume.is_offline and f"{path}/".startswith(f"{self._mount_point(number)}/"):
                with Directory.open(self._mount_point(number)) as mounted:
                    self.disk.check(mounted.descriptor)

    def crash(self, random: Random) -> None:
        """The machine lost its power: each disk that works comes up in a state that what was synced allows.

        Whoever had something open has to let it go first: ``LogDir.abandon``. What is open all the same, because the
        power was cut while it was being opened, is closed, as with any process that dies; else its lock would stay.
        """
        self._close_what_is_open()
        for volume in self._volumes:
            volume.fails_in = None
            if not volume.is_offline:
                self.disk.settle(volume, random)
        self.clear_ruins()

    def fail(self, number: int, random: Random) -> None:
        """A disk fails; one that failed already stays as it is."""
        volume = self._volumes[number]
        if volume.is_offline:
            return
        ruin, away = f"{self.root}/{_RUINS}/{self._ruined}", f"{self.root}/{_OFFLINE}/{volume.serial}"
        self._ruined += 1
        dead = set(volume.inodes.values())
        self._rename(volume.path, ruin)
        copy_volume(volume, ruin, away)
        self.disk.died(dead - set(volume.inodes.values()))
        self.disk.settle(volume, random)
        volume.is_offline, volume.fails_in = True, None
        _make(self.log_dirs[number])
        self.disk.died(inodes_below(self._mount_point(number)))

    def fail_after(self, number: int, changes: int, random: Random) -> None:
        """A disk will fail instead of doing the change that comes after so many more."""
        volume = self._volumes[number]
        if not volume.is_offline:
            volume.fails_in, volume.fails_by = changes, Random(random.getrandbits(64))

    def disarm(self) -> None:
        """Take back every failure that :meth:`fail_after` has announced and that has not come."""
        for volume in self._volumes:
            volume.fails_in = None

    def come_back(self, number: int) -> None:
        """A disk that failed works again, with all that was durable on it; any other stays as it is."""
        volume = self._volumes[number]
        if volume.is_offline:
            self._remove(self._mount_point(number))
            self._mount(volume, number)

    def fill(self, number: int) -> None:
        """Nothing more fits on a disk."""
        self._volumes[number].is_full = True

    def make_room(self, number: int) -> None:
        """There is room on it again."""
        self._volumes[number].is_full = False

    def replace(self, number: int) -> None:
        """Put a new, empty disk in the place of one; what lay on that is gone for good.

        Whoever has it open has to let it go first, unless it failed.
        """
        volume = self._volumes[number]
        self.disk.died(set(volume.inodes.values()))
        self._remove(self._mount_point(number))
        if volume.is_offline:
            self._remove(volume.path)
        volume.drop_orphans()
        volume.close()
        self._remove(f"{self.root}/{_ASIDE}/{volume.serial}")
        self._volumes[number] = self._new_volume(number)

    def swap(self, one: int, other: int) -> None:
        """Mount two disks each in the other's place; only those that work, and while nobody has them open."""
        first, second = self._volumes[one], self._volumes[other]
        if one == other or first.is_offline or second.is_offline:
            return
        between = f"{self.root}/{_OFFLINE}/{first.serial}"
        self._rename(first.path, between)
        first.path = between
        self._mount(second, one)
        self._mount(first, other)
        self._volumes[one], self._volumes[other] = second, first

    def clear_ruins(self) -> None:
        """Remove what is left of disks that failed; while nobody has them open."""
        self._remove(f"{self.root}/{_RUINS}")
        _make(f"{self.root}/{_RUINS}")

    def close(self) -> None:
        """Give the descriptors back; the folders stay."""
        for volume in self._volumes:
            volume.close()

    def _close_what_is_open(self) -> None:
        own = {volume.orphans.descriptor for volume in self._volumes}
        for number in sorted(map(int, os.listdir("/proc/self/fd"))):
            with suppress(OSError):  # the listing itself was open, and is not any more
                if number not in own and os.readlink(f"/proc/self/fd/{number}").startswith(f"{self.root}/"):
                    os.close(number)

    def _mount_point(self, number: int) -> str:
        return f"{self.root}/disk-{number + 1}"

    def _new_volume(self, number: int) -> Volume:
        self._serials += 1
        mount_point, aside = self._mount_point(number), f"{self.root}/{_ASIDE}/{self._serials}"
        for path in (mount_point, aside):
            _make(path)
        volume = Volume(self._serials, mount_point, aside)
        self.disk.mounted(volume)
        return volume

    def _mount(self, volume: Volume, number: int) -> None:
        self._rename(volume.path, self._mount_point(number))
        volume.path, volume.is_offline = self._mount_point(number), False
        self.disk.mounted(volume)

    def _fails_now(self, volume: Volume) -> None:
        self.fail(self._volumes.index(volume), volume.fails_by or Random(volume.serial))

    def _rename(self, path: str, new_path: str) -> None:
        with Directory.open(os.path.dirname(path)) as source, Directory.open(os.path.dirname(new_path)) as target:
            PLAIN.rename(source.descriptor, os.path.basename(path), target.descriptor, os.path.basename(new_path))

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError), Directory.open(os.path.dirname(path)) as parent:
            remove_tree(PLAIN, parent, os.path.basename(path))


def _make(path: str) -> None:
    """Make a folder, with its parents."""
    parent, _, name = path.rpartition("/")
    if not os.path.isdir(parent or "/"):
        _make(parent)
    with Directory.open(parent or "/") as opened:
        make_directory(PLAIN, opened, name).close()
