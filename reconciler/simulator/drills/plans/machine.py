"""The log dirs of one broker in a folder, what lies on them, and what somebody does to a replica while a plan waits.

They are a real broker's: without a scheme, and with the staged replicas beside them. All times are later than those of
the real files, so nothing depends on when a drill is played.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from logstore.fs import Directory, Disk, make_directory, remove_tree, replace_file, write_new_file

CLUSTER: Final = "drilled-cluster-00001"
NODE_ID: Final = 7
NOW_MS: Final = 4_000_000_000_000
LOG_FILE: Final = "00000000000000000000.log"
_EPOCH_FILE: Final = "leader-epoch-checkpoint"
_DATE: Final = "#Thu Jan 01 00:00:00 UTC 1970"
_WRITTEN_NS: Final = (NOW_MS - 7_200_000) * 1_000_000
_NEW: Final = "new"


class Fate(StrEnum):
    """What becomes of a replica while a plan waits; after all but the first it is not the one of the plan."""

    NONE = "none"
    REWRITTEN = "rewritten"
    GROWN = "grown"
    REPLACED = "replaced"
    GONE = "gone"
    OTHER_ID = "other_id"


@dataclass(frozen=True, slots=True)
class Lying:
    """A replica's directory, whole.

    Attributes:
        path: absolute.
        files: name → bytes.
    """

    path: str
    files: Mapping[str, bytes]

    @property
    def is_staged(self) -> bool:
        """Whether it lies where staged ones do."""
        return os.path.dirname(self.path).endswith(".deleting")

    @property
    def topic_id(self) -> TopicId | None:
        """The topic ID that it holds."""
        return partition_metadata.parse(self.files[partition_metadata.FILE_NAME]).topic_id


class Machine:
    """Two log dirs and the disk that changes them."""

    def __init__(self, folder: str, random: Random) -> None:
        """Make the log dirs, empty."""
        self._folder, self._random, self._disk = folder, random, Disk()
        self._writes = 0
        self.log_dirs = [f"{folder}/d{number}" for number in (1, 2)]
        with Directory.open(folder) as root:
            for path in self.log_dirs:
                make_directory(self._disk, root, os.path.basename(path)).close()
                self.identify(path)

    def identify(self, log_dir: str) -> None:
        """Give a log dir a new ``directory.id``, as if another disk were there."""
        identity = MetaProperties(1, CLUSTER, NODE_ID, DirectoryId(self._random.randbytes(16)), None)
        with Directory.open(log_dir) as root:
            replace_file(self._disk, root, meta_properties.FILE_NAME, meta_properties.encode(identity, _DATE))

    def add(self, name: str, topic_id: TopicId) -> None:
        """Put a replica into one of the log dirs."""
        files = {
            LOG_FILE: self._random.randbytes(self._random.randint(1, 80)),
            partition_metadata.FILE_NAME: partition_metadata.encode(topic_id),
        }
        self._write(self._random.choice(self.log_dirs), name, files)

    def add_copies(self, name: str, topic_id: TopicId) -> str:
        """Put a replica into both log dirs; gives the path of the copy with the later leader epoch."""
        better, epoch = self._random.choice(self.log_dirs), self._random.randint(1, 9)
        for log_dir in self.log_dirs:
            last = epoch if log_dir == better else self._random.randrange(epoch)
            files = {
                LOG_FILE: self._random.randbytes(self._random.randint(1, 80)),
                _EPOCH_FILE: f"0\n1\n{last} 0\n".encode(),
                partition_metadata.FILE_NAME: partition_metadata.encode(topic_id),
            }
            self._write(log_dir, name, files)
        return f"{better}/{name}"

    def _write(self, folder: str, name: str, files: Mapping[str, bytes]) -> None:
        with Directory.open(folder) as parent, make_directory(self._disk, parent, name) as replica:
            for file, data in files.items():
                write_new_file(self._disk, replica, file, data, durable=False)
                self._date(f"{replica.path}/{file}")
            self._date(replica.path)

    def _date(self, path: str, nanoseconds: int = _WRITTEN_NS) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._disk.set_modified(descriptor, nanoseconds)
        finally:
            os.close(descriptor)

    def change(self, path: str, change: Fate) -> None:
        """Do something to the replica at a path."""
        folder, name = os.path.split(path)
        if change in (Fate.REWRITTEN, Fate.GROWN):
            with Directory.open(path) as replica:
                data = Path(path, LOG_FILE).read_bytes()
                data = data + b"more" if change is Fate.GROWN else bytes(each ^ 1 for each in data)
                replace_file(self._disk, replica, LOG_FILE, data)
            self._writes += 1
            self._date(f"{path}/{LOG_FILE}", _WRITTEN_NS + self._writes * 1_000_000)
        elif change is Fate.OTHER_ID:
            with Directory.open(path) as replica:
                data = partition_metadata.encode(TopicId(self._random.randbytes(16)))
                replace_file(self._disk, replica, partition_metadata.FILE_NAME, data)
            self._date(f"{path}/{partition_metadata.FILE_NAME}")
        elif change is not Fate.NONE:
            files = _files(path)
            with Directory.open(folder) as parent:
                if change is Fate.REPLACED:  # made before the other one goes, whose inode it would get otherwise
                    self._write(folder, _NEW, files)
                remove_tree(self._disk, parent, name)
                if change is Fate.REPLACED:
                    self._disk.rename(parent.descriptor, _NEW, parent.descriptor, name)

    def found(self) -> dict[int, Lying]:
        """Read every replica, live or staged; gives inode → replica."""
        return {
            os.stat(path).st_ino: Lying(path, _files(path))
            for path, _, names in os.walk(self._folder)
            if partition_metadata.FILE_NAME in names
        }

    def bytes_of_all(self) -> dict[str, bytes]:
        """Read every file; gives path → bytes."""
        return {
            f"{path}/{name}": Path(path, name).read_bytes()
            for path, _, names in os.walk(self._folder)
            for name in names
        }


def _files(path: str) -> dict[str, bytes]:
    return {name: Path(path, name).read_bytes() for name in sorted(os.listdir(path))}
