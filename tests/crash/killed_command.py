"""Runs the real command line, each time in a process of its own, and kills it at the n-th change of a disk.

A server imports everything once, and forks a process for each command, so that a run costs what the command itself
costs. The forked process counts the primitive changes of :class:`logstore.fs.Disk`, and sends SIGKILL to itself just
before the n-th one; a write is two steps, of which the first leaves half of the bytes. The clock stands still, so that
two runs that do the same leave the same bytes.

Started by itself it is the server: a job in, one line of JSON, and its outcome out, one line of JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from logstore.fs import Disk

ROOT = Path(__file__).resolve().parents[2]
NOT_IMPORTED = ("reconciler.cli.__main__", "reconciler.audit.spark")
"""What would run a command line, or needs what may not be installed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Attributes:
        code: its exit code; None: it was killed.
        steps: the steps that it took; 0 where it was killed.
        said: both its outputs.
    """

    code: int | None
    steps: int
    said: str


class CommandLine:
    """The server, as a context manager; :meth:`run` runs one command."""

    def __init__(self, now_ms: int) -> None:
        """Say where the clock of all commands stands, in ms since 1970."""
        self.now_ms = now_ms

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.crash.killed_command"]
        self._server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._server as server:
            assert server.stdin is not None
            server.stdin.close()  # the end of its input is the end of the server

    def run(self, *arguments: object, kill_at: int | None = None) -> Outcome:
        """Run ``logstore`` with these arguments; killed just before the step of that number, counted from 0."""
        job = {"arguments": [str(each) for each in arguments], "kill_at": kill_at, "now_ms": self.now_ms}
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(job), file=self._server.stdin, flush=True)
        line = self._server.stdout.readline()
        assert line, "the server is gone"
        return Outcome(**json.loads(line))


def _import_all() -> None:
    for package in ("layout", "logstore", "reconciler"):
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.startswith(NOT_IMPORTED):
                importlib.import_module(found.name)
    for heavy in ("pyarrow.parquet", "pyarrow.dataset", "rich.console", "rich.table", "rich.progress"):
        importlib.import_module(heavy)


def _arm(kill_at: int | None) -> Callable[[], int]:
    """Count every primitive change of this process, and end the process at one; give what tells the count."""
    taken = 0

    def step() -> None:
        nonlocal taken
        if taken == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        taken += 1

    def counted(primitive: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Disk, *arguments: Any) -> Any:
            step()
            return primitive(self, *arguments)

        return method

    def write(self: Disk, descriptor: int, data: bytes) -> None:
        step()
        plain_write(self, descriptor, data[: len(data) // 2])
        step()
        plain_write(self, descriptor, data[len(data) // 2 :])

    plain_write = Disk.write
    for name in [name for name in vars(Disk) if not name.startswith("_") and name not in ("unique", "is_shared")]:
        setattr(Disk, name, write if name == "write" else counted(getattr(Disk, name)))
    return lambda: taken


def _run(job: dict[str, Any], report: int) -> None:
    """Be the command: the forked process never comes back from here."""
    taken = _arm(job["kill_at"])
    time.time_ns = lambda: job["now_ms"] * 1_000_000
    sys.argv = ["logstore", *job["arguments"]]
    code = 70
    try:
        importlib.import_module("reconciler.cli").main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(report, json.dumps([code, taken()]).encode())
        os._exit(0)


def _forked(job: dict[str, Any]) -> Outcome:
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            for descriptor in (1, 2):
                os.dup2(output.fileno(), descriptor)
            _run(job, writing)
        os.close(writing)
        with open(reading, "rb") as pipe:
            report = pipe.read()
        os.waitpid(pid, 0)
        output.seek(0)
        said = output.read().decode("utf-8", "replace")
    code, steps = json.loads(report) if report else (None, 0)
    return Outcome(code, steps, said)


def _serve() -> None:
    _import_all()
    # A search for garbage writes to every object that it looks at, and a fork has to copy what it writes to.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        outcome = _forked(json.loads(line))
        print(json.dumps({"code": outcome.code, "steps": outcome.steps, "said": outcome.said}), flush=True)
    gc.unfreeze()


if __name__ == "__main__":
    _serve()
