"""Writes the files of the sample fleet: partition dirs, offset checkpoints and identities as a broker leaves them.

Owns bytes on a disk; which directory holds what, and what is wrong with it, belongs to ``sample_fleet``. Segments hold
real record batches, and the indexes of an active segment are preallocated but empty, so that a directory's length and
what it occupies differ as they do in a real log dir.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Mapping, Sequence
from itertools import count

from layout import checkpoint, meta_properties, partition_metadata
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties
from tools.writers import log_batch

INDEX_BYTES = 10 << 20
"""``segment.index.bytes``: an active segment's indexes have this length from the start (FACTS §2.11)."""

RECORDS_PER_BATCH = 50
BATCHES_PER_SEGMENT = 6
FORMATTED = "Mon Nov 02 07:12:44 UTC 2026"
"""When the log dirs were formatted, as their ``meta.properties`` says in a comment."""


class DiskWriter:
    """Writes below one folder; everything it invents comes from the generator it is given."""

    def __init__(self, root: str, rng: random.Random) -> None:
        """Prepare the record batches that all segments are made of."""
        self.root = root
        self._rng = rng
        self._batches = [self._invent_batch() for _ in range(8)]

    def file(self, path: str, content: bytes) -> None:
        """Write one file; its folder is made when it is not there."""
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(content)

    def date(self, written_ms: int) -> None:
        """Give every file below the root the time of its last write, in ms since 1970."""
        times = (written_ms * 1_000_000, written_ms * 1_000_000)
        for folder, _, names in os.walk(self.root):
            for name in names:
                os.utime(os.path.join(folder, name), ns=times)

    def folder(self, path: str) -> None:
        """Make a folder, and what stands above it."""
        os.makedirs(os.path.join(self.root, path), exist_ok=True)

    def identity(self, log_dir: str, cluster_id: str, node_id: int, directory_id: DirectoryId) -> None:
        """Write ``meta.properties`` and the lock file of a log dir."""
        identity = MetaProperties(1, cluster_id, node_id, directory_id, None, {})
        self.file(f"{log_dir}/{meta_properties.FILE_NAME}", meta_properties.encode(identity, FORMATTED))
        self.file(f"{log_dir}/.lock", b"")

    def checkpoints(self, log_dir: str, held: Mapping[str, Mapping[tuple[str, int], int]]) -> None:
        """Write the four offset checkpoints of a log dir; ``held``: file name → its entries."""
        for name in checkpoint.OFFSET_CHECKPOINTS:
            self.file(f"{log_dir}/{name}", checkpoint.encode_offsets(held.get(name, {})))

    def partition(self, path: str, metadata: bytes | None) -> int:
        """Write one partition dir.

        The path is below the root; ``metadata``: content of ``partition.metadata``; None: no such file.

        Returns:
            The log end offset.
        """
        segments = [self._rng.randint(0, BATCHES_PER_SEGMENT) for _ in range(self._rng.choice((1, 1, 1, 2)))]
        end_offset = 0
        for number, batches in enumerate(segments):
            end_offset = self._segment(path, end_offset, batches, active=number == len(segments) - 1)
        epoch = self._rng.randint(0, 9)
        self.file(f"{path}/leader-epoch-checkpoint", checkpoint.encode_leader_epochs([(epoch, 0)]))
        if metadata is not None:
            self.file(f"{path}/{partition_metadata.FILE_NAME}", metadata)
        return end_offset

    def _segment(self, path: str, base_offset: int, batches: int, *, active: bool) -> int:
        chosen: Sequence[bytes] = self._rng.choices(self._batches, k=batches)
        offsets = count(base_offset, RECORDS_PER_BATCH)
        # The base offset stands before the part that a batch's CRC covers, so a batch can be used anywhere.
        content = b"".join(
            struct.pack(">q", offset) + batch[8:] for batch, offset in zip(chosen, offsets, strict=False)
        )
        name = f"{path}/{base_offset:020d}"
        self.file(f"{name}.log", content)
        for suffix, entry in (("index", 8), ("timeindex", 12)):
            self.file(f"{name}.{suffix}", b"")
            if active:
                os.truncate(os.path.join(self.root, f"{name}.{suffix}"), INDEX_BYTES - INDEX_BYTES % entry)
        return base_offset + batches * RECORDS_PER_BATCH

    def _invent_batch(self) -> bytes:
        values = [
            f'{{"id":{self._rng.getrandbits(48)},"amount":{self._rng.randint(1, 99_999)}}}'
            for _ in range(RECORDS_PER_BATCH)
        ]
        return log_batch([value.encode() for value in values], 0, timestamp_ms=1_793_000_000_000)
