"""What a process that looks ahead of a purge hands over of each staged directory, and what it leaves for a closer look.

It judges a directory as the purge itself would (``judge_staged``), and weighs its files. Only what is usual is handed
over: a directory that is due and holds nothing but its record and plain files that have one name, are not large, and
that no process holds; and one whose time has not come. Everything else, and whatever cannot be read, is left to the
process that purges, which has the words for it.

Work that a forked process does ahead of this one, which takes each result when it has use for it.

For a look at the disk before something is changed there: this process changes, and the other finds out meanwhile what
it will need next. The other is ahead by no more results than a pipe holds, so what it saw is fresh. When this process
dies, the other ends at its next result.
"""

from __future__ import annotations

import marshal
import os
import stat
import struct
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeVar

from layout.directory_name import DirectoryName
from layout.ours import STAGED_RECORD
from logstore.errors import UnsafePathError
from logstore.fs import Directory
from logstore.parallel import PIPE_BYTES, can_fork, end_child, fork_with_pipe
from logstore.purge.eligibility import StagingRoot, weight_of
from logstore.purge.encoding import EncodedPrefetch, encode_record
from logstore.purge.report import KeepReason, KeptDirectory


def prefetch_batch(staging: StagingRoot, names: Sequence[DirectoryName]) -> list[EncodedPrefetch]:
    """Look at the directories of a batch; nothing is changed, and nothing is raised."""
    return [_prefetch(staging, name) for name in names]


def _prefetch(staging: StagingRoot, name: DirectoryName) -> EncodedPrefetch:
    try:
        with staging.root.child(name.text) as directory:
            judged = staging.judge(directory, name)
            if isinstance(judged, KeptDirectory):
                return judged.due_ms if judged.why is KeepReason.NOT_DUE else None
            if judged is None or judged.record is None:
                return None
            files = _plain_files(staging, directory)
            return None if files is None else (judged.inode, *files, encode_record(judged.record))
    except (OSError, UnsafePathError):
        return None


def _plain_files(staging: StagingRoot, directory: Directory) -> tuple[list[str], list[int]] | None:
    """Names of all files but the record, and the bytes that each gives back; None: anything about them is unusual."""
    names, weights = [], []
    step, holders = staging.rules.step_bytes, staging.holders
    with os.scandir(directory.descriptor) as found:
        for entry in found:
            name = entry.name
            if name == STAGED_RECORD:
                continue
            status = entry.stat(follow_symlinks=False)
            weight = weight_of(status)
            if status.st_nlink != 1 or weight > step or not stat.S_ISREG(status.st_mode) or status.st_ino in holders:
                return None
            names.append(name)
            weights.append(weight)
    return names, weights


Unit = TypeVar("Unit")
Result = TypeVar("Result")

_LENGTH = struct.Struct("=q")
"""Before each result: its bytes."""


def computed_by_child(work: Callable[[Unit], Result], units: Iterable[Unit]) -> Generator[Result, None, None]:
    """The results of some units, one after the other, each found out by a forked process before it is asked for.

    Where no process can be started, each is found out when it is asked for.

    Args:
        work: changes nothing, and gives anything that marshal knows; an error is not told, and ends the process.
        units: asked for in that process alone.

    Yields:
        The result of each unit, in their order; those of the first units alone where the process died.
    """

    def do_all(pipe: int) -> None:
        for unit in units:
            result: Any = work(unit)
            _send(marshal.dumps(result), pipe)

    child = None
    if can_fork():
        try:
            child = fork_with_pipe(do_all, ())
        except OSError:
            child = None  # no more processes are allowed: that costs time, and nothing else
    if child is None:
        yield from map(work, units)
        return
    try:
        while (data := _received(child[1])) is not None:
            yield marshal.loads(data)
    finally:
        end_child(*child)


def _send(data: bytes, pipe: int) -> None:
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(pipe, left) :]


def _received(pipe: int) -> bytes | None:
    """The bytes of one result; None: the pipe came to its end before."""
    length = _exactly(_LENGTH.size, pipe)
    return None if length is None else _exactly(_LENGTH.unpack(length)[0], pipe)


def _exactly(number: int, pipe: int) -> bytes | None:
    received = bytearray()
    while len(received) < number:
        data = os.read(pipe, min(number - len(received), PIPE_BYTES))
        if not data:
            return None
        received += data
    return bytes(received)
