"""Empty folders for disks, in memory if possible."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

from logstore.fs.crash_disk import memory_folder

Fresh: TypeAlias = Callable[[], str]
"""Gives an empty folder."""


def fresh_folders() -> Iterator[Fresh]:
    """What a fixture gives: a function that makes an empty folder; all are removed at the end."""
    with memory_folder() as folder:
        numbers = itertools.count()

        def made() -> str:
            path = f"{folder}/{next(numbers)}"
            os.mkdir(path)
            return path

        yield made
