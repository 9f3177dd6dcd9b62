"""Processes that a test forks, whose exit code says whether a condition held, and those that are left."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def child(work: Callable[[], bool]) -> int:
    """Fork a process that ends with 0 if ``work`` gives True, and with 1 if not, or if it raises; its process ID."""
    pid = os.fork()
    if pid == 0:
        gc.freeze()  # what this process dropped is not for the child to end
        done = False
        try:
            done = work()
        finally:
            os._exit(0 if done else 1)
    return pid


def ended_well(pid: int) -> bool:
    """Wait for a process of :func:`child`, and give its result."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def children() -> set[int]:
    """The children of this process; one that ended counts until it is waited for."""
    found = set[int]()
    for each in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # the thread has ended, and its children went to another
            found.update(map(int, each.read_text(encoding="ascii").split()))
    return found
