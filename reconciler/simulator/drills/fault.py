"""What goes wrong in the middle of a change: the power goes, or the system refuses a change of a disk."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable
from random import Random
from typing import Final

from layout.errors import LayoutError
from logstore import LogStoreError
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import PowerCut

CALM_FROM: Final = 4
"""Tries in a row from which nothing goes wrong any more, so that what fails then is not the fault's doing."""

_HURT: Final = 0.45
"""How likely something goes wrong in a change."""

_ERRORS: Final = (errno.ENOSPC, errno.ENOSPC, errno.EACCES)


class Fault:
    """The next fault: the power goes, or the system refuses one change of a disk.

    Attributes:
        has_struck: since it was armed, or announced.
    """

    def __init__(self, random: Random, longest: int, reach: Callable[[str], None]) -> None:
        """Announce nothing yet; ``longest``: changes of a disk in a long change of a game."""
        self._random, self._longest, self._reach = random, longest, reach
        self._after, self._is_power = -1, False
        self.has_struck = False

    def arm(self, tries: int = 0) -> None:
        """Announce a fault of the changes that follow, or none; surely none after :data:`CALM_FROM` tries."""
        self.disarm()
        self.has_struck = False
        if tries < CALM_FROM and self._random.random() < _HURT:
            self.announce()

    def announce(self) -> None:
        """Announce a fault of the changes that follow, if they are as many."""
        self.has_struck = False
        self._after, self._is_power = self._random.randrange(self._longest), self._random.random() < 0.5

    def refuse(self, after: int) -> None:
        """Let the system refuse the change of a disk that comes after so many others."""
        self._after, self._is_power = after, False

    def disarm(self) -> None:
        """Let nothing go wrong."""
        self._after = -1

    def passes(self) -> None:
        """Let a change of a disk pass, or not."""
        if self._after < 0:
            return
        self._after -= 1
        if self._after >= 0:
            return
        self.has_struck = True
        self._reach("power" if self._is_power else "system")
        if self._is_power:
            self._after = 0  # and again at each change, so that nothing is undone after it
            raise PowerCut
        number = self._random.choice(_ERRORS)
        raise OSError(number, os.strerror(number))


def open_after(crash: Callable[[], None], open_again: Callable[[], None], fault: Fault) -> None:
    """Lose the power and open again, with ``fault`` in the middle of that perhaps, and so on until it opens.

    Raises:
        BrokenInvariantError: it does not open, although nothing goes wrong any more.
    """
    for tries in itertools.count():
        crash()
        try:
            fault.arm(tries)
            open_again()
            if fault.has_struck:  # what the system refused is done by the next open
                fault.disarm()
                open_again()
            return
        except (PowerCut, LogStoreError, LayoutError) as error:
            if tries >= CALM_FROM:
                raise BrokenInvariantError(f"a store does not open after a crash: {error}") from error
