"""Judges the directories of a purge in a forked process before their turn comes, so that the purge only removes.

The forked process judges a directory as the purge itself would (``eligibility``), and weighs its files. It hands over
only what needs no special care: a due directory that holds nothing but its record and plain files, each of them with
one name, not large, and held by no process; and the due time of a directory that is not due. Everything else, and
whatever cannot be read, it leaves to the process that purges, which reports why.

The forked process is no more results before the purge than a pipe holds, so its findings are fresh. When the purging
process dies, the forked one ends at its next result.
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
    """Judge and weigh the directories of a batch; nothing is changed, and nothing is raised."""
    return [_prefetch_directory(staging, name) for name in names]


def _prefetch_directory(staging: StagingRoot, name: DirectoryName) -> EncodedPrefetch:
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
    """Names of all files except the record, and the bytes that each frees; None: one of them needs special care."""
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
"""Stands before each result: its number of bytes."""


def computed_by_child(work: Callable[[Unit], Result], units: Iterable[Unit]) -> Generator[Result, None, None]:
    """Compute the results of units in a forked process, before the caller asks for them.

    Where no process can be started, each result is computed when the caller asks for it.

    Args:
        work: changes nothing, and returns a value for marshal; an error in it is not reported, and ends the process.
        units: iterated in the forked process only.

    Yields:
        The result of each unit, in their order; only those of the first units where the process died.
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
            child = None  # no more processes are allowed: that costs time only
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
    """Read the bytes of one result; None: the pipe ended before."""
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
