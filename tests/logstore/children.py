"""Processes that a test forks, and whose exit code says whether a condition held."""

from __future__ import annotations

import os
from collections.abc import Callable


def child(work: Callable[[], bool]) -> int:
    """Fork a process that ends with 0 if ``work`` gives True, and with 1 if not, or if it raises; its process ID."""
    pid = os.fork()
    if pid == 0:
        done = False
        try:
            done = work()
        finally:
            os._exit(0 if done else 1)
    return pid


def ended_well(pid: int) -> bool:
    """Wait for a process of :func:`child`, and give its result."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
