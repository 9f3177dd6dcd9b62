"""Lets the forked processes of some work know that it is cancelled, or that nobody is left who could want it."""

from __future__ import annotations

import mmap
import os
import threading
import time
from types import TracebackType
from typing import Final, Self

BEAT_S: Final = 0.05
"""How often each side looks, in seconds."""


class SharedCancel:
    """Opened before the fork, and closed when all children are gone; use it as a context manager."""

    def __init__(self, cancel: threading.Event) -> None:
        """Take the event that is set here, by a signal handler as well as by a thread."""
        self._cancel, self._process = cancel, os.getpid()
        self._is_set = mmap.mmap(-1, 1)  # shared with children, other than all else
        self._is_over = threading.Event()
        self._teller = threading.Thread(target=self._tell, name="shared-cancel", daemon=True)

    def in_child(self) -> threading.Event:
        """For the child: an event of its own, which is set soon after that one, and when its parent is gone."""
        cancel = threading.Event()
        threading.Thread(target=self._listen, args=(cancel,), name="shared-cancel", daemon=True).start()
        return cancel

    def __enter__(self) -> Self:
        self._teller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._teller.join()
        self._is_set.close()

    def _tell(self) -> None:
        # A signal handler may set the event in the middle of any call, so no thread waits for it and holds its lock.
        while not self._is_over.wait(BEAT_S):
            if self._cancel.is_set():
                self._is_set[0] = 1
                return

    def _listen(self, cancel: threading.Event) -> None:
        while not self._is_set[0] and os.getppid() == self._process:
            time.sleep(BEAT_S)
        cancel.set()
