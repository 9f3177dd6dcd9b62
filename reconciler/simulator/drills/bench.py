"""One machine's disks with a store on them, and what may go wrong at each change: power, disk, space, system.

A fault is announced by the number of changes before it, so it comes in the middle of whatever is done then. The power
goes by an exception that nobody handles; then the disks come up as a crash leaves them, and the store is opened anew.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.ours import parse_intent
from layout.scheme import INTENT_FILE, Scheme
from logstore import LogStore, ManualClock, Settings, StoreOptions
from logstore.fs import Directory, make_directory, replace_file, write_new_file
from logstore.fs.crash_disk import MachineDisks
from logstore.staging import Placement
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.made import make_log_dir

STRANGERS: Final = (f"gone-0.{'0a' * 16}-stray", f"gone-1.{'0b' * 16}-delete")
"""What a broker has left in its log dirs, which is nobody else's to remove."""

_SYSTEM_ERRORS: Final = (errno.ENOSPC, errno.ENOSPC, errno.EACCES, errno.EROFS)


def must_be_away(log_dirs: Sequence[str]) -> int | None:
    """Give the number of the log dir that must be the one that is away, if any is; None: each may.

    It does not know that a change was given up, and others do. Back without them it would do its part, and people had
    to look then.
    """
    files = [f"{path}/{INTENT_FILE}" for path in log_dirs]
    knows = [os.path.exists(each) and parse_intent(Path(each).read_bytes()).given_up for each in files]
    return knows.index(min(knows)) if any(knows) else None


class PowerCut(BaseException):
    """The machine has lost its power; no error, so nothing handles it as one."""


class FaultKind(StrEnum):
    """What goes wrong in the middle of a change."""

    POWER = "power"
    DISK = "disk"
    SYSTEM = "system"


@dataclass(slots=True)
class _Armed:
    kind: FaultKind
    after: int
    number: int
    error: int | None


class Bench:
    """The disks of one machine, the log dirs on them, and the store while it is open.

    Attributes:
        disks: of the machine; the last one holds no log dir, but the fallback records.
        clock: of the store.
        store: open, but between :meth:`close` or :meth:`crash` and :meth:`open`.
        changes: how many changes of a disk were asked for so far.
        struck: whether the fault that was announced last has come.
        stagings: topic ID and partition → how often it was staged, or began to be.
    """

    def __init__(
        self,
        folder: str,
        random: Random,
        log_dirs: int,
        scheme: Scheme | None,
        settings: Settings,
        *,
        kind_of_store: type[LogStore] = LogStore,
    ) -> None:
        """Format the log dirs in a scheme; None: as a real broker does, without one."""
        self._random, self.scheme, self._kind_of_store = random, scheme, kind_of_store
        self.disks = MachineDisks(folder, log_dirs + 1, self._passes)
        self.disks.disk.names = Random(random.getrandbits(32))
        self.clock, self.settings = ManualClock(), settings
        self.log_dirs = self.disks.log_dirs[:-1]
        self.fallback = f"{os.path.dirname(self.disks.log_dirs[-1])}/spare"
        self.placement: Placement | None = None
        if scheme is None:
            self.placement = random.choice((Placement.SIBLING, Placement.IN_PLACE))
        self.changes, self.struck, self._armed = 0, False, list[_Armed]()
        self.stagings = Counter[tuple[TopicId | None, int]]()
        self._format()
        self.store = self._opened()

    def _format(self) -> None:
        disk = self.disks.disk
        with Directory.open(os.path.dirname(self.fallback)) as mounted:
            make_directory(disk, mounted, os.path.basename(self.fallback)).close()
        for path in self.log_dirs:
            make_log_dir(path, disk, disk.names, self.scheme)
            with Directory.open(path) as root:
                for name in STRANGERS if self.scheme is None else ():
                    with make_directory(disk, root, name) as stranger:
                        write_new_file(disk, stranger, "00000000000000000000.log", b"a broker's own", durable=True)

    def _opened(self) -> LogStore:
        options = StoreOptions(self.clock, self.settings, self.disks.disk, self.fallback, 0, self.placement)
        return self._kind_of_store.open(self.log_dirs, options)

    def open(self) -> None:
        """Open the store, which recovers what a crash left."""
        self.store = self._opened()

    def learn_scheme(self) -> None:
        """Note the scheme that the log dirs have by now, which is one for all of them.

        Raises:
            BrokenInvariantError: they differ.
        """
        schemes = {each.scheme for each in self.store.log_dirs}
        if self.scheme is not None:
            if len(schemes) != 1:
                raise BrokenInvariantError(f"log dirs of one store have the schemes {', '.join(sorted(schemes))}")
            (self.scheme,) = schemes

    def make_room(self) -> None:
        """Give every full disk room again."""
        for number in self.disks.full:
            self.disks.make_room(number)

    def close(self) -> None:
        """Close the store in order."""
        self.store.close()

    def write_back(self) -> None:
        """Write all that is not durable yet, as a machine that runs on does by itself after a while."""
        for path in self.log_dirs:
            with Directory.open(path) as log_dir:
                self.disks.disk.sync_file_system(log_dir.descriptor)

    def crash(self) -> None:
        """Lose the power; the store is gone, and the disks are as a crash leaves them."""
        self._armed.clear()
        self.store.abandon()
        self.disks.crash(self._random)

    def lose(self, number: int) -> None:
        """Let a disk fail while the store is closed."""
        self.disks.fail(number, self._random)

    @contextmanager
    def fault(self, kind: FaultKind | None, after: int, error: int | None = None) -> Iterator[None]:
        """Let something go wrong within, after so many changes, if it comes to as many.

        ``error``: number of the error with which the system refuses a change; None: one is drawn.
        """
        number = self._random.randrange(len(self.log_dirs))
        self.struck = False
        if kind is not None:
            self._armed.append(_Armed(kind, after, number, error))
        try:
            yield
        finally:
            self._armed.clear()

    def _passes(self) -> None:
        self.changes += 1
        for each in list(self._armed):
            if each.after > 0:
                each.after -= 1
                continue
            self.struck = True
            if each.kind is FaultKind.POWER:
                raise PowerCut  # and again at each change, so that nothing is undone after it
            self._armed.remove(each)
            if each.kind is FaultKind.DISK:
                self.disks.fail(each.number, self._random)
                return
            number = self._random.choice(_SYSTEM_ERRORS) if each.error is None else each.error
            raise OSError(number, os.strerror(number))

    def write(self, path: str, name: str, data: bytes) -> None:
        """Write a file of a replica durably, as a broker does."""
        with Directory.open(path) as directory:
            if directory.holds(name):
                replace_file(self.disks.disk, directory, name, data)
            else:
                write_new_file(self.disks.disk, directory, name, data, durable=True)

    def end(self) -> None:
        """Let go of everything."""
        self.store.abandon()
        self.disks.close()
