"""Empty folders for disks, in memory if possible."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import TypeAlias

Fresh: TypeAlias = Callable[[], str]
"""Gives an empty folder."""

_MEMORY = "/dev/shm"


def fresh_folders() -> Iterator[Fresh]:
    """What a fixture gives: a function that makes an empty folder; all are removed at the end."""
    folder = tempfile.mkdtemp(prefix="logstore-simulator-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    numbers = itertools.count()

    def made() -> str:
        path = f"{folder}/{next(numbers)}"
        os.mkdir(path)
        return path

    try:
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)
