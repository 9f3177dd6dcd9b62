"""Ends the servers of a process that died without stopping them, whatever it died of.

A small process reads a pipe whose other end only the owner holds, and learns from it which process groups run. When
the pipe closes, the owner is gone, and the groups that still run are killed. That holds for SIGKILL too, and does not
hang on the thread that started a server, as the kernel's own signal at a parent's death would.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import IO

from tools.machine import ROOT


class Watchdog:
    """The process that watches; one for each cluster."""

    def __init__(self) -> None:
        """Start it in its own process group, so that Ctrl-C in a terminal does not end it first."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.real_broker.watchdog"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            process_group=0,
            text=True,
            bufsize=1,
        )

    def add(self, group: int) -> None:
        """A process group now runs."""
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        """A process group has ended; a watchdog that ended before it need not hear of that."""
        with contextlib.suppress(BrokenPipeError):
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let it kill what still runs, and wait for it."""
        self._process.communicate()

    def _tell(self, line: str) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(line)


def kill_group(group: int) -> None:
    """Kill every process of a group; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def watch(lines: IO[str]) -> list[int]:
    """Read what runs until the owner is gone: ``+1234`` where the process group 1234 started, ``-1234`` where it ended.

    Returns:
        The groups that were left running, in the order of their start.
    """
    running: dict[int, None] = {}
    for line in lines:
        sign, group = line[0], int(line[1:])
        if sign == "+":
            running[group] = None
        else:
            running.pop(group, None)
    return list(running)


if __name__ == "__main__":
    for left in watch(sys.stdin):
        kill_group(left)
