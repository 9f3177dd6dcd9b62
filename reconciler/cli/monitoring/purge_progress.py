"""What a purge has removed so far, in its file of metrics while it is still under way: a large one takes hours."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import Final

from logstore.fs import publish_file
from reconciler.metrics import Readings, exposition, read_purge_under_way

PROGRESS_S: Final = 10.0
"""Interval at which the file is replaced; Prometheus commonly asks every 15 seconds to a minute."""


class PurgeProgress:
    """Adds up what a purge removes; called by its workers, it replaces the file of metrics now and then.

    A file that cannot be written holds up nothing: the purge writes it once more at its end, and says so then.
    """

    def __init__(self, path: str, *, every_s: float | None = None) -> None:
        """Take the path of the file, which was checked, and the shortest time between two writes in seconds."""
        self._path = path
        self._every_s = PROGRESS_S if every_s is None else every_s
        self._adding = threading.Lock()
        self._directories = self._bytes = 0
        self._next = time.monotonic()

    def __call__(self, directories: int, bytes_: int) -> None:
        """Add what was removed since the last call."""
        with self._adding:
            self._directories += directories
            self._bytes += bytes_
            if time.monotonic() < self._next:
                return
            self._next = math.inf  # one worker writes at a time, and none again after a failure
            readings = Readings("purge")
            read_purge_under_way(readings, self._directories, self._bytes, time.time())
        with suppress(OSError):
            publish_file(self._path, exposition(readings))
            self._next = time.monotonic() + self._every_s
