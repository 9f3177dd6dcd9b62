"""The disks of one machine as folders below a root: mounted, failing, full, back again, replaced, swapped.

::

    root/
    ├── disk-1/              mount point of the first disk
    │   ├── data/            the log dir on it; the broker that formats it makes it
    │   └── data.deleting/   the staging directory of a log dir that is not ours
    ├── disk-2/ ...
    ├── .offline/<serial>/   a failed disk, while it is away; its mount point holds an empty ``data/`` meanwhile
    ├── .unlinked/<serial>/  files of a disk that lost their names, until their removal is durable
    └── .ruins/<number>/     the former folder of a failed disk, for processes that still have it open

A disk that fails loses what a crash could take from it. When it comes back, whatever was opened before stays dead: its
user has to open the log dir again, as after a real failure. Every change goes through :attr:`MachineDisks.disk`, which
is passed to ``StoreOptions``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from random import Random
from typing import NamedTuple, Self

from layout import meta_properties
from logstore.fs.crash_disk.crash_disk import CrashDisk
from logstore.fs.crash_disk.volume import PLAIN, Volume, copy_volume, inodes_below
from logstore.fs.directory import Directory
from logstore.fs.durable import make_directory, remove_tree

LOG_DIR = "data"
_OFFLINE, _UNLINKED, _RUINS = ".offline", ".unlinked", ".ruins"

_IN_MEMORY = "/dev/shm"
"""The parent of folders in memory, where the system has it."""


class DiskVersion(NamedTuple):
    """What tells the contents of a disk from those before: as long as it is equal, nothing on the disk was changed.

    Attributes:
        serial: number of the disk, which no other disk of the machine ever had.
        changes: how often it was changed, or mounted, so far; a change counts as soon as it is asked for.
        is_offline: the disk failed.
    """

    serial: int
    changes: int
    is_offline: bool


class MachineDisks:
    """The disks of one machine, by number from 0.

    Attributes:
        root: the folder that holds everything.
        disk: the primitive changes, for the engine and for everything else that writes to these disks.
    """

    def __init__(
        self, root: str, count: int, passes: Callable[[], None] = lambda: None, disk: CrashDisk | None = None
    ) -> None:
        """Mount empty disks below an empty folder, which is made where it does not exist; in memory for speed.

        ``passes`` is called before each change, where a power cut may come; ``disk`` makes the changes instead, and
        calls what it likes.
        """
        self.root, self.disk = os.path.realpath(root), disk or CrashDisk(passes)
        self.disk.fail = self._fails_now
        self._serials = self._ruined = 0
        for name in (_OFFLINE, _UNLINKED, _RUINS):
            _make_folder(f"{self.root}/{name}")
        self._volumes = [self._new_volume(number) for number in range(count)]

    @classmethod
    @contextmanager
    def in_memory(cls, count: int = 1, seed: int = 0, passes: Callable[[], None] = lambda: None) -> Iterator[Self]:
        """Mount empty disks in memory, which are gone at the end.

        Args:
            count: of disks.
            seed: of every name that the engine draws at random, so that one seed gives the same bytes.
            passes: called before each change of a disk. What it raises ends the change before it is made: a power cut
                is an exception that is no ``Exception``, so that nothing is undone, and then :meth:`crash`.
        """
        with memory_folder() as folder, closing(cls(folder, count, passes)) as disks:
            disks.disk.names = Random(f"{seed}/names")
            yield disks

    @property
    def log_dirs(self) -> list[str]:
        """The paths of the log dirs, whether they exist or not."""
        return [f"{self._mount_point(number)}/{LOG_DIR}" for number in range(len(self._volumes))]

    @property
    def online(self) -> list[int]:
        """The numbers of the disks that work, full or not."""
        return [number for number, volume in enumerate(self._volumes) if not volume.is_offline]

    @property
    def offline(self) -> list[int]:
        """The numbers of the disks that failed."""
        return [number for number, volume in enumerate(self._volumes) if volume.is_offline]

    @property
    def full(self) -> list[int]:
        """The numbers of the disks that are full."""
        return [number for number, volume in enumerate(self._volumes) if volume.is_full]

    def serial(self, number: int) -> int:
        """The serial number of a disk, which no other disk of this machine ever had."""
        return self._volumes[number].serial

    def version(self, number: int) -> DiskVersion:
        """The version of what a disk holds, so that what is read of it can be kept until it changes."""
        volume = self._volumes[number]
        return DiskVersion(volume.serial, volume.changes, volume.is_offline)

    def is_empty(self, number: int) -> bool:
        """Whether a working disk has no log dir yet, or an unfinished one, so that it has to be formatted."""
        volume = self._volumes[number]
        return not volume.is_offline and not os.path.lexists(f"{volume.path}/{LOG_DIR}/{meta_properties.FILE_NAME}")

    def check(self, path: str) -> None:
        """Check a path below a mount point before it is read.

        Raises:
            OSError: EIO; the disk that is mounted there failed.
        """
        for number, volume in enumerate(self._volumes):
            if volume.is_offline and f"{path}/".startswith(f"{self._mount_point(number)}/"):
                with Directory.open(self._mount_point(number)) as mounted:
                    self.disk.check(mounted.descriptor)

    def crash(self, random: Random) -> int:
        """Lose the power: each working disk comes up in a state that its syncs allow; return how many could differ.

        Open log dirs have to be let go first with ``LogDir.abandon``. Files that are open all the same, because the
        power was cut while they were being opened, are closed, as when a process dies; otherwise their locks would
        stay.
        """
        self._close_open_files()
        in_doubt = 0
        for volume in self._volumes:
            volume.fails_in = None
            if not volume.is_offline:
                in_doubt += not volume.unsynced.is_all_durable
                self.disk.settle(volume, random)
        self.clear_ruins()
        return in_doubt

    def fail(self, number: int, random: Random) -> None:
        """Let a disk fail; a disk that failed already stays as it is."""
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
        _make_folder(self.log_dirs[number])
        self.disk.died(inodes_below(self._mount_point(number)))

    def fail_after(self, number: int, changes: int, random: Random) -> None:
        """Let a disk fail later, instead of the change that comes after so many more."""
        volume = self._volumes[number]
        if not volume.is_offline:
            volume.fails_in, volume.fails_by = changes, Random(random.getrandbits(64))

    def disarm(self) -> None:
        """Cancel every failure that :meth:`fail_after` has announced and that has not come yet."""
        for volume in self._volumes:
            volume.fails_in = None

    def come_back(self, number: int) -> None:
        """Let a failed disk work again, with everything that was durable on it; any other disk stays as it is."""
        volume = self._volumes[number]
        if volume.is_offline:
            self._remove(self._mount_point(number))
            self._mount(volume, number)

    def fill(self, number: int) -> None:
        """Let a disk be full."""
        self._volumes[number].is_full = True

    def make_room(self, number: int) -> None:
        """Give a full disk room again."""
        self._volumes[number].is_full = False

    def replace(self, number: int) -> None:
        """Put a new, empty disk in place of a disk, whose contents are lost.

        A log dir on it must not be open, unless the disk failed.
        """
        volume = self._volumes[number]
        self.disk.died(set(volume.inodes.values()))
        self._remove(self._mount_point(number))
        if volume.is_offline:
            self._remove(volume.path)
        volume.drop_orphans()
        volume.close()
        self._remove(f"{self.root}/{_UNLINKED}/{volume.serial}")
        self._volumes[number] = self._new_volume(number)

    def swap(self, one: int, other: int) -> None:
        """Mount two disks each in the other's place, if both work; neither may be open."""
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
        """Remove the former folders of failed disks; none of them may be open."""
        self._remove(f"{self.root}/{_RUINS}")
        _make_folder(f"{self.root}/{_RUINS}")

    def close(self) -> None:
        """Close the descriptors; the folders stay."""
        for volume in self._volumes:
            volume.close()

    def _close_open_files(self) -> None:
        own = {volume.orphans.descriptor for volume in self._volumes}
        for number in sorted(map(int, os.listdir("/proc/self/fd"))):
            with suppress(OSError):  # the listing's own descriptor is closed by now
                if number not in own and os.readlink(f"/proc/self/fd/{number}").startswith(f"{self.root}/"):
                    os.close(number)

    def _mount_point(self, number: int) -> str:
        return f"{self.root}/disk-{number + 1}"

    def _new_volume(self, number: int) -> Volume:
        self._serials += 1
        mount_point, unlinked = self._mount_point(number), f"{self.root}/{_UNLINKED}/{self._serials}"
        for path in (mount_point, unlinked):
            _make_folder(path)
        volume = Volume(self._serials, mount_point, unlinked)
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


@contextmanager
def memory_folder() -> Iterator[str]:
    """Make a folder in memory, or among the temporary ones where the system has no such place; remove it at the end."""
    parent = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="logstore-simulated-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield folder


def _make_folder(path: str) -> None:
    """Make a folder, with its parents."""
    parent, _, name = path.rpartition("/")
    if not os.path.isdir(parent or "/"):
        _make_folder(parent)
    with Directory.open(parent or "/") as opened:
        make_directory(PLAIN, opened, name).close()
