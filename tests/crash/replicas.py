"""What must never happen to a replica, as functions over the tree before and the tree after.

A replica is identified by what it is and not by where it lies: its topic ID, its partition, and a digest of its files.
So the same functions hold for every scheme, for live and staged replicas, and across log dirs. Files that the engine
may write into a partition dir, the topic ID's and the record of a move, are no part of the digest;
:func:`assert_restorable` holds a restored replica to every byte.

After a crash a replica is live; or it is staged, whole, and a line of a ledger says so; or a line says that a purge has
begun, and then parts of it may be gone and it is never restored. A staged directory of which no line speaks is a loss.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from layout import partition_metadata
from layout.directory_name import DirectoryKind, parse, parse_by_topic_id, parse_staged
from layout.errors import DamagedFileError
from layout.ours import Ledger, LedgerEntry, LedgerEvent, StagedRecord, move_record, parse_ledger
from layout.scheme import LEDGER_FILE, STAGING_DIR
from tests.crash.images import Tree, difference, digest, read_tree, write_tree

FALLBACK = "spare"
"""Name of the folder for fallback records: the ledger of log dirs on disk ``one`` is ``spare/one`` there."""

_USED_BEFORE = re.compile(r"([\w-]{22}_[0-9]+)\.[0-9]+")
_NOT_COUNTED = {partition_metadata.FILE_NAME, move_record.MOVE_RECORD}
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
    """Every replica by path, whatever its directory is called: a directory with a segment is one."""
    folders = {path.rpartition("/")[0] for path in tree if _SEGMENT.fullmatch(path.rpartition("/")[2])}
    said = entries(tree)
    return {folder: _replica(folder, below(tree, folder), said.get(folder)) for folder in sorted(folders)}


def _replica(folder: str, files: Tree, entry: LedgerEntry | None) -> Replica:
    name = folder.rpartition("/")[2]
    staged, by_id, read = parse_staged(name), parse_by_topic_id("/".join(folder.split("/")[-2:])), parse(name)
    known = next((each for each in (staged, by_id, read) if each.partition is not None), None)
    assert known is not None, f"{folder} holds a segment, and its name says no partition"
    topic = str(known.topic_id) if known.topic_id is not None and not known.topic_id.is_zero else known.topic
    if isinstance(metadata := files.get(partition_metadata.FILE_NAME), bytes):
        with suppress(DamagedFileError):
            topic = str(partition_metadata.parse(metadata).topic_id)
    if topic is None and entry is not None and entry.record is not None:
        topic = entry.record.topic
    assert topic is not None and known.partition is not None, f"nothing says which topic {folder} belongs to"
    return Replica(
        topic, known.partition, digest({path: what for path, what in files.items() if path not in _NOT_COUNTED})
    )


def free_name(name: str) -> str:
    """The name that a staged directory gets where no line speaks of that; an earlier try may have left such a line."""
    used = _USED_BEFORE.fullmatch(name)
    return name if used is None else used[1]


def ledgers(tree: Tree) -> dict[str, Ledger]:
    """Every ledger, by path of its folder.

    Raises:
        DamagedFileError: a later release wrote it.
    """
    return {
        path.removesuffix(f"/{LEDGER_FILE}"): parse_ledger(what)
        for path, what in tree.items()
        if path.endswith(f"/{LEDGER_FILE}") and isinstance(what, bytes)
    }


def is_staged(path: str) -> bool:
    """Whether a path is that of a staged directory, by its name."""
    return staging_home(path) is not None


def entries(tree: Tree) -> dict[str, LedgerEntry]:
    """What the ledgers say of each directory that lies in a staging root, by its path; *restored* is nothing."""
    known, found = ledgers(tree), {}
    for path in tree:
        folder, _, name = path.rpartition("/")
        if not is_staged(path) or tree[path] is not None:
            continue
        elsewhere = [each for at, each in known.items() if at.endswith(f"{FALLBACK}/{path.split('/')[0]}")]
        own = [known[folder]] if folder in known else []
        said = [each.entries[name] for each in (*own, *elsewhere) if name in each.entries]
        if said and said[0].event is not LedgerEvent.RESTORED:
            found[path] = said[0]
    return found


def records(tree: Tree) -> dict[str, StagedRecord]:
    """The record of every directory that is staged, and that no purge has begun to empty, by its path."""
    return {
        path: entry.record
        for path, entry in entries(tree).items()
        if entry.event is LedgerEvent.STAGED and entry.record is not None
    }


def begun(tree: Tree) -> list[str]:
    """The directories that a purge may have begun to empty."""
    return [path for path, entry in entries(tree).items() if entry.may_be_partly_purged]


def unfounded(tree: Tree) -> list[str]:
    """The lines that say that something is staged which is not there: the folder of the ledger, and the name."""
    found = []
    for folder, ledger in ledgers(tree).items():
        in_fallback = folder.rpartition("/")[0].endswith(FALLBACK)
        there = [path.rpartition("/") for path in tree if is_staged(path)]
        names = {name for at, _, name in there if in_fallback or at == folder}
        said = [name for name, entry in ledger.entries.items() if entry.event is LedgerEvent.STAGED]
        found += [f"{folder}/{name}" for name in said if name not in names]
    return found


def assert_each_is_told(before: Tree, after: Tree) -> None:
    """A line speaks of each staged directory; only a stray that a broker left before needs none.

    Args:
        before: the tree of the start.
        after: the tree after a restart. What is torn in a ledger means nothing, and the next one to open it clears it.
    """
    said, wrong = entries(after), []
    brokers_strays = {path for path in before if is_staged(path)} - entries(before).keys()
    for path in after:
        if is_staged(path) and after[path] is None and path not in brokers_strays:
            entry = said.get(path)
            if entry is None or entry.record is None:
                wrong.append(f"{path} is there, and no line says what it was and when it may go")
            elif entry.in_doubt:
                wrong.append(f"{path} is in doubt, and no line was damaged")
    for folder, ledger in ledgers(after).items():
        wrong += [f"line {bad.number} of the ledger in {folder} is damaged: {bad.reason}" for bad in ledger.damaged]
    assert not wrong, "\n".join(wrong)


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
    now_staged = entries(after)
    wrong = []
    for path, record in records(before).items():
        replica = replicas(before).get(path)
        if replica is None or record.is_due(now_ms):
            continue
        places = [place for place, each in found.items() if each == replica]
        if not places:
            wrong.append(f"{path} is gone, and was due only at {record.due_ms}; now it is {now_ms}")
        told = [now_staged[place] for place in places if place in now_staged]
        wrong += [f"{path} has another record" for entry in told if entry.record != record]
        wrong += [f"{path} can only be purged any more" for entry in told if entry.may_be_partly_purged]
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
    count, tree = 0, read_tree(root)
    for path, record in sorted(records(tree).items()):
        if path in skip:
            continue
        write_tree(tree, folder)
        restore(folder, path)
        home = f"{staging_home(path)}/{record.path}"
        after = read_tree(folder)
        now = home_now(after, home, record)
        wrong = difference(below(original, home), below(after, now))
        assert below(after, now), f"{path} was restored, and {now} is not there"
        assert not wrong, "\n".join([f"{path} was restored as {now}, and is not what it was:", *wrong])
        assert path not in after, f"{path} was restored, and still lies there"
        said = {each.rpartition("/")[2] for each in unfounded(after)}
        assert path.rpartition("/")[2] not in said, f"{path} was restored, and a ledger still says that it is staged"
        shutil.rmtree(folder)
        count += 1
    return count


@cache
def staging_home(path: str) -> str | None:
    """The log dir that a staged directory belongs to; None: this is no staged directory."""
    parent, _, name = path.rpartition("/")
    if parse_staged(name).kind is DirectoryKind.STAGED:
        return parent.removesuffix(f"/{STAGING_DIR}").removesuffix(f".{STAGING_DIR}")
    return parent if parse(name).kind is DirectoryKind.STRAY else None
