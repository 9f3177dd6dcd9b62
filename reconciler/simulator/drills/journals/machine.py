"""One machine with the disks of a store that is drilled, and what may happen to them in a change and between two."""

from __future__ import annotations

import errno
import os
from random import Random
from typing import Final

from layout.scheme import Scheme
from logstore import LogStore, ManualClock, StoreOptions
from logstore.fs import Directory, make_directory, replace_file, write_new_file
from logstore.fs.crash_disk import MachineDisks
from reconciler.simulator.drills.bench import PowerCut
from reconciler.simulator.drills.journals.states import STRANGERS_FILE
from reconciler.simulator.drills.journals.watched import WatchedDisk
from reconciler.simulator.drills.made import make_log_dir

_REFUSALS: Final = (errno.ENOSPC, errno.EACCES, errno.EMFILE)


class Interrupt(BaseException):
    """A signal came in the middle of a change, and the process goes on."""


class DrilledMachine:
    """The log dirs, and the store while it is open.

    Attributes:
        log_dirs: their paths; the first one is the one that decides, in every change.
        store: open, but between :meth:`crash` and :meth:`open`.
    """

    def __init__(self, folder: str, random: Random, count: int, scheme: Scheme) -> None:
        """Format the log dirs in a scheme, and open them."""
        self.random, self.disk, self.clock = random, WatchedDisk(), ManualClock()
        self.disks = MachineDisks(folder, count, disk=self.disk)
        self.disk.names = Random(random.getrandbits(32))
        self.log_dirs = self.disks.log_dirs
        for path in self.log_dirs:
            make_log_dir(path, self.disk, self.disk.names, scheme)
        self.store = self._opened()

    def _opened(self) -> LogStore:
        return LogStore.open(self.log_dirs, StoreOptions(self.clock, disk=self.disk, jobs=0))

    def open(self) -> None:
        """Open the store, which recovers what was left."""
        self.store = self._opened()

    def crash(self) -> None:
        """Lose the power; the disks come up as their syncs allow."""
        self.store.abandon()
        self.disk.forget()
        self.disks.crash(self.random)

    def lose(self, number: int) -> None:
        """Let a disk be away at the next open."""
        self.disks.fail(number, self.random)

    def all_back(self) -> None:
        """Let every disk work again."""
        for number in self.disks.offline:
            self.disks.come_back(number)

    def end(self) -> None:
        """Let go of everything."""
        self.store.abandon()
        self.disks.close()

    def cut_power(self) -> None:
        """Lose the power now, and at each change that is tried until the crash."""
        self.disk.keep_on(self.cut_power)
        raise PowerCut

    def refuse(self) -> None:
        """Refuse one change, as a system does that lacks something."""
        number = self.random.choice(_REFUSALS)
        raise OSError(number, os.strerror(number))

    def interrupt(self) -> None:
        """Interrupt the process once."""
        raise Interrupt

    def fail_first(self) -> None:
        """Let the disk fail whose log dir decides."""
        self.lose(0)

    def fail_any(self) -> None:
        """Let one of the disks fail."""
        self.lose(self.random.randrange(len(self.log_dirs)))

    def write(self, folder: str, name: str, data: bytes) -> None:
        """Write a file durably."""
        with Directory.open(folder) as directory:
            if directory.holds(name):
                replace_file(self.disk, directory, name, data)
            else:
                write_new_file(self.disk, directory, name, data, durable=True)

    def put_stranger(self, folder: str) -> None:
        """Put a stranger's file into a directory, which is made where it does not exist; its parent exists."""
        if not os.path.isdir(folder):
            parent, _, name = folder.rpartition("/")
            with Directory.open(parent) as directory:
                make_directory(self.disk, directory, name).close()
                self.disk.sync(directory.descriptor)
        self.write(folder, STRANGERS_FILE, b"not the engine's")
