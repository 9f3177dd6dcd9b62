"""Shared by the tests of the engine: log dirs that are ours, disks that fail in one way, and pictures of a tree."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from layout import checkpoint
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.ours import (
    LedgerEntry,
    LedgerEvent,
    StagedRecord,
    encode_event,
    encode_header,
    encode_staged,
    parse_ledger,
)
from layout.scheme import LEDGER_FILE
from layout.topic import TopicPartition
from logstore import STALE_DELAY, Settings
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.staging import Candidate
from logstore.store import LogStore, StoreOptions

ORDERS_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
OTHER_ID = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
ORDERS = TopicPartition("orders", 0)
HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000
_COUNTED = {"create", "write", "sync", "sync_file_system", "mkdir", "rename", "link", "unlink", "rmdir"}
SHIPPED = f"version: 0\ntopic_id: {ORDERS_ID}".encode()


def identity(number: int = 1, *, node_id: int = 1, scheme: str | None = "flat") -> MetaProperties:
    """Make the identity of the broker's log dir with a number."""
    return MetaProperties(1, "C", node_id, DirectoryId.from_halves(1000 + number, 1), scheme)


def formatted(path: Path, number: int = 1, *, scheme: str = "flat", node_id: int = 1) -> Path:
    """Make a log dir that is ours, and close it."""
    LogDir.format(str(path), identity(number, node_id=node_id, scheme=scheme)).close()
    return path


def fill(replica: Path, metadata: bytes | None = SHIPPED) -> Path:
    """Make a partition dir with a segment in it."""
    replica.mkdir(parents=True)
    if metadata is not None:
        (replica / "partition.metadata").write_bytes(metadata)
    (replica / "00000000000000000000.log").write_bytes(os.urandom(300))
    (replica / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return replica


def write_offsets(log_dir: Path, entries: dict[tuple[str, int], int], file: str = "") -> None:
    """Write one offset checkpoint, the recovery points when none is named."""
    name = file or checkpoint.RECOVERY_POINT_CHECKPOINT
    (log_dir / name).write_bytes(checkpoint.encode_offsets(entries))


def read_offsets(log_dir: Path, file: str = "") -> dict[tuple[str, int], int]:
    """Read one offset checkpoint, the recovery points when none is named."""
    name = file or checkpoint.RECOVERY_POINT_CHECKPOINT
    return checkpoint.parse_offsets((log_dir / name).read_bytes(), name)


def candidate(
    path: str = "orders-0",
    partition: TopicPartition = ORDERS,
    topic_id: TopicId | None = ORDERS_ID,
    *,
    delay_ms: int = 4 * HOUR_MS,
    inode: int | None = None,
) -> Candidate:
    """Make a candidate: a replica that the cluster does not want any more."""
    return Candidate(path, partition, topic_id, "STALE_ID", "the cluster has it under another ID", delay_ms, inode)


def opened(
    *paths: Path,
    clock: ManualClock | None = None,
    disk: Disk | None = None,
    settings: Settings | None = None,
    fallback: Path | None = None,
) -> LogStore:
    """Open a store over log dirs, scanned by one process."""
    options = StoreOptions(
        clock=clock or ManualClock(NOW_MS),
        settings=settings or Settings(),
        disk=disk or Disk(),
        fallback_records=None if fallback is None else str(fallback),
        jobs=0,
    )
    return LogStore.open([str(path) for path in paths], options)


def delay(milliseconds: int, scope: str = "") -> Settings:
    """Make settings with one delay for stale replicas."""
    return Settings({scope: {STALE_DELAY: milliseconds}})


class HookedDisk(Disk):
    """Calls ``before`` before each change, with the method's name and what it is given."""

    def before(self, what: str, *arguments: Any) -> None:
        raise NotImplementedError


def _hooked(what: str) -> Callable[..., Any]:
    def change(self: HookedDisk, *arguments: Any) -> Any:
        self.before(what, *arguments)
        return getattr(Disk, what)(self, *arguments)

    return change


for _name in [name for name, each in vars(Disk).items() if callable(each) and not name.startswith("_")]:
    setattr(HookedDisk, _name, _hooked(_name))


class DiskThat(HookedDisk):
    """Fails certain calls with one error, on demand.

    Attributes:
        fails: names of the methods that fail; none at first.
        below: only below this directory; None: everywhere.
        calls: how often each method was called.
        synced: paths of the files and directories that were synced, in that order.
    """

    def __init__(self, number: int = errno.EIO, fails: Collection[str] = (), below: Path | None = None) -> None:
        self.number, self.fails, self.below = number, set(fails), below
        self.after = 0
        """Number of further calls that succeed."""
        self.calls: dict[str, int] = {}
        self.synced: list[str] = []

    def before(self, what: str, *arguments: Any) -> None:
        if what not in _COUNTED or (what == "write" and not arguments[1]):
            return
        if what == "mkdir" and arguments[1] in os.listdir(arguments[0]):
            return
        self.calls[what] = self.calls.get(what, 0) + 1
        if what not in self.fails:
            return
        place = os.readlink(f"/proc/self/fd/{arguments[2 if what == 'link' else 0]}")
        if self.below is not None and not f"{place}/".startswith(f"{self.below}/"):
            return
        if self.after:
            self.after -= 1
            return
        raise OSError(self.number, os.strerror(self.number))

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self.synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))


class FullDisk(DiskThat):
    """A disk without room for a byte or a directory more; what a file has already can be written over."""

    def __init__(self, fails: Collection[str] = ("write", "mkdir"), below: Path | None = None) -> None:
        super().__init__(errno.ENOSPC, fails, below)

    def write(self, descriptor: int, data: bytes) -> None:
        if os.lseek(descriptor, 0, os.SEEK_CUR) + len(data) <= os.fstat(descriptor).st_size:
            Disk.write(self, descriptor, data)
        else:
            super().write(descriptor, data)


def full_disk() -> DiskThat:
    """Make a disk without room for a byte or a directory more."""
    return FullDisk()


def write_ledger(root: Path, records: Mapping[str, StagedRecord], *events: tuple[LedgerEvent, str]) -> None:
    """Write the ledger of a staging root: what is staged there, and what has happened since."""
    lines = [
        *(encode_staged(name, record) for name, record in records.items()),
        *(encode_event(*each) for each in events),
    ]
    (root / LEDGER_FILE).write_bytes(b"".join([encode_header(), *lines]))


def ledger_entries(root: Path) -> dict[str, LedgerEntry]:
    """Read what the ledger of a staging root says of each directory; nothing where there is none."""
    file = root / LEDGER_FILE
    return parse_ledger(file.read_bytes()).entries if file.exists() else {}


def ledger_events(root: Path) -> dict[str, LedgerEvent]:
    """Read the newest event of each directory in the ledger of a staging root."""
    return {name: entry.event for name, entry in ledger_entries(root).items()}


class SwappingDisk(HookedDisk):
    """Calls a function once, just before the first rename or removal of a name: the moment between check and use."""

    def __init__(self, name: str, swap: Callable[[], object], *methods: str) -> None:
        self.name, self.swap, self.methods = name, swap, methods or ("rename", "unlink", "rmdir")
        self.swapped = False

    def before(self, what: str, *arguments: Any) -> None:
        if not self.swapped and what in self.methods and arguments[1] == self.name:
            self.swapped = True
            self.swap()


Picture = dict[str, tuple[object, ...]]


def picture(root: Path, *, but: Collection[str] = (".lock", ".logstore_unclean")) -> Picture:
    """Give everything in a directory, and itself: kind, mode, time of change and content of each name."""
    found: Picture = {".": _look(root)}
    for path in sorted(root.rglob("*")):
        if path.name not in but:
            found[os.fsdecode(os.fsencode(path.relative_to(root)))] = _look(path)
    return found


def contents(root: Path) -> Picture:
    """Give the same without the times, which a rename in a directory changes."""
    return {name: (*look[:2], *look[3:]) for name, look in picture(root).items()}


def _look(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    content: object = None
    if stat.S_ISREG(status.st_mode):
        content = path.read_bytes() if status.st_size < 1 << 20 else status.st_size
    elif stat.S_ISLNK(status.st_mode):
        content = path.readlink()
    return stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), status.st_mtime_ns, content


def open_descriptors() -> int:
    """Count the open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def contents_but_ledgers(root: Path) -> Picture:
    """Give the contents of a directory without its ledgers, in which a change that was undone may leave lines."""
    return {name: look for name, look in contents(root).items() if os.path.basename(name) != LEDGER_FILE}


def contents_as_told(root: Path) -> Picture:
    """Give the same, and what the ledgers say of the directories that are there."""
    found = contents_but_ledgers(root)
    for file in sorted(root.rglob(LEDGER_FILE)):
        for name, entry in ledger_entries(file.parent).items():
            if (file.parent / name).is_dir():
                found[f"{file.relative_to(root)}: {name}"] = (entry.event, entry.record)
    return found


def without_copy_numbers(found: Picture) -> Picture:
    """Give a picture without the ``.2`` of staged directories, which depends on how often something was begun."""
    return {re.sub(r"(^|/| )(\S{22}_\d+)\.\d+(?=/|$)", r"\1\2", name): look for name, look in found.items()}
