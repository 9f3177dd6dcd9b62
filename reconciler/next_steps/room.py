"""Steps for disks without room, and for ``-stray`` directories beside which an old release does not start.

What is staged takes as much room as before, and a broker that finds none for a checkpoint takes the log dir offline. So
on a full disk something that is staged is deleted before the start, though its time has not come.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from reconciler.next_steps.command import RELEASE, Step, ToolCommand
from reconciler.next_steps.moves import move_out, out_of, some_of
from reconciler.next_steps.situation import NAMED_AT_ONCE, MetadataTrust, Situation
from reconciler.text import count, size
from reconciler.verdicts import Verdict

_FAR_SMALLER = 100
"""A replica of which so many make up the largest one is not worth deleting for its room."""


def needs_release(known: Situation, plans: bool) -> bool:
    """Whether what comes next depends on the release, and nothing says which it is.

    In KRaft mode the metadata tell the oldest that it can be.
    """
    will_be = bool(known.in_place) and (plans or known.staged > 0)
    unknown = known.on_zookeeper and known.call.release is None
    return unknown and (known.number(Verdict.STRAY) > 0 or will_be)


def ask_release(known: Situation) -> Iterator[Step]:
    """Look again, with the release."""
    yield Step(
        "a broker before 3.6.1 does not start beside a directory whose name ends in -stray, and nothing that was read "
        "says of which release this one is: name it",
        replace(known.call, release=RELEASE).doctor(),
    )


def make_folder(known: Situation) -> Iterator[Step]:
    """Make the folder of fallback records."""
    yield Step(
        f"the disk of {', '.join(known.full)} is full: records of what is staged need a folder on another disk",
        ToolCommand("mkdir", ("-p", str(known.call.fallback))),
    )


def looks_again(known: Situation) -> bool:
    """Whether what a plan stages keeps the broker from starting: it frees no room, or its release knows no strays."""
    return bool(known.full) or (bool(known.in_place) and not known.knows_strays)


def look_again(known: Situation) -> Iterator[Step]:
    """Look at everything once more, before it is said how the broker starts."""
    if frees(known):
        why = "what else has to be done needs that room"
    elif known.full:
        why = "what is staged frees no room"
    elif known.knows_strays:
        why = "what comes then depends on the broker's release"
    else:
        why = "what is staged in place keeps this release from starting"
    yield Step(f"{why}: look again, and doctor says what comes before the start", known.call.doctor())


def purge_due(known: Situation) -> Iterator[Step]:
    """Delete what is due."""
    command = known.call.purge(asks_files=known.wanted(Verdict.STAGED_DUE) > 0)
    yield Step(f"delete for ever the {known.purgeable} staged whose time has come", command)


def frees(known: Situation) -> bool:
    """Whether room is made by deleting what is staged: what is due, else the largest before their time."""
    return bool(known.full) and (known.purgeable > 0 or bool(known.freed)) and known.trust is MetadataTrust.GOOD


def worth_freeing(staged: Mapping[str, int], least: int, in_the_way: Collection[str | None] = ()) -> tuple[str, ...]:
    """Choose what is deleted before its time, which costs the way back; nothing, where that gives too little room.

    Args:
        staged: location and bytes of what is staged on one full disk.
        least: the bytes that make a difference there.
        in_the_way: what has to leave the log dir in any case, because the release does not start beside it, or because
            its record lies on another disk, without which it looks like a stray.
    """
    largest = sorted(staged, key=lambda name: (-staged[name], name))[:NAMED_AT_ONCE]
    most = max(staged.values(), default=0)
    worth = [name for name in largest if name in in_the_way or staged[name] * _FAR_SMALLER >= most]
    return tuple(worth) if sum(map(staged.__getitem__, worth)) >= least else ()


def free(known: Situation) -> Iterator[Step]:
    """Delete what is due, or the largest of what is staged on full disks."""
    if known.purgeable:
        yield from purge_due(known)
        return
    yield Step(
        f"there is no room on {', '.join(known.full)}, and a broker takes a log dir offline at the first write that "
        f"finds none: delete for ever the {count(len(known.freed))} largest of what is staged there, before their "
        f"time, which gives {size(known.freed_bytes)} back; leave out what may still be wanted",
        known.call.purge(locations=known.freed, before_due=True),
    )


def lacks_room(known: Situation, plans: bool) -> bool:
    """Whether a disk is full, and neither a purge nor a plan takes anything off it."""
    return bool(known.full) and not frees(known) and not plans


def give_room(known: Situation) -> Iterator[Step]:
    """Say what a person can do where this program has nothing to delete and nothing to stage."""
    staged = "nothing is staged there"
    if known.staged + known.due:
        trusted = known.trust is MetadataTrust.GOOD
        staged = "what is staged there gives too little back" if trusted else "what is staged there may still be wanted"
    yield Step(
        f"there is no room on {', '.join(known.full)}, and {staged}: grow the file system, or move what is not Kafka's "
        "off it. See what takes the room",
        ToolCommand("du", ("-xh", "--max-depth=1", "--", *known.full)),
    )
    yield Step(
        "once the broker runs, see which replicas take the most: shorten the retention of their topics, or move them "
        "to another disk or broker with kafka-reassign-partitions.sh",
        known.call.kafka_tool("kafka-log-dirs.sh", "--describe"),
        later=True,
    )


def move_strays(known: Situation) -> Iterator[Step]:
    """Move what the release does not know out of its log dir."""
    steps = []
    for each in known.in_the_way:
        log_dir = each.log_dir or ""
        why = f"no broker of this release starts beside it, {each.problem}: move it {out_of(known, log_dir)}"
        steps.append(Step(why, move_out(known, log_dir, posixpath.join(log_dir, each.name or ""))))
    yield from some_of(steps, len(steps), known.call)
