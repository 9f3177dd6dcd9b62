"""The newest state that a metadata directory or a snapshot gives, and how far it can be trusted (FACTS §7.1, §7.2).

The newest whole snapshot, by (epoch, offset), is read, then the log from its offset on; without a snapshot, the log
from offset 0. A problem with the files has one of three outcomes:

* an older, but true state: a snapshot is not whole (the next older one is tried); the log does not fit the snapshot
  because it begins later, ends earlier or is of an older epoch (the snapshot stands alone); the end of the log is torn;
  a transaction has no end. A sentence in ``problems`` says so, and the offset says how far the state goes;
* an error: a gap in the log, damage with sound batches behind it, a record that contradicts the state before it;
* an error, too: no snapshot, and no log from offset 0.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import CONTROL_RECORDS, MalformedMessageError
from reconciler.sources.kraft.batches import Batch, BrokenBatchError, Digest, RawRecord, find_batch, read_batches
from reconciler.sources.kraft.commitment import CommitTracker, voters_beside
from reconciler.sources.kraft.files import (
    SegmentFile,
    SnapshotFile,
    find_metadata_dir,
    list_files,
    name_snapshot,
    open_file,
)
from reconciler.sources.kraft.image import METADATA_VERSION, MetadataImage
from reconciler.sources.kraft.records import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, RecordDecoder, read_control_type
from reconciler.text import count

MOST_SEGMENT_BYTES = (1 << 31) - 1
"""``log.segment.bytes`` is an int32."""


@dataclass(slots=True)
class Replay:
    """The state that was read, and how far it goes.

    Attributes:
        image: the state itself.
        next_offset: the first offset that was not read.
        epoch: leader epoch of the last batch that was read.
        timestamp_ms: time of the newest record that was read, ms since 1970; None where no record has one.
        log_played: whether any record came from the log, whose end may be uncommitted.
        unknown_controls: the number of control records of each unknown type.
        problems: met while reading, one sentence each.
        ends_early: those of the problems by which the state ends before its log did. Who tells them names the folder.
        commitment: how far the records are surely committed.
    """

    image: MetadataImage = field(default_factory=MetadataImage)
    next_offset: int = 0
    epoch: int = 0
    timestamp_ms: int | None = None
    log_played: bool = False
    unknown_controls: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    ends_early: list[str] = field(default_factory=list)
    commitment: CommitTracker = field(default_factory=CommitTracker)
    _decoder: RecordDecoder = field(default_factory=RecordDecoder)

    @property
    def last_offset(self) -> int | None:
        """The last offset contained in the state; None where there is none."""
        waiting = self.image.open_transaction
        last = (self.next_offset if waiting is None else waiting[0]) - 1
        return last if last >= 0 else None

    def end_early(self, problem: str) -> None:
        """Note a problem by which the state ends before its log did."""
        self.problems.append(problem)
        self.ends_early.append(problem)

    @property
    def uncommitted(self) -> frozenset[bytes]:
        """IDs of topics that were created, removed or reassigned by records that may still be taken back."""
        return frozenset(
            topic_id for topic_id, offset in self.image.touched.items() if offset >= self.commitment.next_offset
        )

    def see_time(self, timestamp_ms: int) -> None:
        """Note the time of one more record; 0 and less mean that it has none."""
        if timestamp_ms > (self.timestamp_ms or 0):
            self.timestamp_ms = timestamp_ms

    def play(self, batch: Batch, start: int, path: str) -> list[int]:
        """Play the records of a batch from offset ``start`` on.

        Returns:
            The types of its control records.

        Raises:
            MetadataError: a record cannot be read, or contradicts the state; the message has the file and the offset.
        """
        offset = batch.base_offset
        controls = []
        try:
            for offset, record in enumerate(batch.records(), batch.base_offset):
                if offset < start:
                    continue
                if batch.is_control:
                    controls.append(self._control(record))
                elif record.key is not None:
                    raise MalformedMessageError("a data record with a key, as no metadata has it")
                else:
                    self.image.play(offset, record.value)
        except MetadataError as error:
            raise MetadataError(f"{path}: at offset {offset}: {error}") from error
        return controls

    def _control(self, record: RawRecord) -> int:
        number = read_control_type(record.key or b"")
        if number not in CONTROL_RECORDS:
            self.unknown_controls[number] += 1
            return number
        fields = self._decoder.decode_control(number, record.value)
        self.commitment.see_control(number, fields)
        if number == SNAPSHOT_HEADER:
            self.see_time(fields["lastContainedLogTimestamp"])
        return number

    def see_voters(self, batch: Batch) -> None:
        """Note the voters that a batch before the snapshot's end names; its other records are known already."""
        for record in batch.records() if batch.is_control else ():
            self._control(record)


def read(path: str, digest: Digest) -> Replay:
    """Read a metadata directory, the one in a log dir, or one snapshot by itself.

    ``digest`` takes every byte that is read.

    Raises:
        UsageError: no such path.
        MetadataError: there is no state, or none that can be trusted; the message says where and why.
    """
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file or directory")
    if os.path.isdir(path):
        replay = _read_folder(find_metadata_dir(path), digest)
    else:
        replay = read_snapshot(name_snapshot(path), digest)
        replay.end_early("it was read by itself: what the log says after it is not known")
    try:
        replay.image.check()
    except MetadataError as error:
        raise MetadataError(f"{path}: after offset {replay.last_offset}: {error}") from error
    waiting = replay.image.open_transaction
    if waiting is not None:
        began, records = waiting
        replay.end_early(
            f"the transaction that began at offset {began} has no end: {count(records, 'record')} of it left out"
        )
    replay.problems += _remarks(replay)
    return replay


def read_snapshot(snapshot: SnapshotFile, digest: Digest) -> Replay:
    """Read one snapshot: a header, the records, a footer, and nothing after it.

    Raises:
        MetadataError: it is not whole, not sound, or contradicts itself.
    """
    path, name = snapshot.path, snapshot.name
    replay = Replay(next_offset=name.offset, epoch=name.epoch, commitment=CommitTracker(name.offset))
    expected, footer_at = 0, -1
    with open_file(path) as (file, size):
        if size == 0:
            raise MetadataError(f"{path} is empty")
        try:
            for batch in read_batches(file, size, digest):
                if (batch.base_offset, batch.epoch) != (expected, name.epoch):
                    found = f"a batch of offset {batch.base_offset} and epoch {batch.epoch}"
                    raise MetadataError(f"{path}: {found} stands where {expected} and {name.epoch} must")
                controls = replay.play(batch, 0, path)
                if expected == 0 and controls[:1] != [SNAPSHOT_HEADER]:
                    raise MetadataError(f"{path} does not begin with the header of a snapshot")
                if SNAPSHOT_FOOTER in controls:
                    footer_at = expected + controls.index(SNAPSHOT_FOOTER)
                expected = batch.next_offset
        except BrokenBatchError as broken:
            raise MetadataError(f"{path} is not whole: at offset {expected} of the file: {broken}") from broken
    if footer_at < 0 or footer_at != expected - 1:
        raise MetadataError(f"{path} is not whole: it does not end with a footer, after {expected} records")
    if replay.image.open_transaction is not None:
        raise MetadataError(f"{path} ends within a transaction")
    replay.image.touched.clear()
    return replay


def _read_folder(folder: str, digest: Digest) -> Replay:
    files = list_files(folder)
    problems = list(files.problems)
    replay = _read_newest(files.snapshots, problems, digest)
    if replay is not None:
        replay.problems += problems
        replay.commitment.voters = replay.commitment.voters or voters_beside(folder)
        _play_log_after(replay, folder, files.segments, digest)
        newest = files.snapshots[0].name
        if newest.offset > replay.next_offset:
            replay.ends_early.append(f"the snapshot that ends at offset {newest.offset} cannot be read")
        return replay
    if not files.segments or files.segments[0].base_offset != 0:
        begins = f"begins at offset {files.segments[0].base_offset}" if files.segments else "is absent"
        reason = f"{folder}: the log {begins}, and no snapshot that can be read holds what came before"
        raise MetadataError("; ".join([reason, *problems]))
    replay = Replay(problems=problems)
    replay.commitment.voters = voters_beside(folder)
    _LogPlayer(replay, digest, start=0, snapshot_epoch=0, expected=0).play(files.segments)
    if not replay.log_played:
        raise MetadataError("; ".join([f"{folder} holds no snapshot, and a log without a sound batch", *problems]))
    return replay


def _read_newest(snapshots: Sequence[SnapshotFile], problems: list[str], digest: Digest) -> Replay | None:
    """Read the newest whole snapshot; add newer, broken snapshots to ``problems``."""
    for snapshot in snapshots:
        try:
            return read_snapshot(snapshot, digest)
        except MetadataError as error:
            problems.append(f"a snapshot was passed over: {error}")
    return None


def _play_log_after(replay: Replay, folder: str, segments: Sequence[SegmentFile], digest: Digest) -> None:
    """Play the log from the snapshot's end on, if the log fits the snapshot."""
    start = replay.next_offset
    # An empty segment was truncated, unless it is the last one, which may just have begun.
    holding = [segment for index, segment in enumerate(segments) if segment.size or index == len(segments) - 1]
    if not holding:
        replay.end_early(f"the log after the snapshot is absent: changes from offset {start} are unknown")
        return
    first = max((index for index, segment in enumerate(holding) if segment.base_offset <= start), default=None)
    if first is None:
        begins = f"the log begins at offset {holding[0].base_offset}, after the snapshot's end"
        replay.end_early(f"{begins}: changes from offset {start} are unknown")
        return
    player = _LogPlayer(replay, digest, start, replay.epoch, holding[first].base_offset)
    player.play(holding[first:])
    if player.expected < start:
        ends = f"the log ends at offset {player.expected}, before the snapshot's end"
        replay.end_early(f"{ends}: changes from offset {start} are unknown")


@dataclass(slots=True)
class _LogPlayer:
    """Plays segments in order into a replay.

    Attributes:
        replay: takes the records.
        digest: takes the bytes.
        start: records before this offset are known already.
        snapshot_epoch: epoch of the last known record.
        expected: the offset that the next batch must have.
        epoch: leader epoch of the previous batch.
    """

    replay: Replay
    digest: Digest
    start: int
    snapshot_epoch: int
    expected: int
    epoch: int = 0

    def play(self, segments: Sequence[SegmentFile]) -> None:
        """Play the segments up to the end, or to where the log is torn.

        Raises:
            MetadataError: a gap, an epoch that goes back, damage before the end, or a record that contradicts the
            state.
        """
        for index, segment in enumerate(segments):
            if segment.base_offset != self.expected:
                found = f"the segment begins at offset {segment.base_offset} where {self.expected} must follow"
                raise MetadataError(f"{segment.path}: the log has a gap or an overlap: {found}")
            if not self._play_segment(segment, is_last=not any(later.size for later in segments[index + 1 :])):
                return

    def _play_segment(self, segment: SegmentFile, *, is_last: bool) -> bool:
        """Play one segment; False: stop reading the log."""
        with open_file(segment.path) as (file, size):
            if size > MOST_SEGMENT_BYTES:
                raise MetadataError(
                    f"{segment.path} has {size} bytes, and no broker writes a segment of more than {MOST_SEGMENT_BYTES}"
                )
            try:
                return all(self._take(batch, segment.path) for batch in read_batches(file, size, self.digest))
            except BrokenBatchError as broken:
                found = f"at offset {self.expected}: {broken}"
                behind = find_batch(file, broken.position + 1, size, self.expected) if is_last else None
                if behind is not None or not is_last:
                    where = "in a later segment" if behind is None else f"at byte {behind}"
                    raise MetadataError(
                        f"{segment.path}: {found}, and sound batches stand behind it {where}"
                    ) from broken
        self.replay.end_early(
            f"{os.path.basename(segment.path)}: {found}: the log ends there, and later changes, if any, are lost"
        )
        return False

    def _take(self, batch: Batch, path: str) -> bool:
        """Play one batch if it is new; False: the log does not fit the snapshot."""
        which = f"a batch of offset {batch.base_offset} and epoch {batch.epoch}"
        if batch.base_offset != self.expected or batch.epoch < self.epoch:
            raise MetadataError(
                f"{path}: {which} follows on epoch {self.epoch} where offset {self.expected} must stand"
            )
        is_new = batch.next_offset > self.start
        if is_new and batch.epoch < self.snapshot_epoch:
            why = f"is older than the snapshot of epoch {self.snapshot_epoch}"
            self.replay.end_early(
                f"{os.path.basename(path)}: {which} {why}: the log was left behind, and only the snapshot counts"
            )
            return False
        if not is_new and batch.epoch > self.snapshot_epoch:
            raise MetadataError(f"{path}: {which} contradicts the snapshot, which ends in epoch {self.snapshot_epoch}")
        self.expected, self.epoch = batch.next_offset, batch.epoch
        if is_new:
            self.replay.play(batch, self.start, path)
            self.replay.next_offset, self.replay.epoch, self.replay.log_played = self.expected, self.epoch, True
            self.replay.see_time(batch.max_timestamp_ms)
            self.replay.commitment.see_batch(batch, self.replay.image.features.get(METADATA_VERSION, 0))
        else:
            self.replay.see_voters(batch)
        return True


def _remarks(replay: Replay) -> list[str]:
    """List the record types that are not known."""
    remarks = []
    for what, counts in (("record", replay.image.unknown_types), ("control record", replay.unknown_controls)):
        if counts:
            listed = ", ".join(f"{number} ({count(times, 'time')})" for number, times in sorted(counts.items()))
            remarks.append(f"{what} types that are not known were skipped: {listed}")
    return remarks
