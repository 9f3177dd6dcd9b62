"""Builds the log dir of the scan benchmark: partition dirs with five small files each, as a KRaft broker leaves them.

Twelve partitions a topic, one topic ID each. Nothing is measured here.
"""

from __future__ import annotations

import os
from pathlib import Path

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import STAGING_DIR, Scheme

PARTITIONS = 12
FILES = 5


def build(log_dir: Path, directories: int, *, ours: bool = False) -> None:
    """Make a log dir with that many partition dirs, a broker's or one of ours; its parent exists and it does not."""
    log_dir.mkdir()
    if ours:
        (log_dir / STAGING_DIR).mkdir()
    scheme = Scheme.FLAT.value if ours else None
    identity = MetaProperties(1, "AtgGav8yQjiaJ3rTXE7VCA", 1, DirectoryId(bytes(range(100, 116))), scheme)
    (log_dir / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "Fri Nov 20 08:49:38 UTC 2026"))
    for number in range(directories):
        topic, partition = divmod(number, PARTITIONS)
        fill(f"{log_dir}/topic-{topic:05}-{partition}", TopicId((topic + 1).to_bytes(16, "big")))


def fill(path: str, topic_id: TopicId) -> None:
    """Make one partition dir, which is not there yet."""
    os.mkdir(path)
    _write(f"{path}/{partition_metadata.FILE_NAME}", partition_metadata.encode(topic_id))
    _write(f"{path}/leader-epoch-checkpoint", b"0\n1\n0 0\n")
    _write(f"{path}/{0:020}.log", b"\0" * 100)
    for suffix in ("index", "timeindex"):
        _write(f"{path}/{0:020}.{suffix}", b"")


def _write(path: str, data: bytes) -> None:
    """Create a file with few system calls: half a million of them are made."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    if data:
        os.write(descriptor, data)
    os.close(descriptor)
