"""Load metadata again when its files change, and keep the former metadata while the files cannot be read.

Files are compared by inode, size and time, which costs almost nothing. A source that took long to load is not loaded
again soon. The paths of a spec are found when it is loaded. So a source that is added to a folder is seen when another
source in the folder changes, or by the folder's own time. A live source has no files: it is asked at intervals, and
counts as changed when its answer differs.

A running KRaft controller writes a record every half second even if nothing happens (NoOpRecord), and many records that
are not about replicas: leaders, in-sync replicas, broker epochs. To load all metadata for each of them would keep a
machine busy. So when a KRaft log has only grown, its new end is first scanned for records that can change which
replicas a broker should hold. ``sources`` does the loading. Source: FACTS §7.4, §7.5.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from layout import meta_properties
from layout.topic import METADATA_DIR
from reconciler.desired import DesiredState
from reconciler.errors import MetadataError, ReconcilerError
from reconciler.protocol import KIP694_NUMBER
from reconciler.sources import candidates, load, split_spec
from reconciler.sources.kraft import (
    Batch,
    BrokenBatchError,
    RecordDecoder,
    find_metadata_dir,
    list_files,
    open_file,
    read_batches,
    read_frame,
)
from reconciler.sources.zookeeper import DATA_DIR

SHARE = 0.05
"""Greatest share of the time that is spent on loading."""

RETRY_S = 30.0
"""Seconds after which a source that could not be read is tried again, even if its files look the same."""

LIVE_S = 30.0
"""Seconds after which a live cluster or ZooKeeper is asked again."""

COPY_LAG_S = 30.0
"""Seconds by which files may lag behind what they are a copy of; files that stand still for longer are up to date."""

_RECEIVER = re.compile(r"@[0-9]{1,9}$")


class _FileStamp(NamedTuple):
    """Inode, size and time of a file; a change of the file changes them."""

    inode: int
    size: int
    modified_ns: int


class WatchedMetadata:
    """The desired states of some sources, loaded again when they change. Not thread-safe.

    Attributes:
        states: as loaded last.
        read_at: when they were last known to be what the source says, by the clock.
    """

    def __init__(
        self,
        specs: Sequence[str],
        states: Sequence[DesiredState],
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with states that were just loaded.

        Args:
            specs: ``scheme:path`` or paths, as :func:`reconciler.sources.load` takes them; none: nothing ever changes.
            states: loaded from the specs.
            say: called with a sentence when the metadata cannot be read, and when it can be read again.
            clock: returns seconds that never go back.
        """
        self.states = list(states)
        self._specs, self._say, self._clock = specs, say, clock
        self._trouble: str | None = None
        self._free_from = self._retry_at = 0.0
        self._is_live = any(not split_spec(spec)[0][0].is_path for spec in specs)
        self.read_at = self._clock()
        self._ask_at = self._clock() + LIVE_S
        self._files = self._listed()
        self._stamps = _stamps(self._files)

    def ask(self) -> None:
        """Ask a live source again at the next poll, as far as the share of time allows."""
        self._ask_at = self._clock()

    def poll(self, check: Callable[[Sequence[DesiredState]], object] = lambda _: None) -> bool:
        """Load the sources again if they changed; True: ``states`` is new.

        Args:
            check: raises a ReconcilerError for unusable states, which are refused like unreadable sources.
        """
        polled_at = self._clock()
        if self._trouble is not None:
            self._files = self._listed()
        now = _stamps(self._files)
        has_grown = now != self._stamps
        is_retry = self._trouble is not None and self._clock() >= self._retry_at
        is_due = self._trouble is None and self._is_live and self._clock() >= max(self._ask_at, self._free_from)
        if not (is_retry or is_due or self._is_changed(now)):
            # What cannot be read again holds on.
            if self._trouble is not None or (has_grown and now == self._stamps):
                self.read_at = polled_at
            elif not self._is_live and now == self._stamps:
                self.read_at = max(self.read_at, polled_at - COPY_LAG_S)
            return False
        is_same = is_due and now == self._stamps
        self._stamps = now
        began = self._clock()
        try:
            states = [state for spec in self._specs for state in load(spec)]
            check(states)
        except (ReconcilerError, OSError) as error:
            self.refuse(error)
            return False
        finally:
            self._free_from = self._clock() + (self._clock() - began) / SHARE
            self._ask_at = self._clock() + LIVE_S
        self._files = self._listed()
        self._stamps = {path: now.get(path, stamp) for path, stamp in _stamps(self._files).items()}
        is_news = not is_same or _digests(states) != _digests(self.states)
        if self._trouble is not None:
            self._say("the metadata can be read again")
        self._trouble, self.states, self.read_at = None, states, began
        return is_news

    def refuse(self, error: Exception) -> None:
        """Keep the former states because the new ones cannot be used, and say so once."""
        if self._trouble is None:
            self._say(f"the metadata cannot be read again, and what was known of it holds on: {error}")
        self._trouble = str(error)
        self._retry_at = self._clock() + RETRY_S

    def _listed(self) -> list[str]:
        """Return the files and folders that the specs stand for now; if that is not known, the former ones."""
        try:
            return [path for spec in self._specs for path in _files_of(spec)]
        except (ReconcilerError, OSError):
            return getattr(self, "_files", [])

    def _is_changed(self, now: dict[str, _FileStamp | None]) -> bool:
        return now != self._stamps and not self._is_quiet(now) and self._clock() >= self._free_from

    def _is_quiet(self, now: dict[str, _FileStamp | None]) -> bool:
        """Whether logs only grew by records that are not about replicas; if so, remember their new size."""
        read: dict[str, _FileStamp] = {}
        for path, stamp in now.items():
            before = self._stamps.get(path)
            if stamp == before:
                continue
            if stamp is None or before is None or stamp.inode != before.inode or not path.endswith(".log"):
                return False
            end = quiet_until(path, before.size, stamp.size) if stamp.size >= before.size else None
            if end is None:
                return False
            read[path] = stamp._replace(size=end)
        if now.keys() != self._stamps.keys():
            return False
        self._stamps = {**self._stamps, **read}
        return True


def _files_of(spec: str) -> Iterator[str]:
    """Yield the files that a spec is read from, and the folders that hold such files.

    Raises:
        ReconcilerError: the spec no longer stands for any source.
    """
    sources, path = split_spec(spec)
    if not sources[0].is_path:
        return
    if os.path.isdir(path) and not os.path.lexists(os.path.join(path, meta_properties.FILE_NAME)):
        yield path
    for source, found in candidates(sources, path):
        if source.scheme == "kraft" and os.path.isdir(found):
            folder = find_metadata_dir(found)
            yield folder
            yield os.path.join(os.path.dirname(os.path.abspath(folder)), meta_properties.FILE_NAME)
        elif os.path.isdir(found):
            yield from (found, os.path.join(found, DATA_DIR))
        else:
            yield found if os.path.lexists(found) else _RECEIVER.sub("", found)


def _digests(states: Sequence[DesiredState]) -> list[str]:
    return [state.identity.digest for state in states]


def _stamp(path: str) -> _FileStamp | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return _FileStamp(status.st_ino, status.st_size, status.st_mtime_ns)


def _stamps(paths: Iterable[str]) -> dict[str, _FileStamp | None]:
    """Return the stamps of files, and of the files in folders; None where there is no file."""
    stamps: dict[str, _FileStamp | None] = {}
    for path in paths:
        stamps[path] = _stamp(path)
        if os.path.basename(path) == METADATA_DIR:
            stamps[path] = None
            with suppress(ReconcilerError):
                files = list_files(path)
                each = (*(snapshot.path for snapshot in files.snapshots), *(segment.path for segment in files.segments))
                stamps.update({file: _stamp(file) for file in each})
        elif os.path.isdir(path):
            with suppress(OSError), os.scandir(path) as entries:
                stamps.update({entry.path: _stamp(entry.path) for entry in entries if entry.is_file()})
    return stamps


_PARTITION_CHANGE = 5
_OF_REPLICAS = frozenset({2, 3, 9, 23, 24, 25, KIP694_NUMBER})
"""TopicRecord, PartitionRecord, RemoveTopicRecord, the bounds of a transaction, which may contain any of them, and
KIP-694's DeleteTopicPartitionsRecord."""

_CHANGES_A_VERDICT = ("replicas", "removingReplicas", "addingReplicas", "directories")


def quiet_until(path: str, start: int, size: int) -> int | None:
    """Scan a segment from a batch on for records about replicas.

    ``start``: a position at which a batch begins.

    Returns:
        The position up to which no record is about replicas; it is before the end while a write is under way. None: a
        record is about replicas, or the segment cannot be read.
    """
    position = start
    try:
        with open_file(path) as (file, _):
            file.seek(start)
            try:
                for batch in read_batches(file, size - start):
                    if not _is_quiet(batch):
                        return None
                    position = file.tell()
            except BrokenBatchError:
                return position
    except MetadataError:
        return None
    return position


def _is_quiet(batch: Batch) -> bool:
    if batch.is_control:
        return True
    decoder = RecordDecoder()
    for record in batch.records():
        frame = read_frame(record.value)
        if frame.type in _OF_REPLICAS:
            return False
        if frame.type == _PARTITION_CHANGE:
            fields = decoder.decode(frame, record.value)
            if any(fields[name] is not None for name in _CHANGES_A_VERDICT):
                return False
    return True
