"""A game with the locks of a log dir: one user at a time, whatever becomes of the locked file meanwhile.

A broker that stops removes ``.lock``, perhaps just when it is being locked: then the lock is worth nothing, for the
next one makes the file anew. Beside a broker's log dir the directory of what is staged has a lock of its own. Source:
FACTS §2.7; DESIGN §5.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Final

from layout.scheme import STAGING_DIR, Scheme
from logstore import LogDir, LogDirInUseError
from logstore.fs import Directory, Disk, make_directory
from logstore.fs.crash_disk import memory_folder
from logstore.log_dir import LOCK_FILE, StagingBeside
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.made import make_log_dir

_MOST_TIMES: Final = 2
"""How often the file may vanish in a row, and the lock is got all the same."""

_Opener = Callable[[Disk], LogDir | StagingBeside]


class _StoppingBroker(Disk):
    """A disk on which a broker removes the file of the lock while somebody opens it."""

    def __init__(self, times: int) -> None:
        self._times = times

    def open_to_change(self, parent: int, name: str) -> int:
        """Open it, and let it vanish."""
        descriptor = super().open_to_change(parent, name)
        self._vanishes(parent, name)
        return descriptor

    def create(self, parent: int, name: str) -> int:
        """Make it, and let it vanish."""
        descriptor = super().create(parent, name)
        self._vanishes(parent, name)
        return descriptor

    def _vanishes(self, parent: int, name: str) -> None:
        if name == LOCK_FILE and self._times > 0:
            self._times -= 1
            self.unlink(parent, name)


def play_lock(random: Random) -> str:
    """Lock one log dir, and see that nobody else gets it; gives what it was.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    with memory_folder() as folder:
        path, scheme = f"{folder}/data", random.choice((Scheme.FLAT, Scheme.NAMESPACED, None, None))
        make_log_dir(path, Disk(), random, scheme)
        if scheme is None:
            with Directory.open(folder) as mounted:
                make_directory(Disk(), mounted, f"data.{STAGING_DIR}").close()
        times = random.randint(0, _MOST_TIMES + 1)
        openers: dict[str, _Opener] = {"log_dir": lambda disk: LogDir.open(path, disk=disk)}
        if scheme is None:
            openers["beside"] = lambda disk: StagingBeside.open(path, disk=disk)
        which = random.choice(sorted(openers))
        with ExitStack() as stack:
            try:
                stack.enter_context(openers[which](_StoppingBroker(times)))
            except LogDirInUseError as error:
                if times <= _MOST_TIMES or which == "beside":
                    raise BrokenInvariantError(
                        f"nobody holds a log dir, and it is said to be in use: {error}"
                    ) from error
                return "lock_vanishing"
            if times > _MOST_TIMES and which == "log_dir":
                raise BrokenInvariantError("a log dir is locked by a file that is gone")
            for other, opener in openers.items():
                _refused(f"{which} and {other}", opener)
        for opener in openers.values():
            opener(Disk()).close()
    return f"lock_{which}"


def _refused(which: str, opener: _Opener) -> None:
    try:
        opened = opener(Disk())
    except LogDirInUseError:
        return
    opened.close()
    raise BrokenInvariantError(f"a log dir is used by two at once: {which}")
