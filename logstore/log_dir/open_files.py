"""Which processes hold files of a disk open or mapped: the space of such a file returns only when they let go.

Removing a name frees nothing while a process still has the file open, which is why ``rm`` sometimes leaves a disk as
full as it was. The system tells by ``/proc/<pid>/fd`` and ``/proc/<pid>/maps``, for Kafka maps its indexes and closes
them. Files are told by device and inode, not by path, for a rename or a container shows another path. Nothing here is
known where there is no ``/proc``; processes of other users are counted and not seen. Source: USERS, pain 6.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_PROC = "/proc"


@dataclass(frozen=True, slots=True)
class FileHolder:
    """One process that holds files."""

    pid: int
    command: str
    """The system's short name of it, for example ``java``."""

    def __str__(self) -> str:
        return f"process {self.pid}" + (f" ({self.command})" if self.command else "")


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """What is open on one device.

    Attributes:
        holders: inode → the processes that hold it.
        unseen: how many processes could not be looked into.
        known: False where the system does not tell at all.
    """

    holders: Mapping[int, tuple[FileHolder, ...]] = field(default_factory=dict)
    unseen: int = 0
    known: bool = True


def find_open_files(device: int, pids: Collection[int] | None = None) -> OpenFiles:
    """Look at all processes for plain files that they hold on a device.

    Args:
        device: ``st_dev`` of the file system.
        pids: look at these alone; None: at all.
    """
    if pids is None:
        try:
            pids = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]
        except OSError:
            return OpenFiles(known=False)
    holders: dict[int, tuple[FileHolder, ...]] = {}
    unseen = 0
    for pid in pids:
        try:
            inodes = {*_opened(pid, device), *_mapped(pid, device)}
        except PermissionError:
            unseen += 1
            continue
        except OSError:
            continue  # it ended meanwhile
        if inodes:
            process = FileHolder(pid, _command(pid))
            for inode in inodes:
                holders[inode] = (*holders.get(inode, ()), process)
    return OpenFiles(holders, unseen, known=bool(pids) or os.path.isdir(f"{_PROC}/self/fd"))


def _opened(pid: int, device: int) -> Iterator[int]:
    """Inodes of the plain files that a process has open.

    Raises:
        OSError: it may not be looked into, or is gone.
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
    """Inodes of the files that a process has mapped: ``7f12-7f34 rw-s 00000000 fd:01 131 /disk1/...``.

    Raises:
        OSError: it may not be looked into, or is gone.
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
