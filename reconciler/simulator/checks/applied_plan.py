"""Checks an operator's plan when it is made, and when it is applied, perhaps long after that.

::

    made       it stages each replica that nobody wants there, by the znodes, and no other one, and none that is the
               only one in sync; it makes none empty that is live there under another name
    refused    a plan that is too old, or of other disks, changes nothing; every other one is carried out
    the same   what it stages or restores is what it was made for, byte for byte, and stays so
    empty      it makes nothing empty that lies staged, whole
    the rest   no replica that it does not name is made, moved, staged or lost
    again      what it did is done: applied once more, it changes nothing

Directories are read anew here; nothing is taken from the plan's own evidence: its sums, sizes and times.
Source: DESIGN §6.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layout import partition_metadata
from layout.directory_name import parse_staged
from layout.ids import TopicId
from layout.scheme import STAGING_DIR
from layout.topic import TopicPartition
from logstore.repair import RepairStatus
from reconciler.plan import Action, ActionKind, ApplyOutcome, Plan
from reconciler.simulator.cluster import Member, Oracle

_DONE = (RepairStatus.DONE, RepairStatus.ALREADY)


@dataclass(frozen=True, slots=True)
class FoundReplica:
    """A replica's directory: its path, and name → bytes of its files."""

    path: str
    files: Mapping[str, bytes]

    @property
    def is_staged(self) -> bool:
        """Whether it lies among the staged ones."""
        return os.path.basename(os.path.dirname(self.path)) == STAGING_DIR


@dataclass(frozen=True, slots=True)
class FoundDisks:
    """The replicas that lie on a machine's disks at one moment.

    Attributes:
        serials: log dir → serial of its disk, but for those that are away or were never formatted.
        replicas: inode → replica, live or staged.
    """

    serials: Mapping[str, int]
    replicas: Mapping[int, FoundReplica]

    @classmethod
    def of(cls, member: Member) -> FoundDisks:
        """Read the disks of a machine."""
        disks, serials, replicas = member.disks, dict[str, int](), dict[int, FoundReplica]()
        for number in disks.online:
            if not disks.is_empty(number):
                serials[disks.log_dirs[number]] = disks.serial(number)
                replicas.update(_replicas_below(disks.log_dirs[number]))
        return cls(serials, replicas)

    def on(self, disks: Mapping[str, int]) -> dict[int, FoundReplica]:
        """Give the replicas on those of its disks that are among these."""
        same = tuple(f"{path}/" for path, serial in self.serials.items() if disks.get(path) == serial)
        return {inode: each for inode, each in self.replicas.items() if each.path.startswith(same)}


def _replicas_below(log_dir: str) -> Iterator[tuple[int, FoundReplica]]:
    for folder, _, names in os.walk(log_dir):
        if partition_metadata.FILE_NAME in names:
            files = {name: Path(folder, name).read_bytes() for name in sorted(names)}
            yield os.stat(folder).st_ino, FoundReplica(folder, files)


def wrongly_planned(plan: Plan, rows: Sequence[Mapping[str, Any]], oracle: Oracle, node_id: int) -> Iterator[str]:
    """Yield each live replica that a plan should stage and does not, or the other way round, or would make once more.

    ``rows``: of the scan that it was made from.
    """
    assigned, ids = oracle.assigned(node_id), {name: str(topic_id) for name, topic_id in oracle.known().items()}
    staged = {(each.log_dir, each.name) for each in plan.actions if each.kind is ActionKind.STAGE}
    copies = Counter((row["topic"], row["partition"]) for row in rows if row["kind"] == "live")
    made = {(each.wanted_topic_id, each.partition) for each in plan.actions if each.kind is ActionKind.CREATE}
    for row in rows:
        topic, topic_id = row["topic"], row["topic_id"]
        if row["kind"] == "live" and topic_id is not None and (topic_id, row["partition"]) in made:
            yield f"broker {node_id} has {row['name']} of topic ID {topic_id}, and a plan would make it empty once more"
        if row["kind"] != "live" or row["metadata_state"] != "ok" or copies[topic, row["partition"]] > 1:
            continue
        # Data of a topic that has another name by now is renamed, and not staged.
        is_wanted = TopicPartition(topic, row["partition"]) in assigned and ids[topic] == topic_id
        stays = is_wanted or (ids.get(topic) != topic_id and topic_id in ids.values())
        if stays is ((row["log_dir"], row["name"]) in staged):
            what = "would stage it, though it is wanted" if stays else "leaves it, though nobody wants it there"
            yield f"broker {node_id} has {row['name']} of topic ID {topic_id}, and a plan {what}"
        of_topic = oracle.wanted().get(TopicPartition(topic, row["partition"]), ())
        in_sync = set(of_topic[0].isr) - {node_id} if of_topic and ids.get(topic) == topic_id else {-1}
        if (row["log_dir"], row["name"]) in staged and not in_sync:
            yield f"broker {node_id} has the only copy of {row['name']} in sync, and a plan would stage it"


def wrongly_refused(
    planned: FoundDisks, before: FoundDisks, after: FoundDisks, why: str, *, old: bool
) -> Iterator[str]:
    """Yield what is wrong with a plan's refusal; ``old``: it, or its metadata, is older than is allowed."""
    if before.replicas != after.replicas:
        yield f"a plan was refused, and changed the disks: {why}"
    if planned.serials == before.serials == after.serials and not old:
        yield f"a plan of these disks, which is not too old, was refused: {why}"


def wrongly_applied(
    planned: FoundDisks, before: FoundDisks, after: FoundDisks, outcome: ApplyOutcome, *, old: bool
) -> Iterator[str]:
    """Yield what is wrong with the changes of a plan; ``old``: it, or its metadata, is older than is allowed."""
    if old:
        yield "a plan was applied that is older than is allowed, or whose metadata is"
    same = {path: serial for path, serial in before.serials.items() if after.serials.get(path) == serial}
    then, now, named = before.on(same), after.on(same), set[int]()
    for each in outcome.results:
        action = each.action
        if each.status is RepairStatus.DONE and action.inode is not None and action.log_dir in same:
            named.add(action.inode)
            yield from _wrongly_done(action, planned.replicas, then, now)
        elif each.status is RepairStatus.DONE and action.kind is ActionKind.CREATE:
            yield from _wrongly_made(action, then)
    for inode, replica in then.items():
        if inode not in named and now.get(inode) != replica:
            yield f"a plan changed {replica.path}, which it does not name or left as it was"
    made = sum(each.status is RepairStatus.DONE and each.action.kind is ActionKind.CREATE for each in outcome.results)
    new = sorted(now[inode].path for inode in now.keys() - then.keys())
    if len(new) > made:
        yield f"a plan made {', '.join(new)}, where it should make {made}"


def _wrongly_done(
    action: Action,
    planned: Mapping[int, FoundReplica],
    before: Mapping[int, FoundReplica],
    after: Mapping[int, FoundReplica],
) -> Iterator[str]:
    """Check one replica that was staged or came back."""
    assert action.inode is not None, "it is about a directory"
    what = f"{action.kind} of {action.log_dir}/{action.name}"
    then, now, done = planned.get(action.inode), before.get(action.inode), after.get(action.inode)
    if then is None or now is None or (then.path, then.files) != (now.path, now.files):
        yield f"{what}: it is not what the plan was made for any more"
    elif done is None or done.files != now.files:
        yield f"{what}: its files are not what they were"
    elif action.kind in (ActionKind.STAGE, ActionKind.RESTORE) and done.is_staged is not (
        action.kind is ActionKind.STAGE
    ):
        yield f"{what}: it lies in {done.path}"


def _wrongly_made(action: Action, before: Mapping[int, FoundReplica]) -> Iterator[str]:
    wanted = (None if action.wanted_topic_id is None else TopicId.parse(action.wanted_topic_id), action.partition)
    for replica in before.values():
        if replica.is_staged:
            staged = parse_staged(os.path.basename(replica.path))
            if (staged.topic_id, staged.partition) == wanted:
                yield f"a plan made {action.replica} empty, and it lies whole in {replica.path}"


def wrongly_done_again(first: ApplyOutcome, second: ApplyOutcome) -> Iterator[str]:
    """Yield each action that was done and, applied again, is not found to be done."""
    for before, after in zip(first.results, second.results, strict=True):
        if before.status in _DONE and after.status is not RepairStatus.ALREADY:
            yield f"{after.action.kind} of {after.action.name} was done, and then it is {after.status}: {after.detail}"
