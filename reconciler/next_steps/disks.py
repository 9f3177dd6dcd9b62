"""The steps about whole disks: one that is not there, may not be read, was not given, or is another broker's."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace

from layout.meta_properties import FILE_NAME
from reconciler.next_steps.command import CONFIG, OTHER_LOG_DIR, Step, ToolCommand
from reconciler.next_steps.findings import MOUNTED, step_of_fleet
from reconciler.next_steps.moves import ANOTHER_DISKS
from reconciler.next_steps.situation import NAMED_AT_ONCE, Obstacle, Situation
from reconciler.text import count
from reconciler.verdicts import Verdict

NOT_THIS_BROKERS = sorted({*ANOTHER_DISKS, "DUPLICATE_NODE_ID"})


def as_another_user(known: Situation) -> Iterator[Step]:
    """Look again as a user who may read every log dir, and everything in it."""
    named, more = known.unreadable[:NAMED_AT_ONCE], len(known.unreadable) - NAMED_AT_ONCE
    others = f" and {count(more, 'place', 'places')} more" if more > 0 else ""
    yield Step(
        f"this user may not read {', '.join(named)}{others}, so nothing is known of what lies there: become the "
        "broker's own user, or root, and look again",
        known.call.doctor(),
    )


def absent(known: Situation) -> bool:
    """Whether a log dir is not there, or is not the expected one."""
    return Verdict.ABSENT in known.found and known.found[Verdict.ABSENT].log_dir is not None


def mount(known: Situation) -> Iterator[Step]:
    """See what is mounted where a log dir should be, and name a new disk to the broker if it is truly one."""
    found = known.found[Verdict.ABSENT]
    yield Step(
        f"{found.log_dir} is not there or not the expected one, which an empty disk looks like: mount it, then look "
        "again",
        MOUNTED,
    )
    naming = _naming(known, found.log_dir or "") if found.log_dir in known.blank else None
    if naming is not None:
        yield Step(
            "only if a new disk is mounted there, because the old one is gone for good: as the broker's own user, "
            f"{naming[0]}",
            naming[1],
        )
        yield Step(
            "look again: the disk counts as one of the broker's now, and what was lost with the old one is told",
            known.call.doctor(),
        )


def read_only(known: Situation) -> tuple[Obstacle, ...]:
    """Find the log dirs on whose disks nothing can be written."""
    return tuple(each for each in known.obstacles if each.rule == "read_only_disk")


def mount_writable(known: Situation) -> Iterator[Step]:
    """See how each of them is mounted, and look again: until then nothing can be changed there, nor a broker start."""
    for each in read_only(known):
        log_dir = each.log_dir or ""
        why = (
            f"nothing can be changed in {log_dir}, and no broker uses it: {each.problem}. Find out why, check the "
            "disk, and mount it so that it can be written"
        )
        yield Step(why, ToolCommand("findmnt", ("--target", log_dir)))
    yield Step("look again", known.call.doctor())


def finish_change(known: Situation) -> Iterator[Step]:
    """Bring a change of many steps to its end: until then each name that is found may be the old or the new one."""
    change = known.cut_short
    assert change is not None
    where = f"in {', '.join(change.log_dirs)}: {change.sentence}. What is found now is half of it"
    if known.in_use:
        used = ", ".join(known.in_use)
        yield Step(f"a change of many steps is under way {where}, so wait until nobody uses {used}")
    elif change.unread:
        files = ", ".join(change.unread)
        yield Step(
            f"a change of many steps was cut short {where}, and nobody can finish it by {files}, which cannot be read: "
            "look with 'logstore scan' at what has which name there, and remove that file"
        )
    else:
        yield Step(
            f"a change of many steps was cut short {where}, so bring it to its end first, wholly done or wholly "
            "undone, with a command that has nothing else to do",
            known.call.finish_change(change.scheme),
        )
    yield Step("look again", known.call.doctor())


def _naming(known: Situation, log_dir: str) -> tuple[str, ToolCommand] | None:
    """Tell how a new disk gets the file by which its broker knows it, in a clause and a command; None: by none.

    In KRaft mode Kafka's own tool writes it. In ZooKeeper mode the broker would write it at its start, the same on each
    disk while there are no directory.ids (FACTS §1.5, §2.2); written before, what a start would lose is known first.
    """
    if known.on_zookeeper:
        like = next(iter(known.unnamed_disks), None)
        copied = ToolCommand("cp", ("-n", posixpath.join(like or "", FILE_NAME), posixpath.join(log_dir, FILE_NAME)))
        return None if like is None else ("give it the file that a start would write there", copied)
    if not known.cluster_id:
        return None
    words = ("format", "--ignore-formatted", "--cluster-id", known.cluster_id, "--config", CONFIG)
    what = f"format it, for the broker does not start without; {CONFIG} is the file that it is started with"
    return what, ToolCommand("kafka-storage.sh", words)


def whose(known: Situation) -> Iterator[Step]:
    """Find out whose disk it is that is not this broker's."""
    kinds = [kind for kind in NOT_THIS_BROKERS if kind in known.fleet]
    compared = replace(known.call, log_dirs=(*known.call.log_dirs, *known.of_other_clusters))
    step = step_of_fleet("DUPLICATE_DIRECTORY_ID", compared)
    yield Step(
        f"{', '.join(kinds)}: a disk here is a copy, or another broker's or cluster's; find out which, and leave it "
        "out of every command and of the broker's log.dirs",
        None if step is None else step.command,
    )


def apart(known: Situation) -> Iterator[Step]:
    """Take what is live twice apart, where no repair can: mostly one of the log dirs is a copy."""
    step = step_of_fleet("DUPLICATE_DIRECTORY_ID", known.call) if known.copied else None
    command = known.call.repair() if step is None else step.command
    yield Step(f"no broker starts so: {known.live_twice}", command)


def replaced(known: Situation) -> bool:
    """Whether a log dir lies in the place of one that the broker registered."""
    return "LOG_DIR_NOT_REGISTERED" in known.fleet and "LOG_DIR_NOT_SEEN" in known.fleet


def on_replaced(known: Situation) -> int:
    """Count the replicas that are on no disk, and that the metadata places in a log dir in whose place another lies."""
    found = known.found.get(Verdict.ABSENT)
    return found.number if found is not None and found.log_dir is None and replaced(known) else 0


def another_disk(known: Situation) -> Iterator[Step]:
    """See what is mounted in the place of a log dir that the broker registered."""
    path, registered = known.fleet["LOG_DIR_NOT_REGISTERED"], known.fleet["LOG_DIR_NOT_SEEN"]
    lost = count(on_replaced(known), "replica") if on_replaced(known) else ""
    of_old = f", with {lost} that no disk here has" if lost else ""
    yield Step(
        f"the broker never registered {path}, and {registered}, which it did register, is not here{of_old}: see what "
        "is mounted there, and mount the right disk if it is another one. What follows is only for a disk that was "
        "made anew on purpose, because the old one is gone for good: the next start registers it",
        ToolCommand("findmnt", ("--target", path)),
    )


def not_given(known: Situation) -> bool:
    """Whether what is missing lies in a log dir of the broker that was not given; only its path tells, not its ID."""
    return known.fleet.get("LOG_DIR_NOT_SEEN", "").startswith("/")


def with_not_given(known: Situation) -> Iterator[Step]:
    """Look again with the log dir in which the missing replicas lie."""
    place = known.fleet["LOG_DIR_NOT_SEEN"]
    yield Step(
        f"what is missing lies in {place}, a log dir of this broker that was not given: look again with it",
        known.call.doctor(other_log_dir=place),
    )


def unseen(known: Situation) -> Iterator[Step]:
    """Look again with the log dir that was not given."""
    yield Step(
        f"the broker registered another log dir, {known.fleet['LOG_DIR_NOT_SEEN']}, and a replica may be live there: "
        "give all of its log.dirs",
        known.call.doctor(other_log_dir=OTHER_LOG_DIR),
    )
