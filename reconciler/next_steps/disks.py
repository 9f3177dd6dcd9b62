"""The steps about whole disks: one that is not there, may not be read, was not given, or is another broker's."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.next_steps.command import OTHER_LOG_DIR, Step, ToolCommand
from reconciler.next_steps.findings import step_of_fleet
from reconciler.next_steps.moves import ANOTHER_DISKS
from reconciler.next_steps.situation import Situation
from reconciler.verdicts import Verdict

NOT_THIS_BROKERS = sorted({*ANOTHER_DISKS, "DUPLICATE_NODE_ID"})


def as_another_user(known: Situation) -> Iterator[Step]:
    """Look again as a user who may read every log dir."""
    yield Step(
        f"this user may not read {', '.join(known.unreadable)}, so nothing is known of what lies there: become the "
        "broker's own user, or root, and look again",
        known.call.doctor(),
    )


def mount(known: Situation) -> Iterator[Step]:
    """See what is mounted where a log dir should be."""
    found = known.found[Verdict.ABSENT]
    yield Step(
        f"{found.log_dir} is not there or not the expected one, which an empty disk looks like: mount it, then look "
        "again",
        ToolCommand("findmnt", ("--target", found.log_dir or "")),
    )


def whose(known: Situation) -> Iterator[Step]:
    """Find out whose disk it is that is not this broker's."""
    kinds = [kind for kind in NOT_THIS_BROKERS if kind in known.fleet]
    step = step_of_fleet("DUPLICATE_DIRECTORY_ID", known.call)
    yield Step(
        f"{', '.join(kinds)}: a disk here is a copy, or another broker's or cluster's; find out which, and leave it "
        "out of every command and of the broker's log.dirs",
        None if step is None else step.command,
    )


def replaced(known: Situation) -> bool:
    """Whether a log dir lies in the place of one that the broker registered."""
    return "LOG_DIR_NOT_REGISTERED" in known.fleet and "LOG_DIR_NOT_SEEN" in known.fleet


def another_disk(known: Situation) -> Iterator[Step]:
    """See what is mounted in the place of a log dir that the broker registered."""
    path, registered = known.fleet["LOG_DIR_NOT_REGISTERED"], known.fleet["LOG_DIR_NOT_SEEN"]
    yield Step(
        f"the broker never registered {path}, and {registered}, which it did register, is not here: see what is "
        "mounted there. One that was made anew on purpose is registered at the next start; else mount the right disk",
        ToolCommand("findmnt", ("--target", path)),
    )


def unseen(known: Situation) -> Iterator[Step]:
    """Look again with the log dir that was not given."""
    yield Step(
        f"the broker registered another log dir, {known.fleet['LOG_DIR_NOT_SEEN']}, and a replica may be live there: "
        "give all of its log.dirs",
        known.call.doctor(other_log_dir=OTHER_LOG_DIR),
    )
