"""Drills the reader of KRaft metadata: files as a controller leaves them, whole, behind, cut or damaged.

No broker of a history keeps KRaft metadata, so its reader is never asked there. Here a log is drawn with what the
cluster is after each batch (``drawn_log``), written as segments, with snapshots or without, and perhaps damaged. What
is read must be what the cluster was at one of its batches: the last one that can be had. How far that is, whether it
ends early, as of when it speaks and what may be taken back is compared too. Source: FACTS §7.1, §7.2; DESIGN §7.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from layout.segment_name import FileKind, metadata_snapshot_name, segment_file_name
from layout.topic import METADATA_DIR
from logstore.fs import Directory, Disk, make_directory, write_new_file
from logstore.fs.crash_disk import memory_folder
from reconciler.desired import DesiredState
from reconciler.errors import MetadataError
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.metadata.drawn_log import LEVEL_3_7, DrawnBatch, Truth, draw_log, snapshot
from reconciler.sources.kraft import load

_LONGEST: Final = 16
"""Batches of a log."""

_CHECKED_FROM: Final = 17
"""The first byte of a batch whose damage its checksum shows: the checksum itself."""

_PROVEN_MS: Final = 60_000


def drill_metadata(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill the reader as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: it does not read what was written.
    """
    random = Random(f"{seed}/metadata drill")
    for _ in range(steps // _STEPS_PER_LOG):
        with memory_folder() as folder:
            files = _Files(random, draw_log(random, random.randint(2, _LONGEST)))
            files.draw()
            files.write(folder)
            reach(f"drill_metadata {files.damage}")
            _check(files, folder)


_STEPS_PER_LOG: Final = 14
"""Steps of the drill for each log that is drawn."""


@dataclass(slots=True)
class _Expected:
    """What is to be read.

    Attributes:
        truth: of the cluster; None: nothing may be read.
        end: the offset up to which records are read.
        epoch: of the last one.
        time_ms: of the newest one.
        ends_early: whether something says that the log goes on.
        committed: the offset up to which records are surely committed.
        begun: the offset at which an open transaction began; None: none is open.
        from_log: whether records of the log are read.
    """

    truth: Truth | None = None
    end: int = 0
    epoch: int = 0
    time_ms: int = 0
    ends_early: bool = False
    committed: int = 0
    begun: int | None = None
    from_log: bool = False


class _Files:
    """The files of one metadata directory, and what is to be read from them.

    Attributes:
        damage: what was done to them.
    """

    def __init__(self, random: Random, log: list[DrawnBatch]) -> None:
        self._random, self._log = random, log
        self._contents, self._starts = dict[str, bytes](), list[int]()
        self.damage = "none"
        self.expected = _Expected()

    def draw(self) -> None:
        """Draw a snapshot or none, how far back the log goes, and what is damaged."""
        random, log = self._random, self._log
        whole = [place for place, each in enumerate(log) if each.begun is None]
        taken = random.choice(whole) if random.random() < 0.6 else None
        first = 0 if taken is None else random.choice((0, random.randint(0, taken + 1), taken + 1))
        kept, behind = log[first:], taken is not None and random.random() < 0.2
        epoch = 0 if taken is None else log[taken].epoch + behind * (log[-1].epoch + 1)
        if taken is not None:
            content = snapshot(log[taken].truth, epoch, log[taken].time_ms)
            self._contents[metadata_snapshot_name(log[taken].end, epoch)] = content
        if behind:
            self.damage = "log of an older epoch"
        else:
            kept = self._damaged(kept, len(log[: (taken or 0) + 1]) - first)
        self._write_segments(kept, log[first].start if first < len(log) else log[-1].end)
        if self.expected.truth is None and self.damage != "middle":
            self._expect(taken, first, len(kept), epoch, behind=behind)

    def _damaged(self, kept: list[DrawnBatch], known: int) -> list[DrawnBatch]:
        """Damage the batches of the log, or leave them; ``known``: how many of them the snapshot holds too."""
        random, damage = self._random, self._random.choice(("none", "none", "cut", "flipped", "middle"))
        if len(kept) < 2 or known >= len(kept) - 1 or damage == "none":
            return kept
        self.damage, place = damage, len(kept) - 1 if damage != "middle" else random.randrange(known, len(kept) - 1)
        hurt = kept[place].data
        if damage == "cut":
            hurt = hurt[: random.randrange(1, len(hurt))]
        else:
            at = random.randrange(_CHECKED_FROM, len(hurt))
            hurt = hurt[:at] + bytes([hurt[at] ^ (1 << random.randrange(8))]) + hurt[at + 1 :]
        return [*kept[:place], kept[place]._replace(data=hurt), *kept[place + 1 :]]

    def _write_segments(self, kept: Sequence[DrawnBatch], start: int) -> None:
        cuts = sorted({0, *(self._random.randrange(len(kept)) for _ in range(2))}) if kept else [0]
        for begin, end in zip(cuts, [*cuts[1:], len(kept)], strict=True):
            offset = kept[begin].start if kept else start
            self._starts.append(offset)
            self._contents[segment_file_name(offset, FileKind.LOG)] = b"".join(each.data for each in kept[begin:end])

    def _expect(self, taken: int | None, first: int, number: int, epoch: int, *, behind: bool) -> None:
        """Say what is to be read: the last batch before the damage, or the snapshot."""
        log, expected = self._log, self.expected
        last = first + number - 1 - (self.damage in ("cut", "flipped"))
        last = taken if behind and taken is not None else max(last, -1 if taken is None else taken)
        at = log[last]
        expected.truth, expected.end, expected.time_ms = at.truth, at.end, at.time_ms
        new = log[(-1 if taken is None else taken) + 1 : last + 1]
        expected.from_log, expected.begun = bool(new), at.begun
        expected.epoch = at.epoch if new else epoch
        goes_on = last < len(log) - 1
        expected.ends_early = goes_on or at.begun is not None
        end = 0 if taken is None else log[taken].end
        # Reading begins with the segment in which the snapshot ends.
        begin = max((each for each in self._starts if each <= end), default=0)
        expected.committed = _committed([each for each in log[first : last + 1] if each.start >= begin], new, end)

    def write(self, folder: str) -> None:
        """Write the files."""
        with Directory.open(folder) as root, make_directory(Disk(), root, METADATA_DIR) as inside:
            for name, content in self._contents.items():
                write_new_file(Disk(), inside, name, content, durable=False)

    def __str__(self) -> str:
        return f"{', '.join(sorted(self._contents))} (damage: {self.damage})"


def _committed(seen: Sequence[DrawnBatch], new: Sequence[DrawnBatch], start: int) -> int:
    """How far the log proves itself committed: its leader is the only voter, or went on for a minute."""
    place = next((place for place, each in enumerate(seen) if each.names_voters), None)
    if place is not None and seen[place].voters == 1 and new:
        return seen[-1].end
    proven = start
    for place, late in enumerate(new):
        if late.truth.level >= LEVEL_3_7:
            of_epoch = [each for each in new[:place] if each.epoch == late.epoch]
            proven = max([proven, *(each.end for each in of_epoch if late.time_ms - each.time_ms >= _PROVEN_MS)])
    return proven


def _check(files: _Files, folder: str) -> None:
    expected = files.expected
    try:
        state = load(os.path.join(folder, METADATA_DIR))
    except MetadataError as error:
        if expected.truth is not None:
            raise BrokenInvariantError(f"{files} cannot be read: {error}") from error
        return
    if expected.truth is None:
        raise BrokenInvariantError(f"{files} is read, though sound batches stand behind the damage")
    identity = state.identity
    doubtful = {str(each) for each, offset in expected.truth.touched.items() if offset >= expected.committed}
    last = (expected.end if expected.begun is None else expected.begun) - 1
    has_tail = expected.from_log and expected.end > expected.committed
    for what, found, wanted in (
        ("the last offset", identity.offset, last),
        ("the epoch", identity.epoch, expected.epoch),
        ("the time", identity.timestamp_ms, expected.time_ms),
        ("that it ends early", bool(identity.ends_early), expected.ends_early),
        ("that it may be taken back", identity.tail_uncommitted, has_tail),
        ("what may be taken back", set(identity.uncommitted), doubtful),
        ("metadata.version", identity.metadata_version, expected.truth.level or None),
        ("the topics", _rows(state, "topics"), _topics(expected.truth)),
        ("the replicas", _rows(state, "replicas"), _replicas(expected.truth)),
        ("the brokers", _rows(state, "brokers"), _brokers(expected.truth)),
    ):
        if found != wanted:
            raise BrokenInvariantError(f"of {files} up to offset {expected.end}, {what} is {found}, and not {wanted}")


def _rows(state: DesiredState, table: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(each.values()) for each in getattr(state, table).to_pylist()), key=str)


def _topics(truth: Truth) -> list[tuple[Any, ...]]:
    counts = {each: sum(key[0] == each for key in truth.partitions) for each in truth.topics}
    return sorted(((name, str(each), counts[each]) for each, name in truth.topics.items()), key=str)


def _replicas(truth: Truth) -> list[tuple[Any, ...]]:
    found = list[tuple[Any, ...]]()
    for (topic_id, number), each in truth.partitions.items():
        in_sync = next((some for some in (each.isr, each.eligible, each.last_known) if some), ())
        for place, node in enumerate(each.replicas):
            home = str(each.homes[place]) if each.homes else None
            roles = (node == each.leader, node in in_sync, len(in_sync), node in each.adding, node in each.removing)
            epochs = each.leader_epoch, each.partition_epoch
            found.append((truth.topics[topic_id], str(topic_id), number, node, home, *roles, *epochs))
    return sorted(found, key=str)


def _brokers(truth: Truth) -> list[tuple[Any, ...]]:
    nodes = truth.nodes.items()
    return sorted(((number, each.epoch, each.fenced, list(map(str, each.homes))) for number, each in nodes), key=str)
