"""What must never happen to a replica, as functions over the tree before and the tree after.

A replica is identified by what it is and not by where it lies: its topic ID, its partition, and a digest of its files.
So the same functions hold for every scheme, for live and staged replicas, and across log dirs. Files that the engine
may write into a partition dir, the topic ID's and the records, are no part of the digest; :func:`assert_restorable`
holds a restored replica to every byte.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from layout import partition_metadata
from layout.directory_name import DirectoryKind, parse, parse_by_topic_id, parse_staged
from layout.errors import DamagedFileError
from layout.ours import StagedRecord, move_record, staged_record
from layout.scheme import STAGING_DIR
from tests.crash.images import Tree, difference, digest, read_tree

_NOT_COUNTED = {partition_metadata.FILE_NAME, staged_record.STAGED_RECORD, move_record.MOVE_RECORD}
_SEGMENT = re.compile(r"[0-9]{20}\.log")


@dataclass(frozen=True, order=True, slots=True)
class Replica:
    """What makes a replica this one and no other; ``topic`` is its topic ID, or its name where it has none."""

    topic: str
    partition: int
    content: bytes

    def __str__(self) -> str:
        return f"{self.topic} partition {self.partition} (content {self.content.hex()[:8]})"


def below(tree: Tree, path: str) -> Tree:
    """What lies in one directory of a tree, by the path below it."""
    prefix = path + "/"
    return {each[len(prefix) :]: what for each, what in tree.items() if each.startswith(prefix)}


def replicas(tree: Tree) -> dict[str, Replica]:
    """Every replica by path, whatever its directory is called: a directory with a segment is one.

    A purge removes the record last, so a directory with nothing but a record is no replica any more.
    """
    folders = {path.rpartition("/")[0] for path in tree if _SEGMENT.fullmatch(path.rpartition("/")[2])}
    return {folder: _replica(folder, below(tree, folder)) for folder in sorted(folders)}


def _replica(folder: str, files: Tree) -> Replica:
    name = folder.rpartition("/")[2]
    staged, by_id, read = parse_staged(name), parse_by_topic_id("/".join(folder.split("/")[-2:])), parse(name)
    known = next((each for each in (staged, by_id, read) if each.partition is not None), None)
    assert known is not None, f"{folder} holds a segment, and its name says no partition"
    topic = str(known.topic_id) if known.topic_id is not None and not known.topic_id.is_zero else known.topic
    if isinstance(metadata := files.get(partition_metadata.FILE_NAME), bytes):
        with suppress(DamagedFileError):
            topic = str(partition_metadata.parse(metadata).topic_id)
    if topic is None and (record := records(files).get("")) is not None:
        topic = record.topic
    assert topic is not None and known.partition is not None, f"nothing says which topic {folder} belongs to"
    return Replica(
        topic, known.partition, digest({path: what for path, what in files.items() if path not in _NOT_COUNTED})
    )


def records(tree: Tree) -> dict[str, StagedRecord]:
    """The record of every directory that carries one, by path of the directory.

    A file may hold the records of several replicas by the names that they have once they are staged; one that is live
    still, or again, finds none in it.

    Raises:
        DamagedFileError: a record cannot be read, or a staged directory carries only those of others.
    """
    found = {}
    for path, what in tree.items():
        folder, _, name = path.rpartition("/")
        if name == staged_record.STAGED_RECORD and isinstance(what, bytes):
            of_all, own = staged_record.parse_records(what), folder.rpartition("/")[2]
            if _staging_home(folder) is not None or "" in of_all:
                found[folder] = staged_record.choose(of_all, own)
    return found


def assert_each_lies_once(before: Tree, after: Tree, *, may_go: Collection[Replica] = (), new: int = 0) -> None:
    """No replica is gone, doubled, changed, or merged with another.

    Args:
        before: the tree of the start, in which each replica lies once.
        after: the tree now.
        may_go: those that were due, and may be purged by now, wholly or in part.
        new: how many replicas may have been created.
    """
    known, found = replicas(before), replicas(after)
    wrong = []
    for replica in sorted(set(known.values())):
        places = [path for path, each in found.items() if each == replica]
        if len(places) > 1:
            wrong.append(f"{replica} lies in {len(places)} places: {', '.join(places)}")
        elif not places and replica not in may_go:
            was = next(path for path, each in known.items() if each == replica)
            wrong.append(f"{replica}, which was {was}, is gone or changed")
    partly_gone = {(replica.topic, replica.partition) for replica in may_go}
    strange = [
        f"{path} is {each}"
        for path, each in found.items()
        if each not in known.values() and (each.topic, each.partition) not in partly_gone
    ]
    if len(strange) > new:
        wrong += [f"{new} new replicas were expected, and these are there:", *strange]
    assert not wrong, "\n".join(wrong)


def assert_nothing_staged_is_lost(before: Tree, after: Tree, now_ms: int) -> None:
    """Whatever was staged and is not due lies somewhere, whole, live again or staged with the record it had."""
    found = replicas(after)
    now_staged = records(after)
    wrong = []
    for path, record in records(before).items():
        replica = replicas(before).get(path)
        if replica is None or record.is_due(now_ms):
            continue
        places = [place for place, each in found.items() if each == replica]
        if not places:
            wrong.append(f"{path} is gone, and was due only at {record.due_ms}; now it is {now_ms}")
        wrong += [f"{place} has another record" for place in places if now_staged.get(place, record) != record]
    assert not wrong, "\n".join(wrong)


def assert_restorable(
    root: str,
    folder: str,
    restore: Callable[[str, str], None],
    original: Tree,
    *,
    skip: Collection[str] = (),
    home_now: Callable[[Tree, str, StagedRecord], str] = lambda after, home, record: home,
) -> int:
    """Every staged replica comes back byte for byte; tried on copies, so the root stays as it is.

    Args:
        root: holds the log dirs.
        folder: where there is room for a copy, of a name that is free.
        restore: restores, below this root, the directory of this path; each time in a fresh copy.
        original: the tree before anything was staged; what lay there is what must lie there again.
        skip: staged directories that cannot come back because their name is taken.
        home_now: where what was there belongs by now.

    Returns:
        How many were restored.
    """
    count = 0
    for path, record in sorted(records(read_tree(root)).items()):
        if path in skip or _staging_home(path) is None:
            continue
        shutil.copytree(root, folder, symlinks=True)
        restore(folder, path)
        home = f"{_staging_home(path)}/{record.path}"
        after = read_tree(folder)
        now = home_now(after, home, record)
        wrong = difference(below(original, home), below(after, now))
        assert below(after, now), f"{path} was restored, and {now} is not there"
        assert not wrong, "\n".join([f"{path} was restored as {now}, and is not what it was:", *wrong])
        assert path not in after, f"{path} was restored, and still lies there"
        shutil.rmtree(folder)
        count += 1
    return count


def _staging_home(path: str) -> str | None:
    """The log dir that a staged directory belongs to; None: this is no staged directory."""
    parent, _, name = path.rpartition("/")
    if parse_staged(name).kind is DirectoryKind.STAGED:
        return parent.removesuffix(f"/{STAGING_DIR}").removesuffix(f".{STAGING_DIR}")
    return parent if parse(name).kind is DirectoryKind.STRAY else None
