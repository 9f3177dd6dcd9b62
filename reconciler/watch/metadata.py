"""Metadata that is loaded again when its files change, and kept when they cannot be read for a moment.

Files are compared by inode, size and time, which costs next to nothing; of a KRaft log that only grew, the new end is
looked through first (``metadata_tail``). What took long to load is not loaded again soon. Which paths a spec means is
found out when it is loaded, so a source that is added to a folder is seen when one that is in it changes, or with the
folder's own time. A live source has no files: it is asked again every so often, and new when it says something else.

Whether what was added to a KRaft log can change which replicas a broker should hold.

A controller that is alive writes a record every half second though nothing happens (a NoOpRecord), and many that say
nothing of replicas: leaders, in-sync replicas, broker epochs. To load all metadata for each of these would keep a
machine busy, so the new end of the log is looked through first. Loading is left to ``sources``.
Source: FACTS §7.4, §7.5.
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
from reconciler.sources import candidates, load, split_spec
from reconciler.sources.kraft import (
    Batch,
    BrokenBatchError,
    RecordDecoder,
    WireError,
    find_metadata_dir,
    list_files,
    open_file,
    read_batches,
    read_frame,
)
from reconciler.sources.zookeeper import DATA_DIR

SHARE = 0.05
"""Of the time, at most this part goes into loading."""

RETRY_S = 30.0
"""What could not be read is tried again after so long, also when it looks the same."""

LIVE_S = 30.0
"""A live cluster or ZooKeeper is asked again after so long."""

_RECEIVER = re.compile(r"@[0-9]{1,9}$")


class _FileStamp(NamedTuple):
    """Tells whether a file changed."""

    inode: int
    size: int
    modified_ns: int


class WatchedMetadata:
    """See the module. Of one thread.

    Attributes:
        states: as they were loaded last.
    """

    def __init__(
        self,
        specs: Sequence[str],
        states: Sequence[DesiredState],
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what was loaded just now.

        Args:
            specs: ``scheme:path`` or paths, as :func:`reconciler.sources.load` takes them; none: nothing ever changes.
            states: what they said.
            say: takes a sentence when the metadata cannot be read, and one when it can be again.
            clock: seconds that only go forward.
        """
        self.states = list(states)
        self._specs, self._say, self._clock = specs, say, clock
        self._trouble: str | None = None
        self._free_from = self._retry_at = 0.0
        self._is_live = any(not split_spec(spec)[0][0].is_path for spec in specs)
        self._ask_at = self._clock() + LIVE_S
        self._files = self._listed()
        self._stamps = _stamps(self._files)

    def poll(self, check: Callable[[Sequence[DesiredState]], object] = lambda _: None) -> bool:
        """Load again what changed; True: it was loaded, and ``states`` is new.

        Args:
            check: raises a ReconcilerError for states that cannot be used; these are refused like what cannot be read.
        """
        if self._trouble is not None:
            self._files = self._listed()
        now = _stamps(self._files)
        is_retry = self._trouble is not None and self._clock() >= self._retry_at
        is_due = self._trouble is None and self._is_live and self._clock() >= max(self._ask_at, self._free_from)
        if not (is_retry or is_due or self._is_changed(now)):
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
        self._trouble, self.states = None, states
        return is_news

    def refuse(self, error: Exception) -> None:
        """What was loaded cannot be used, so what was known before holds; this is said once."""
        if self._trouble is None:
            self._say(f"the metadata cannot be read again, and what was known of it holds on: {error}")
        self._trouble = str(error)
        self._retry_at = self._clock() + RETRY_S

    def _listed(self) -> list[str]:
        """The files and folders that the specs mean now; where that cannot be told, those that they meant before."""
        try:
            return [path for spec in self._specs for path in _files_of(spec)]
        except (ReconcilerError, OSError):
            return getattr(self, "_files", [])

    def _is_changed(self, now: dict[str, _FileStamp | None]) -> bool:
        return now != self._stamps and not self._is_quiet(now) and self._clock() >= self._free_from

    def _is_quiet(self, now: dict[str, _FileStamp | None]) -> bool:
        """Whether logs only grew, by what says nothing of replicas; then that is known from now on."""
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
    """The files that a spec is read from, and the folders that hold them or more of them.

    Raises:
        ReconcilerError: the spec means nothing any more.
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
    """The stamps of files, and of what lies in folders; None where there is nothing."""
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
_OF_REPLICAS = frozenset({2, 3, 9, 23, 24, 25})
"""TopicRecord, PartitionRecord, RemoveTopicRecord, and the bounds of a transaction, which may hold any of them back."""

_CHANGES_A_VERDICT = ("replicas", "removingReplicas", "addingReplicas", "directories")


class _NoDigest:
    """Takes the bytes of a log that is looked through and not loaded."""

    def update(self, data: bytes, /) -> None:
        """Take nothing."""


def quiet_until(path: str, start: int, size: int) -> int | None:
    """Look through the batches of a segment from one on.

    Args:
        path: of the segment.
        start: byte at which a batch begins.
        size: bytes of the segment.

    Returns:
        The byte up to which nothing was said of replicas, which is before the end where a write goes on; None where
        something was said, or where it cannot be told.
    """
    position = start
    try:
        with open_file(path) as (file, _):
            file.seek(start)
            try:
                for batch in read_batches(file, size - start, _NoDigest()):
                    if not _is_quiet(batch):
                        return None
                    position = file.tell()
            except BrokenBatchError:
                return position
    except (MetadataError, WireError):
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
