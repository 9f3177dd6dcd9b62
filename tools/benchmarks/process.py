"""Measures whole processes from outside, builds programs in C to compare with, and reports targets.

Programs in Python keep their bytecode from run to run, as installed ones do, whatever the environment says: otherwise
the compiler would be measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """The time and memory of one process, with those of its children."""

    wall: float
    """Seconds."""
    processor: float
    """Seconds of all processors."""
    peak: int
    """Resident bytes of the largest process."""


def run_process(name: str, command: Sequence[str]) -> ProcessRun:
    """Run a command to its end; a command that fails ends the benchmark.

    Raises:
        SystemExit: with the name, the exit code and the command.
    """
    started = time.perf_counter()
    pid = os.posix_spawnp(command[0], list(command), environment())
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{name} ended with {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
    return ProcessRun(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def environment() -> dict[str, str]:
    """The environment of the measured processes."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def compiled(source: Path, folder: str) -> str | None:
    """Build a C program in a folder; None, with a message, if there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("no C compiler was found: the C program is left out")
        return None
    program = os.path.join(folder, source.stem)
    subprocess.run([compiler, "-O2", "-o", program, str(source)], check=True)
    return program


def report_target(met: bool, text: str) -> bool:
    """Print whether a target was met, and return it."""
    print(f"  {'met   ' if met else 'MISSED'}  {text}", flush=True)
    return met
