"""How long a test waits for what comes for certain, and what becomes of a process for which it waits."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import AnyStr

PATIENCE_S = 1800.0
"""In seconds. What comes ends the wait at once, so this costs nothing; no machine, however loaded, is so late."""


@contextmanager
def killed_at_last(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """Kill a process at the end, where the test has not waited for it: its own block would wait without a limit."""
    with process:
        try:
            yield process
        finally:
            process.kill()
