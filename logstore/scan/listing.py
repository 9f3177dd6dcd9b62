"""Lists a log dir, and sorts its entries: directories to scan, and rows for everything else.

A :class:`Folder` holds directories side by side whose names follow one rule: the log dir itself, its staging directory,
and in a log dir of ours also the tiers of a namespace, or the prefixes of the by-topic-id scheme. The listing itself
gives the type of each entry, which costs no call. No link is followed, and no replica's directory is opened.

A listing can be consumed while it goes on, batch by batch, so that workers scan the first directories meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from layout import checkpoint, clean_shutdown, meta_properties
from layout.directory_name import DirectoryKind, DirectoryName, parse, parse_by_topic_id, parse_staged, split_live
from layout.errors import InvalidNameError
from layout.scheme import (
    DEEPEST_TIER,
    INTENT_FILE,
    LEDGER_FILE,
    MARKER_FILE,
    REPAIR_BACKUP_PREFIX,
    RUN_JOURNAL_PREFIX,
    STAGING_DIR,
    UNCLEAN_FILE,
    Scheme,
    sibling_staging_root,
)
from layout.topic import NAMESPACE_SEPARATOR
from logstore.fs import TEMPORARY, kind_of_file, refusal
from logstore.log_dir import LOCK_FILE, find_lock_holder
from logstore.rows import Kind, MetadataState, Row, plain_row
from logstore.tunables import ENTRIES_AT_ONCE

_REPLACED_BY_RENAME = frozenset({meta_properties.FILE_NAME, "bootstrap.checkpoint", *checkpoint.OFFSET_CHECKPOINTS})
"""Files that are written under their name and ``.tmp``, then renamed (FACTS §2)."""

KNOWN_FILES = _REPLACED_BY_RENAME | {
    *(LOCK_FILE, clean_shutdown.FILE_NAME, "_rlmm_committed_offsets"),
    *(MARKER_FILE, UNCLEAN_FILE, INTENT_FILE, LEDGER_FILE),
}
"""Plain files that belong in a log dir (FACTS §1.1)."""

_LEFTOVERS = frozenset(f"{name}.tmp" for name in _REPLACED_BY_RENAME | {"_rlmm_committed_offsets"})

_LONGEST_WRITE = 60
"""Seconds for which the file may be on its way in a log dir whose broker runs: it writes each checkpoint anew at least
once a minute, and is done within that time or has failed (FACTS §2)."""


class NameRule(StrEnum):
    """The rule by which the names in a folder are parsed."""

    REPLICAS = "replicas"
    STAGED = "staged"
    BY_TOPIC_ID = "by-topic-id"


@dataclass(slots=True)
class Folder:
    """Directories side by side whose names follow one rule."""

    prefix: str
    """Stands before each name to give the path below the log dir: empty, or ending in ``/``."""
    path: str
    """Path of the folder, ending in ``/``."""
    rule: NameRule = NameRule.REPLICAS
    namespace: str = ""
    """Stands before each topic to give its full name: empty, or ending in ``:``."""
    names: list[str] = field(default_factory=list)
    inodes: list[int] = field(default_factory=list)

    def parse(self, name: str) -> DirectoryName:
        """Parse the name of a directory in this folder."""
        if self.rule is NameRule.STAGED:
            return parse_staged(name)
        return parse_by_topic_id(self.prefix + name) if self.rule is NameRule.BY_TOPIC_ID else parse(name)


class FolderBatch(NamedTuple):
    """Some directories of one folder."""

    folder: Folder
    names: list[str]
    inodes: list[int]
    replicas: list[tuple[str, int]] | None
    """Topic and partition of each name; None: these are not plain names of live replicas."""

    def part(self, first: int, end: int) -> FolderBatch:
        """Give the directories from number ``first`` up to ``end``."""
        replicas = None if self.replicas is None else self.replicas[first:end]
        return FolderBatch(self.folder, self.names[first:end], self.inodes[first:end], replicas)


@dataclass(slots=True)
class Listing:
    """All folders of one log dir, and rows for everything that is no directory."""

    places: list[Folder] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def list_log_dir(log_dir: str, scheme: Scheme | None) -> Listing:
    """List a log dir and its staging directory.

    The path has no slash at the end; ``scheme``: the layout of a log dir of ours; None for a real broker's.

    Raises:
        OSError: the log dir itself cannot be listed.
    """
    listing = Listing()
    for _ in list_in_batches(log_dir, scheme, listing, ENTRIES_AT_ONCE):
        pass
    return listing


def list_in_batches(log_dir: str, scheme: Scheme | None, listing: Listing, most: int) -> Iterator[FolderBatch]:
    """List a log dir and its staging directory, and yield batches while the listing goes on.

    The staging directory comes after the log dir, so a replica that is staged meanwhile is found in one of them.

    As :func:`list_log_dir`; ``listing`` is filled, the log dir as its first folder; ``most``: directories in a batch.

    Raises:
        OSError: the log dir itself cannot be listed.
    """
    root = Folder("", f"{log_dir}/")
    listing.places.append(root)
    # A log dir with tiers or prefixes must be listed whole before any directory is known to be a replica.
    at_once = scheme in {None, Scheme.FLAT}
    staging, handed_on = False, 0
    for number in _fill(root, listing, most):
        if scheme is not None and not staging:
            staging = _take_out(root, STAGING_DIR, number)
        if at_once and handed_on < len(root.names):
            yield from _split_by_name(root, handed_on, len(root.names))
            handed_on = len(root.names)
    if scheme is None:
        _list_sibling_staging(log_dir, listing)
    elif staging:
        _list_below(Folder(f"{STAGING_DIR}/", f"{log_dir}/{STAGING_DIR}/", NameRule.STAGED), listing)
    if scheme is Scheme.NAMESPACED:
        _list_tiers(root, listing, DEEPEST_TIER)
    elif scheme is Scheme.BY_TOPIC_ID:
        _list_prefixes(root, listing)
    yield from batches_of(listing.places[at_once:], most)


def batches_of(places: Iterable[Folder], most: int) -> Iterator[FolderBatch]:
    """Yield the directories of listed folders, at most ``most`` in a batch."""
    for folder in places:
        for first in range(0, len(folder.names), most):
            yield from _split_by_name(folder, first, first + most)


def _split_by_name(folder: Folder, first: int, end: int) -> Iterator[FolderBatch]:
    """Split directories of a folder into two batches: plain names of live replicas, as nearly all are, and others."""
    names, inodes = folder.names[first:end], folder.inodes[first:end]
    read = list(map(split_live, names)) if folder.rule is NameRule.REPLICAS else [None] * len(names)
    replicas = [replica for replica in read if replica is not None]
    if len(replicas) == len(names):
        yield FolderBatch(folder, names, inodes, replicas)
        return
    for live in (True, False):
        chosen = [index for index, replica in enumerate(read) if (replica is not None) == live]
        if chosen:
            some = [names[index] for index in chosen], [inodes[index] for index in chosen]
            yield FolderBatch(folder, *some, replicas if live else None)


def _fill(folder: Folder, listing: Listing, most: int) -> Iterator[int]:
    """Fill a folder with its directories, and make a row for everything else. Raises OSError.

    Yields after at most ``most`` entries each, with the number of directories before them.
    """
    with os.scandir(folder.path) as entries:
        while batch := list(islice(entries, most)):
            before = len(folder.names)
            for entry in batch:
                if entry.is_dir(follow_symlinks=False):
                    folder.names.append(entry.name)
                    folder.inodes.append(entry.inode())
                elif entry.is_symlink():
                    listing.rows.append(_link_row(folder, entry))
                elif not (entry.name in KNOWN_FILES and entry.is_file(follow_symlinks=False)):
                    row = _file_row(folder, entry)
                    if row is not None:
                        listing.rows.append(row)
            yield before


def _list_below(folder: Folder, listing: Listing) -> bool:
    """List a folder below or beside the log dir; return whether that worked. A failure gives a row."""
    try:
        for _ in _fill(folder, listing, ENTRIES_AT_ONCE):
            pass
    except FileNotFoundError:
        return False
    except OSError as error:
        name = folder.prefix.rstrip("/")
        problem = f"the directory {refusal(error)}; what lies in it is not known"
        listing.rows.append(plain_row(name, Kind.FOREIGN, metadata_state=MetadataState.UNREADABLE, problem=problem))
        return False
    listing.places.append(folder)
    return True


def _list_sibling_staging(log_dir: str, listing: Listing) -> None:
    """List ``<log dir>.deleting``, where a real broker's replicas are staged, if it is a directory."""
    try:
        root = sibling_staging_root(log_dir)
        if not os.path.isdir(root) or os.path.islink(root):
            return
    except InvalidNameError:
        return
    prefix = f"../{os.path.basename(root)}/"
    _list_below(Folder(prefix, f"{root}/", NameRule.STAGED), listing)


def _list_tiers(folder: Folder, listing: Listing, deepest: int) -> None:
    """Follow the directories of a folder that hold a tier's marker file, whatever their names."""
    tiers = [name for name in folder.names if _is_plain_file(f"{folder.path}{name}/{MARKER_FILE}")]
    for tier in tiers:
        if deepest:
            _take_out(folder, tier)
            namespace = f"{folder.namespace}{tier}{NAMESPACE_SEPARATOR}"
            below = Folder(f"{folder.prefix}{tier}/", f"{folder.path}{tier}/", namespace=namespace)
            if _list_below(below, listing):
                _list_tiers(below, listing, deepest - 1)


def _list_prefixes(root: Folder, listing: Listing) -> None:
    """Follow the two-digit directories of the by-topic-id scheme. Other directories stay in the root folder."""
    for prefix in [name for name in root.names if len(name) == 2 and not set(name) - set("0123456789abcdef")]:
        _take_out(root, prefix)
        _list_below(Folder(f"{prefix}/", f"{root.path}{prefix}/", NameRule.BY_TOPIC_ID), listing)


def _take_out(folder: Folder, name: str, start: int = 0) -> bool:
    """Remove a directory from a folder's list, from number ``start`` on; return False when it is not listed."""
    try:
        index = folder.names.index(name, start)
    except ValueError:
        return False
    del folder.names[index], folder.inodes[index]
    return True


def _is_plain_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _link_row(folder: Folder, entry: os.DirEntry[str]) -> Row:
    """Make a row for a link from its name. A link is never followed: its target is not part of this log dir."""
    name = folder.prefix + entry.name
    if entry.name in KNOWN_FILES:
        problem = "a symbolic link in place of a file; a broker follows it, this scan does not"
        return plain_row(name, Kind.FOREIGN, problem=problem, inode=entry.inode())
    read = folder.parse(entry.name)
    if read.kind is DirectoryKind.FOREIGN:
        problem = f"a symbolic link, not followed; if it leads to a directory, {read.problem}"
        return plain_row(name, Kind.FOREIGN, problem=problem, inode=entry.inode())
    topic = None if read.topic is None else folder.namespace + read.topic
    return plain_row(
        name,
        str(read.kind),
        topic=topic,
        partition=read.partition,
        metadata_state=MetadataState.UNREADABLE,
        problem="a symbolic link: a broker would follow it, this scan does not",
        inode=entry.inode(),
    )


def _file_row(folder: Folder, entry: os.DirEntry[str]) -> Row | None:
    """Make a row for an entry that is no directory, no link and no file that belongs here.

    None: it vanished, is a file of ours that needs no row, or a broker is just writing it.
    """
    name = folder.prefix + entry.name
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        return plain_row(name, Kind.FOREIGN, problem=f"the entry {refusal(error)}", inode=entry.inode())
    what = kind_of_file(status.st_mode)
    if entry.name in _LEFTOVERS and entry.is_file(follow_symlinks=False):
        if _is_being_written(folder, status):
            return None
        problem = "left over from a write that did not finish; a broker ignores it and overwrites it"
        return plain_row(name, Kind.LEFTOVER, problem=problem, inode=entry.inode())
    ours = entry.name.startswith((REPAIR_BACKUP_PREFIX, RUN_JOURNAL_PREFIX)) or entry.name.endswith(TEMPORARY)
    if ours and entry.is_file(follow_symlinks=False):
        return None  # the backup of a repair, the journal of a run, or a file of ours that is being written
    if entry.name in KNOWN_FILES:
        problem = f"{what} in place of a file that a broker reads"
    else:
        problem = f"{what} that does not belong to a log dir; a broker ignores whatever is no directory"
    return plain_row(name, Kind.FOREIGN, problem=problem, inode=entry.inode())


def _is_being_written(folder: Folder, status: os.stat_result) -> bool:
    """Whether a temporary file is so young that the broker which holds the log dir may be writing it."""
    if time.time() - status.st_mtime > _LONGEST_WRITE:
        return False
    return find_lock_holder(folder.path.rstrip("/"), search=False) is not None
