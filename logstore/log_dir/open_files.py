"""Finds the processes that hold files of a disk open or mapped: the space of such a file is freed only by their close.

Removing a name frees nothing while a process still has the file open, which is why ``rm`` sometimes leaves a disk as
full as it was. The sources are ``/proc/<pid>/fd``, and ``/proc/<pid>/maps`` because Kafka maps its indexes and closes
them. Files are compared by device and inode, because a rename or a container changes the path. Without ``/proc``
nothing is known. A process that may not be inspected, as those of other users, is named with the system's reason.
Source: USERS, pain 6.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_PROC = "/proc"


@dataclass(frozen=True, slots=True)
class FileHolder:
    """A process that holds files."""

    pid: int
    command: str
    """The system's short name of the process, for example ``java``."""

    def __str__(self) -> str:
        return f"process {self.pid}" + (f" ({self.command})" if self.command else "")


@dataclass(frozen=True, slots=True)
class UnseenProcess:
    """A process that could not be inspected, so that it may hold files."""

    process: FileHolder
    reason: str
    """The system's, for example ``Permission denied``."""

    def __str__(self) -> str:
        return f"{self.process}: {self.reason}"


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """The open files of one device.

    Attributes:
        holders: inode → the processes that hold it.
        unseen: the processes that could not be inspected.
        known: whether the system provides this information at all.
    """

    holders: Mapping[int, tuple[FileHolder, ...]] = field(default_factory=dict)
    unseen: tuple[UnseenProcess, ...] = ()
    known: bool = True


def find_open_files(device: int, pids: Collection[int] | None = None) -> OpenFiles:
    """Find the plain files of a device that processes hold.

    ``device``: ``st_dev`` of the file system; ``pids``: inspect only these processes; None: all.
    """
    if pids is None:
        try:
            pids = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]
        except OSError:
            return OpenFiles(known=False)
    holders: dict[int, tuple[FileHolder, ...]] = {}
    unseen: list[UnseenProcess] = []
    for pid in pids:
        try:
            inodes = {*_opened(pid, device), *_mapped(pid, device)}
        except PermissionError as error:
            unseen.append(UnseenProcess(FileHolder(pid, _command(pid)), error.strerror or "Permission denied"))
            continue
        except OSError:
            continue  # it ended meanwhile
        if inodes:
            process = FileHolder(pid, _command(pid))
            for inode in inodes:
                holders[inode] = (*holders.get(inode, ()), process)
    return OpenFiles(holders, tuple(unseen), known=bool(pids) or os.path.isdir(f"{_PROC}/self/fd"))


def _opened(pid: int, device: int) -> Iterator[int]:
    """List the inodes of the plain files that a process has open.

    Raises:
        OSError: the process may not be inspected, or is gone.
    """
    folder = f"{_PROC}/{pid}/fd"
    for name in os.listdir(folder):
        try:
            status = os.stat(f"{folder}/{name}")
        except OSError:
            continue  # closed meanwhile, or a file system that does not answer
        if status.st_dev == device and stat.S_ISREG(status.st_mode):
            yield status.st_ino


def _mapped(pid: int, device: int) -> Iterable[int]:
    """List the inodes of the files that a process has mapped: ``7f12-7f34 rw-s 00000000 fd:01 131 /disk1/...``.

    Raises:
        OSError: the process may not be inspected, or is gone.
    """
    place = f"{os.major(device):02x}:{os.minor(device):02x}"
    with open(f"{_PROC}/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        parts = (line.split(maxsplit=5) for line in maps)
        return {int(words[4]) for words in parts if len(words) > 5 and words[3] == place}


def _command(pid: int) -> str:
    try:
        with open(f"{_PROC}/{pid}/comm", encoding="utf-8", errors="backslashreplace") as comm:
            return comm.read(64).strip()
    except OSError:
        return ""
