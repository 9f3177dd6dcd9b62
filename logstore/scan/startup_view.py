"""Reads the names and small files that a starting broker reads in each directory of a log dir, and a scan does not.

A starting broker also fails on a file whose name should be a number, on an unreadable file, and on a damaged
``leader-epoch-checkpoint``. These are reported for every directory at the top of a log dir, because only those exist
for a broker, whatever the log dir's scheme. Nothing is changed: no link is followed, no FIFO waited for, no file read
beyond a limit, and of long lists only the beginning is kept. ``layout`` says what a broker does about damage, and
``reconciler`` judges it. Source: FACTS §1.6, §1.9, §2.1, §2.5, §2.8, §7.2.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from layout import checkpoint, json_text, meta_properties, partition_metadata, quorum_state, segment_name
from layout.directory_name import DirectoryKind, parse
from layout.errors import BrokerEffect, DamagedFileError, InvalidNameError
from layout.segment_name import FileKind, Transient
from logstore.errors import UnreadableFileError
from logstore.fs import DIRECTORY_FLAGS, read_small_file, refusal
from logstore.log_dir import CHECKPOINT_LIMIT, LOCK_FILE
from logstore.parallel import AdaptiveThreadPool, map_chunks
from logstore.rows import utf8
from logstore.scan.closed import Denied, denied_to_owner, judge_file, knows_owner, may
from logstore.scan.duplicates import LEADER_EPOCH_LIMIT
from logstore.scan.metadata_file import MetadataFile, read_metadata_file
from logstore.tunables import DIRECTORIES_PER_PIECE, WAITS_PAY_THREADS_FROM

METADATA_LOG = "__cluster_metadata-0"
"""KRaft's own log, a directory of one log dir."""

KEPT = 20
"""Names kept of each sort; there may be as many as files."""

_QUORUM_STATE_LIMIT = 1 << 20
_USUAL_ENDS = (FileKind.LOG.value, FileKind.OFFSET_INDEX.value, FileKind.TIME_INDEX.value)
_READ_HERE = (checkpoint.LEADER_EPOCH_CHECKPOINT, partition_metadata.FILE_NAME, quorum_state.FILE_NAME)
_NO_SNAPSHOT = "it begins with no 20 digits, a separator and 10 digits, so it names no metadata snapshot"
_LOADED = frozenset({DirectoryKind.LIVE, DirectoryKind.FUTURE, DirectoryKind.DELETE, DirectoryKind.STRAY})


@dataclass(frozen=True, slots=True)
class FileDamage:
    """A file that a broker cannot use, and the effect on the broker."""

    file: str
    problem: str
    """One clause without a full stop."""
    effect: BrokerEffect


@dataclass(slots=True)
class DirectorySeen:
    """One directory, or link, at the top of a log dir."""

    name: str
    """As the system gives it; bytes that are not UTF-8 are surrogates."""
    kind: DirectoryKind
    is_link: bool = False
    obstacle: str | None = None
    """Why it cannot be read, in one clause."""
    denied: Denied = Denied.NOTHING
    """What the owner of the log dir may not do in it, though this user may."""
    denied_files: dict[Denied, str] = field(default_factory=dict)
    """The first file in it that the owner of the log dir may not read, and the first that it may read and not write."""
    metadata: MetadataFile = field(default_factory=MetadataFile)
    damage: list[FileDamage] = field(default_factory=list)
    odd_names: list[tuple[str, str]] = field(default_factory=list)
    """Names on which a broker fails, each with the reason."""
    unreadable: list[str] = field(default_factory=list)
    """Files that this process may not read."""
    links: list[str] = field(default_factory=list)
    """Links, which a broker follows and this module does not."""
    leftovers: dict[Transient, int] = field(default_factory=dict)
    """Number of files of each transient suffix."""
    segments: int = 0
    first_offset: int | None = None
    """The smallest base offset of a segment."""
    last_snapshot: int | None = None
    """The greatest end offset of a complete metadata snapshot; in the metadata log only."""
    quorum_layout: int | None = None
    """``data_version`` of a sound ``quorum-state``; in the metadata log only."""

    @property
    def shown(self) -> str:
        """The name as it stands in the rows of a scan."""
        return utf8(self.name)


def look_into_directories(log_dir: str) -> list[DirectorySeen]:
    """Read every directory at the top of a log dir; return them sorted by name.

    Raises:
        OSError: the log dir itself cannot be listed.
    """
    names: list[tuple[str, bool]] = []
    with os.scandir(log_dir) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                names.append((entry.name, False))
            elif entry.is_symlink():
                names.append((entry.name, True))
    names.sort()
    status = os.stat(log_dir)

    def look_into_piece(piece: Sequence[tuple[str, bool]]) -> list[DirectorySeen]:
        seen = (_look_into(log_dir, status, name, is_link) for name, is_link in piece)
        return [each for each in seen if each is not None]

    with AdaptiveThreadPool(look_into_piece) as pool:
        return map_chunks(pool, names, DIRECTORIES_PER_PIECE, WAITS_PAY_THREADS_FROM)


def damaged_checkpoints(log_dir: str) -> list[FileDamage]:
    """Find the offset checkpoints of a log dir that a broker cannot use. Never raises."""
    found = []
    for file in checkpoint.OFFSET_CHECKPOINTS:
        try:
            checkpoint.parse_offsets(read_small_file(f"{log_dir}/{file}", CHECKPOINT_LIMIT) or b"", file)
        except UnreadableFileError as error:
            found.append(FileDamage(file, str(error), BrokerEffect.LOG_DIR_OFFLINE))
        except DamagedFileError as error:
            found.append(FileDamage(file, error.problem, error.effect))
    return found


def denied_files(log_dir: str) -> dict[Denied, str]:
    """Find what the owner of a log dir may not do with files at its top, each with the first of them. Never raises."""
    try:
        directory = os.open(log_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        status = os.fstat(directory)
        if not knows_owner(status):
            return {}
        names = (*checkpoint.OFFSET_CHECKPOINTS, meta_properties.FILE_NAME, LOCK_FILE)
        there = (name for name in names if _is_there(directory, name))
        judged = {judge_file(directory, name, status, is_written=name == LOCK_FILE)[1]: name for name in there}
        return {denied: name for denied, name in judged.items() if denied is not Denied.NOTHING}
    finally:
        os.close(directory)


def _look_into(log_dir: str, status: os.stat_result, name: str, is_link: bool) -> DirectorySeen | None:
    """Read one directory or link; None: it vanished meanwhile."""
    seen = DirectorySeen(name, parse(name).kind, is_link)
    if is_link or not (seen.kind in _LOADED or name == METADATA_LOG):
        return seen
    try:
        descriptor = os.open(f"{log_dir}/{name}", DIRECTORY_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        seen.obstacle = f"the directory {refusal(error)}"
        return seen
    judged = status if knows_owner(status) else None
    try:
        seen.denied = denied_to_owner(descriptor, status)
        with os.scandir(descriptor) as entries:
            for entry in entries:
                _take_entry(seen, descriptor, entry, judged)
        if partition_metadata.FILE_NAME not in seen.links:
            seen.metadata = read_metadata_file(directory=descriptor)
        _read_leader_epochs(seen, descriptor)
        if name == METADATA_LOG:
            _read_quorum_state(seen, descriptor)
    except OSError as error:
        seen.obstacle = f"the directory {refusal(error)}"
    finally:
        os.close(descriptor)
    seen.odd_names.sort()
    seen.unreadable.sort()
    seen.links.sort()
    return seen


def _take_entry(seen: DirectorySeen, descriptor: int, entry: os.DirEntry[str], judged: os.stat_result | None) -> None:
    """Record one entry of a partition dir. A broker ignores whatever is neither a plain file nor a link.

    ``judged``: status of the log dir whose owner's rights are looked at; None: they are not known.
    """
    name = entry.name
    if entry.is_symlink():
        _keep_name(seen.links, name)
        return
    if not entry.is_file(follow_symlinks=False):
        return
    # The system checks the permissions, so that no segment has to be opened.
    if judged is None:
        may_read, denied = may(descriptor, name), Denied.NOTHING
    else:
        may_read, denied = judge_file(descriptor, name, judged, is_written=name.endswith(_USUAL_ENDS))
    if not may_read and _is_there(descriptor, name):
        _keep_name(seen.unreadable, name)
    if denied is not Denied.NOTHING:
        seen.denied_files[denied] = min(utf8(name), seen.denied_files.get(denied, utf8(name)))
    stem = name.partition(".")[0]
    if name.endswith(_USUAL_ENDS) and len(stem) == 20 and stem.isascii() and stem.isdecimal() and name.count(".") == 1:
        if name.endswith(FileKind.LOG.value):
            _count_segment(seen, int(stem))
        return
    _take_other_file(seen, name)
    if seen.name == METADATA_LOG:
        _take_snapshot(seen, name)


def _take_other_file(seen: DirectorySeen, name: str) -> None:
    """Record a file that is no plainly named segment or index."""
    read = segment_name.parse(name)
    if read.problem is not None:
        if len(seen.odd_names) < KEPT:
            seen.odd_names.append((utf8(name), read.problem))
    elif read.transient is not None:
        seen.leftovers[read.transient] = seen.leftovers.get(read.transient, 0) + 1
    elif read.kind is FileKind.LOG and read.offset is not None:
        _count_segment(seen, read.offset)


def _is_there(descriptor: int, name: str) -> bool:
    """Say whether a file is still there: a live broker deletes segments meanwhile."""
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def _count_segment(seen: DirectorySeen, offset: int) -> None:
    seen.segments += 1
    seen.first_offset = offset if seen.first_offset is None else min(offset, seen.first_offset)


def _take_snapshot(seen: DirectorySeen, name: str) -> None:
    """Parse the name of a metadata snapshot as a broker does (FACTS §7.2)."""
    try:
        snapshot = segment_name.parse_metadata_snapshot(name)
    except InvalidNameError:
        if len(seen.odd_names) < KEPT:
            seen.odd_names.append((utf8(name), _NO_SNAPSHOT))
        return
    if snapshot is not None and not snapshot.partial and not snapshot.deleted:
        seen.last_snapshot = max(snapshot.offset, seen.last_snapshot or 0)


def _keep_name(names: list[str], name: str) -> None:
    if len(names) < KEPT or name in _READ_HERE:
        names.append(utf8(name))


def _read_leader_epochs(seen: DirectorySeen, descriptor: int) -> None:
    file = checkpoint.LEADER_EPOCH_CHECKPOINT
    if file in seen.links:
        return
    try:
        checkpoint.parse_leader_epochs(read_small_file(file, LEADER_EPOCH_LIMIT, descriptor) or b"")
    except UnreadableFileError as error:
        seen.damage.append(FileDamage(file, str(error), BrokerEffect.LOG_DIR_OFFLINE))
    except DamagedFileError as error:
        seen.damage.append(FileDamage(file, error.problem, error.effect))


def _read_quorum_state(seen: DirectorySeen, descriptor: int) -> None:
    """Read ``quorum-state`` and its layout, one of two; without the file there is no state."""
    file = quorum_state.FILE_NAME
    if file in seen.links:
        return
    try:
        data = read_small_file(file, _QUORUM_STATE_LIMIT, descriptor)
        if data is None:
            return
        quorum_state.parse(data)
        layout = json_text.parse_object(data.splitlines()[0], file).get("data_version")
    except UnreadableFileError as error:
        seen.damage.append(FileDamage(file, str(error), BrokerEffect.STARTUP_ABORTS))
    except DamagedFileError as error:
        seen.damage.append(FileDamage(file, error.problem, error.effect))
    else:
        seen.quorum_layout = layout if isinstance(layout, int) else None
