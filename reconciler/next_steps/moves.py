"""Steps that are done with ``mv``: a directory leaves its log dir, or gets its name back."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from reconciler.next_steps.command import Step, ToolCommand
from reconciler.next_steps.situation import MetadataTrust, Obstacle, Situation, UncertainReplica
from reconciler.text import count
from reconciler.verdicts import Verdict

ANOTHER_DISKS = frozenset({"DUPLICATE_DIRECTORY_ID", "NODE_IN_SEVERAL_CLUSTERS", "OTHER_CLUSTER"})
"""Kinds of fleet finding by which a disk is a copy, or of another cluster."""


def metadata_log_left(known: Situation) -> Obstacle | None:
    """Find the metadata log beside the one that the broker reads; None: there is none, or the disk is not this node's.

    Of several, none may be the one that the broker reads.
    """
    left = [each for each in known.obstacles if each.rule == "metadata_log_elsewhere"]
    is_second = "DUPLICATE_NODE_ID" in known.fleet and not known.fleet.keys() & ANOTHER_DISKS
    return left[0] if is_second and len(left) == 1 else None


def move_metadata_log(known: Situation) -> Iterator[Step]:
    """Move it out, and look at everything once more."""
    left = metadata_log_left(known)
    assert left is not None
    log_dir = left.log_dir or ""
    yield Step(
        f"no broker starts with two metadata logs: {left.problem}. Where it does, name {log_dir} after "
        "--metadata-log-dir; else move this one out of the log dir",
        _out_of(log_dir, posixpath.join(log_dir, left.name or "")),
    )
    yield Step("look at everything once more", known.call.doctor())


def foreign(known: Situation) -> bool:
    """Whether directories lie here whose names are no partition's."""
    found = known.found.get(Verdict.FOREIGN)
    return found is not None and found.directories > 0


def move_foreign(known: Situation) -> Iterator[Step]:
    """Move a directory of a foreign name out."""
    found = known.found[Verdict.FOREIGN]
    path = posixpath.join(found.log_dir or "", found.name or "")
    if posixpath.basename(path) == "lost+found":
        why = "the log dir is the root of a file system: make a directory in it, move all but lost+found into it, and "
        yield Step(f"{why}name that in log.dirs", ToolCommand("ls", ("-la", found.log_dir or "")))
        return
    why = "no broker starts beside a directory of a foreign name: move it out of the log dir"
    yield Step(why, _out_of(found.log_dir or "", path))


def abandoned(known: Situation) -> bool:
    """Whether copies of moves lie here that no broker will finish or delete, and that nobody wants."""
    found = known.found.get(Verdict.FUTURE_ABANDONED)
    certain = known.trust is MetadataTrust.GOOD and not known.in_use
    return certain and found is not None and found.log_dir is not None and found.wanted == 0


def move_abandoned(known: Situation) -> Iterator[Step]:
    """Move a copy out that nobody will finish."""
    found = known.found[Verdict.FUTURE_ABANDONED]
    others = f", and {count(found.number - 1, 'other')} like it" if found.number > 1 else ""
    yield Step(
        f"nobody will finish this move between log dirs{others}, and a start makes a stray of it or loads it for "
        "ever: move it out of the log dir",
        _out_of(found.log_dir or "", posixpath.join(found.log_dir or "", found.name or "")),
    )


def renamed(known: Situation) -> bool:
    """Whether a replica lies under another name than its topic ID has."""
    found = known.found.get(Verdict.RENAMED)
    return found is not None and found.belongs_to is not None and found.log_dir is not None


def rename_back(known: Situation) -> Iterator[Step]:
    """Give a replica its name again."""
    found = known.found[Verdict.RENAMED]
    path = posixpath.join(found.log_dir or "", found.name or "")
    yield Step(
        f"the data is topic {found.belongs_to}'s, and was renamed by hand: give it its name again",
        ToolCommand("mv", ("-nT", path, posixpath.join(found.log_dir or "", f"{found.belongs_to}-{found.partition}"))),
    )


def damaged_beside_live(known: Situation) -> tuple[UncertainReplica, ...]:
    """Find future and stray replicas with a damaged file, which takes the log dir offline."""
    return tuple(each for each in known.uncertain if not each.is_live)


def move_damaged(known: Situation) -> Iterator[Step]:
    """Move each of them out."""
    for each in damaged_beside_live(known):
        why = f"{each.reason}, which takes the log dir offline, and it is no live replica: move it out of the log dir"
        yield Step(why, _out_of(each.log_dir, each.path))


def _out_of(log_dir: str, path: str) -> ToolCommand:
    """Move a directory out of its log dir, to a name beside it."""
    return ToolCommand("mv", ("-n", path, f"{posixpath.normpath(log_dir)}.{posixpath.basename(path)}"))
