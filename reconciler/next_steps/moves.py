"""Steps that are done with ``mv``: a directory leaves its log dir, or gets its name back."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count as count_from

from layout.directory_name import MAX_DIRECTORY_NAME
from reconciler.next_steps.call import FALLBACK_FOLDER, Call
from reconciler.next_steps.command import Step, ToolCommand
from reconciler.next_steps.situation import (
    NAMED_AT_ONCE,
    FoundVerdict,
    MetadataTrust,
    Obstacle,
    Situation,
    UncertainReplica,
)
from reconciler.text import count
from reconciler.verdicts import Verdict

ANOTHER_DISKS = frozenset({"DUPLICATE_DIRECTORY_ID", "NODE_IN_SEVERAL_CLUSTERS", "OTHER_CLUSTER"})
"""Kinds of fleet finding by which a disk is a copy, or of another cluster."""


UNWANTED = (Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC)
"""Verdicts whose replicas a plan stages."""


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
    path = posixpath.join(log_dir, left.name or "")
    moved = move_out(known, log_dir, path)
    yield Step(
        f"no broker starts with two metadata logs: {left.problem}. Where it does, name {log_dir} after "
        f"--metadata-log-dir; else move this one {out_of(known, log_dir)}",
        moved,
    )
    # The log that is moved may be the very metadata that everything here is compared with.
    sources = tuple(_after_move(source, path, moved.arguments[-1]) for source in known.call.metadata)
    yield Step("look at everything once more", replace(known.call, metadata=sources).doctor())


def _after_move(source: str, path: str, new: str) -> str:
    """Name a source of metadata by its new path, where it is what was moved, or a file in it."""
    old = os.path.abspath(source.removeprefix("kraft:"))
    within = old == path or old.startswith(f"{path}/")
    return f"kraft:{new}{old.removeprefix(path)}" if within else source


def foreign(known: Situation) -> bool:
    """Whether directories lie here whose names are no partition's."""
    found = known.found.get(Verdict.FOREIGN)
    return found is not None and found.directories > 0


def move_foreign(known: Situation) -> Iterator[Step]:
    """Move directories of foreign names out, and give those that were a missing replica their names again."""
    found = known.found[Verdict.FOREIGN]
    steps = [
        _move_foreign(*_place(each), known) if each.belongs_to is None else _named_again(each)
        for each in (found, *found.others)
    ]
    yield from some_of(steps, found.directories, known.call)


def brought_back(known: Situation) -> int:
    """Count the directories of foreign names that get the name of a missing replica again."""
    found = known.found.get(Verdict.FOREIGN)
    return 0 if found is None else sum(each.belongs_to is not None for each in (found, *found.others))


def _move_foreign(log_dir: str, path: str, known: Situation) -> Step:
    if posixpath.basename(path) == "lost+found" and log_dir in known.mount_points:
        why = "the log dir is the root of a file system: make a directory in it, move all but lost+found into it, and "
        return Step(f"{why}name that in log.dirs", ToolCommand("ls", ("-la", log_dir)))
    if path.startswith(posixpath.join(log_dir, "../")):
        path = posixpath.normpath(path)
        beside = posixpath.dirname(path)
        return Step(f"nothing staged it, and no purge takes it: move it out of {beside}", move_out(known, beside, path))
    why = f"no broker starts beside a directory of a foreign name: move it {out_of(known, log_dir)}"
    return Step(why, move_out(known, log_dir, path))


def abandoned(known: Situation) -> bool:
    """Whether copies of moves lie here that no broker will finish or delete, and that nobody wants."""
    found = known.found.get(Verdict.FUTURE_ABANDONED)
    certain = known.trust is MetadataTrust.GOOD and not known.in_use
    return certain and found is not None and found.log_dir is not None and found.wanted == 0


def move_abandoned(known: Situation) -> Iterator[Step]:
    """Move copies out that nobody will finish."""
    found = known.found[Verdict.FUTURE_ABANDONED]
    why = "nobody will finish this move between log dirs, and a start makes a stray of it or loads it for ever: move it"
    places = [_place(each) for each in (found, *found.others)]
    steps = [Step(f"{why} {out_of(known, log_dir)}", move_out(known, log_dir, path)) for log_dir, path in places]
    yield from some_of(steps, found.number, known.call)


def renamed(known: Situation) -> bool:
    """Whether a replica lies under another name than its topic ID has."""
    found = known.found.get(Verdict.RENAMED)
    return found is not None and found.belongs_to is not None and found.log_dir is not None


def entries_of_renamed(known: Situation) -> int:
    """Count the stale checkpoint entries where all are of replicas that get their names again; else 0."""
    entries = known.found.get(Verdict.CHECKPOINT_ENTRY)
    kinds = [known.found[verdict] for verdict in (Verdict.RENAMED, Verdict.FOREIGN) if verdict in known.found]
    if entries is None or not (renamed(known) or brought_back(known)):
        return 0
    names = {(each.belongs_to, each.partition) for kind in kinds for each in (kind, *kind.others) if each.belongs_to}
    listed = [(each.topic, each.partition) for each in (entries, *entries.others)]
    return entries.number if len(listed) == entries.number and names.issuperset(listed) else 0


def rename_back(known: Situation) -> Iterator[Step]:
    """Give replicas their names again."""
    found = known.found[Verdict.RENAMED]
    yield from some_of([_named_again(each) for each in (found, *found.others)], found.number, known.call)


def _named_again(found: FoundVerdict) -> Step:
    log_dir, path = _place(found)
    own = posixpath.join(log_dir, f"{found.belongs_to}-{found.partition}")
    why = f"the data is topic {found.belongs_to}'s, and was renamed by hand: give it its name again"
    return Step(why, ToolCommand("mv", ("-nT", path, own)))


_NOT_LIVE = (Verdict.MARKED_DELETE, Verdict.FUTURE, Verdict.FUTURE_ABANDONED)
"""Verdicts of directories that may be the last copy of a replica, under another name than the replica's."""


def last_copies(known: Situation) -> int:
    """Count the last copies that a start would delete or empty, of replicas that are wanted here.

    One that runs has marked or moved them itself.
    """
    return 0 if known.in_use else sum(known.found[each].last for each in _NOT_LIVE if each in known.found)


def keep_last_copies(known: Situation) -> Iterator[Step]:
    """Give them their names again, before the broker is started."""
    steps = []
    for verdict, found in ((each, known.found[each]) for each in _NOT_LIVE if each in known.found):
        for each in (found, *found.others)[: found.last]:
            log_dir, path = _place(each)
            why = (
                f"do not start the broker: it would delete {path}, and no other copy is in sync of what the metadata "
                "wants here: give it its name again"
                if verdict is Verdict.MARKED_DELETE
                else f"do not start the broker: a move between log dirs left {path}, whose original is gone; no other "
                "copy is in sync of what the metadata wants here, and a start may cut this one back to nothing. Look "
                "for the original, which may hold more; if it is lost, give this copy its name"
            )
            own = posixpath.join(log_dir, f"{each.topic}-{each.partition}")
            steps.append(Step(why, ToolCommand("mv", ("-nT", path, own))))
    yield from some_of(steps, last_copies(known), known.call)


def not_live(known: Situation) -> tuple[UncertainReplica, ...]:
    """Find future and stray replicas that no plan and no repair takes: with a damaged file, or of unknown origin."""
    return tuple(each for each in known.uncertain if not each.is_live)


def move_not_live(known: Situation) -> Iterator[Step]:
    """Move them out."""
    found, steps = not_live(known), []
    for each in found:
        harm = "so no plan takes it" if each.is_unclaimed else "which takes the log dir offline"
        why = f"{each.reason}, {harm}, and it is no live replica: move it {out_of(known, each.log_dir)}"
        steps.append(Step(why, move_out(known, each.log_dir, each.path)))
    yield from some_of(steps, len(found), known.call)


def move_for_lock(known: Situation) -> Iterator[Step]:
    """Make room for the lock, by one of the live replicas that nobody wants; then look at everything once more."""
    log_dir, folder = known.without_lock[0], posixpath.dirname(known.call.fallback or FALLBACK_FOLDER)
    kinds = (known.found[verdict] for verdict in UNWANTED if verdict in known.found)
    unwanted = [each for kind in kinds for each in (kind, *kind.others) if each.log_dir == log_dir]
    why = f"the disk of {log_dir} has no room even for the empty file .lock, which every change needs"
    if unwanted and known.trust is MetadataTrust.GOOD:
        path = _place(unwanted[0])[1]
        there = posixpath.join(folder, posixpath.basename(path))
        yield Step(f"{why}: move a replica that nobody wants to another disk", ToolCommand("mkdir", ("-p", folder)))
        yield Step("it can come back from there", ToolCommand("mv", ("-nT", path, there)))
    else:
        yield Step(f"{why}: move a file that the broker does not need to another disk")
    yield Step("look at everything once more", known.call.doctor())


def _place(found: FoundVerdict) -> tuple[str, str]:
    """Log dir and path of a finding."""
    return found.log_dir or "", posixpath.join(found.log_dir or "", found.name or "")


def some_of(steps: Sequence[Step], number: int, call: Call) -> Iterator[Step]:
    """Make no more than some of the steps; of the rest, only their number, and the command that names them next."""
    named = steps[:NAMED_AT_ONCE]
    yield from named
    if number > len(named):
        more = count(number - len(named), "more is", "more are")
        yield Step(f"{more} like that: look again, and doctor names the next", call.doctor())


def out_of(known: Situation, log_dir: str) -> str:
    """Say where a directory goes that leaves its log dir, a clause; to another file system mv copies, which takes room.

    A copy that was cut short stays beside the log dir, and the next look chooses another name.
    """
    home = os.path.abspath(log_dir)
    if home not in known.moved_by_copy:
        return "out of the log dir"
    beside = posixpath.dirname(home)
    return f"out of the log dir; {beside} is on another file system, so mv copies it there first, which takes that room"


def move_out(known: Situation, log_dir: str, path: str) -> ToolCommand:
    """Move a directory out of its log dir, to a free name beside it; of a name that gets too long, the end is kept.

    A staging directory that lay in the log dir is found again beside it, where there is none yet.
    """
    home, name = posixpath.normpath(log_dir), posixpath.basename(path)
    numbered = (name if number == 1 else f"{name}.{number}" for number in count_from(1))
    free = next(each for each in map(partial(_beside, home), numbered) if os.path.abspath(each) not in known.beside)
    # With -T, because else mv puts it into a directory that has its new name by then.
    return ToolCommand("mv", ("-nT", path, free))


def _beside(home: str, name: str) -> str:
    while len(os.fsencode(f"{posixpath.basename(home)}.{name}")) > MAX_DIRECTORY_NAME:
        name = name[1:]
    return f"{home}.{name}"
