"""The file of metrics that a command leaves for Prometheus, checked before any work and replaced as a whole at the end.

A command that ends with an error leaves the file of its last run, whose time tells that it is old.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec

from logstore.fs import publish_file
from reconciler.cli.frame import Exit, refuse_inside, say_incomplete
from reconciler.errors import UsageError
from reconciler.metrics import Readings, exposition

Given = ParamSpec("Given")


class MetricsFile:
    """What one run of a command says of itself in metrics; without a path, nothing is gathered and nothing written."""

    def __init__(self, path: str | None, command: str, log_dirs: Iterable[str]) -> None:
        """Begin with the run; the path is checked, and nothing is written yet.

        Args:
            path: of the file; None: no metrics were asked for.
            command: the verb.
            log_dirs: the file lies in none of them.

        Raises:
            UsageError: no file can be written there.
        """
        self._path, self._began = path, time.monotonic()
        self.readings = Readings(command)
        if path is not None:
            _check(path, log_dirs)

    def take(
        self, reader: Callable[Concatenate[Readings, Given], None], *args: Given.args, **kwargs: Given.kwargs
    ) -> None:
        """Let a reader of :mod:`reconciler.metrics` take in what was found, if metrics were asked for."""
        if self._path is not None:
            reader(self.readings, *args, **kwargs)

    def written(self, code: Exit) -> Exit:
        """Write the file, and return the exit code; a file that cannot be written is said, and the code is then 4."""
        if self._path is None:
            return code
        self.readings.end(time.time(), time.monotonic() - self._began, code)
        try:
            publish_file(self._path, exposition(self.readings))
        except OSError as error:
            say_incomplete(f"--metrics: {self._path} was not written: {error.strerror or error}")
        return code


def _check(path: str, log_dirs: Iterable[str]) -> None:
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        raise UsageError(f"--metrics {path}: there is no folder {folder}: make it first, or name another file")
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        raise UsageError(f"--metrics {path} is no plain file, and would be replaced by one: name another file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--metrics {path}: no file can be made in {folder}: name another one")
    refuse_inside(path, log_dirs)
