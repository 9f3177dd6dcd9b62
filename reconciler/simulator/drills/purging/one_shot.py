"""What happens beside a purge, at one of its changes of a disk: it is cancelled, or a directory is replaced."""

from __future__ import annotations

from collections.abc import Callable


class OneShot:
    """Does something once, before the change of a disk that comes after so many others."""

    def __init__(self, passes: Callable[[], None]) -> None:
        """Announce nothing yet; ``passes`` lets each change pass, or not."""
        self._passes = passes
        self._left = -1
        self._act: Callable[[], object] = lambda: None

    def announce(self, after: int, act: Callable[[], object]) -> None:
        """Announce what is done, and after how many changes."""
        self._left, self._act = after, act

    def forget(self) -> None:
        """Announce nothing any more."""
        self._left = -1

    def passes(self) -> None:
        """Let a change pass, or not, after what was announced for it."""
        if self._left >= 0:
            self._left -= 1
            if self._left < 0:
                self._act()
        self._passes()
