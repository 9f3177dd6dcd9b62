"""An operator's repairs: a file of a machine that is down is damaged, is put right by a plan, and often undone first.

Only what a repair puts right is damaged, and the machine does not start before it is right again: no broker comes to
read it. The power may be cut in the middle; then the operator plans and applies once more. Source: DESIGN §6.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from random import Random

from layout import meta_properties, partition_metadata
from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, encode_offsets, parse_offsets
from layout.errors import LayoutError
from layout.ours import BROKER_TEMPORARY
from layout.topic import TopicPartition
from logstore.fs import Directory, remove_file, replace_file
from logstore.journal import what_is_pending
from logstore.repair import undo_repair
from logstore.scan import scan_all
from reconciler.desired import by_cluster
from reconciler.plan import (
    FILE_REPAIRS,
    ApplyOptions,
    ApplyOutcome,
    Plan,
    PlanOrigin,
    Policy,
    RepairChoice,
    RepairView,
    apply_plan,
    propose_repair,
)
from reconciler.simulator.checks import (
    BrokenInvariantError,
    Damage,
    DamagedFile,
    bytes_of,
    expected_state,
    wrongly_repaired,
    wrongly_undone,
)
from reconciler.simulator.cluster import Cluster, Member
from reconciler.simulator.runs.plans import Downtime

_ORPHAN = ("ghost", 0)
"""A partition that no history has."""

_UNDONE = 0.6
"""How likely a repair is undone before it is done for good."""

_CUT_SHORT, _CHANGES = 0.3, 25
"""How likely the power is cut while a file is repaired, and within how many changes."""


class Repairs:
    """Damages and repairs the files of one history."""

    def __init__(self, cluster: Cluster, downtime: Downtime) -> None:
        """Repair the machines of a cluster by the ``downtime`` of their brokers."""
        self._cluster, self._downtime, self._plans = cluster, downtime, 0

    def make(self, member: Member, random: Random) -> None:
        """Damage a file of a machine, and put it right before its broker starts again."""
        undone, cut = random.random() < _UNDONE, random.randrange(_CHANGES) if random.random() < _CUT_SHORT else None
        chosen, starts = list[DamagedFile](), random.random() < 0.7
        if member.disks.offline:
            return  # a change of many steps may wait for that disk, and comes first
        member.disks.disarm()  # a disk that fails now would keep the damage, and come back with it
        well = self._downtime(member, partial(self._damage, member, random, chosen), None)
        if chosen and not (
            well and self._downtime(member, partial(self._repair, member, chosen[0], undone=undone), cut)
        ):
            self._downtime(member, partial(self._repair_again, member, chosen[0]), None)
        if starts and chosen:
            member.start()

    def _damage(self, member: Member, random: Random, chosen: list[DamagedFile]) -> None:
        member.broker.maintain(lambda store: None)  # what a crash left to be done comes first
        found = list(_damageable(self._cluster, member))
        if not found:
            return
        kind = random.choice(sorted({each.damage for each in found}))
        of_kind = [each for each in found if each.damage is kind]
        damaged = random.choice(sorted(of_kind, key=lambda each: each.path))  # a listing has no order of its own
        chosen.append(damaged)
        _write(member, damaged.path, damaged.since)

    def _repair(self, member: Member, damaged: DamagedFile, *, undone: bool) -> None:
        plan, history = self._plan(member), self._cluster.world.history
        before = {path: bytes_of(path) for path in (f"{each.log_dir}/{each.name}" for each in plan.actions)}
        outcome = self._applied(member, plan)
        _check(wrongly_repaired(damaged, outcome))
        history.reach(f"repair {damaged.damage}")
        history.say("operator", f"{member.name}: {damaged.name}, which had a {damaged.damage}, is put right")
        if undone:
            self._undo(outcome, before, member)
            _check(wrongly_repaired(damaged, self._applied(member, plan)))

    def _undo(self, outcome: ApplyOutcome, before: Mapping[str, bytes | None], member: Member) -> None:
        for backup in outcome.backups:
            _check(wrongly_undone(before, undo_repair(backup, disk=member.disks.disk)))
            self._cluster.world.history.reach("repair undone")

    def _repair_again(self, member: Member, damaged: DamagedFile) -> None:
        """Go on where a power cut ended the work, which may be before the damage or after the repair."""
        member.broker.maintain(lambda store: None)
        if not damaged.is_right:
            _check(wrongly_repaired(damaged, self._applied(member, self._plan(member))))
            self._cluster.world.history.reach("repair finished_after_crash")

    def _plan(self, member: Member) -> Plan:
        state, now_ms = expected_state(self._cluster.zookeeper), self._cluster.world.clock_of(member.name)
        seen = list(scan_all(member.disks.log_dirs, sizes=False, jobs=0))
        clusters = {each.identity.cluster_id for each in seen if each.identity is not None and each.identity.cluster_id}
        view = RepairView.of(seen, by_cluster([state], clusters), frozenset(), now_ms)
        self._plans += 1  # of two plans of one moment, each has its own name, as if two people had made them
        origin = PlanOrigin(now_ms, member.name, f"operator {self._plans}")
        # What the cluster says at this moment is no copy that could be old.
        return propose_repair(view, RepairChoice(FILE_REPAIRS, policy=Policy.kip516()), origin)[0]

    def _applied(self, member: Member, plan: Plan) -> ApplyOutcome:
        return apply_plan(
            plan, ApplyOptions(member.name, "operator", member.broker.clock, member.disks.disk, any_clock=True)
        )


def _check(wrong: Iterable[str]) -> None:
    if found := list(wrong):
        raise BrokenInvariantError("; ".join(found[:4]))


def _damageable(cluster: Cluster, member: Member) -> Iterator[DamagedFile]:
    """List what may happen to the files of a machine, and could be put right.

    Nothing is while a change of names is unfinished there, as it stays where the other disk was replaced.
    """
    disks, assigned = member.disks, cluster.oracle.assigned(member.node_id)
    if any(what_is_pending(path) for path in disks.log_dirs):
        return
    rows = [row for each in scan_all(disks.log_dirs, sizes=False, jobs=0) for row in each.rows.to_pylist()]
    copies = Counter((row["topic_id"], row["partition"]) for row in rows if row["kind"] in ("live", "staged", "future"))
    ids = Counter((row["topic"], row["topic_id"]) for row in rows if row["kind"] in ("live", "future"))
    topics = Counter(topic for topic, _ in ids)
    for number in sorted({*disks.online} - {*disks.full}):
        if disks.is_empty(number):
            continue
        path = disks.log_dirs[number]
        here = [row for row in rows if row["log_dir"] == path and row["kind"] == "live"]
        for row in here:
            wanted = assigned.get(TopicPartition(row["topic"], row["partition"]))
            is_wanted = wanted is not None and str(wanted.topic_id) == row["topic_id"] and not wanted.moving
            # Where something contradicts the topic ID, no repair is certain.
            if is_wanted and copies[row["topic_id"], row["partition"]] == topics[row["topic"]] == 1:
                yield from _lost_ids(path, row["name"])
        held = frozenset((row["topic"], row["partition"]) for row in here)
        for file in (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT):
            yield from _damaged_checkpoints(path, file, held)
        yield DamagedFile(path, f"{meta_properties.FILE_NAME}{BROKER_TEMPORARY}", Damage.LEFTOVER, None, b"version=")


def _lost_ids(log_dir: str, replica: str) -> Iterator[DamagedFile]:
    name = f"{replica}/{partition_metadata.FILE_NAME}"
    before = bytes_of(f"{log_dir}/{name}")
    if before is not None:
        yield DamagedFile(log_dir, name, Damage.LOST_ID, before, None)
        yield DamagedFile(log_dir, name, Damage.TORN_ID, before, before[: len(before) // 2])


def _damaged_checkpoints(log_dir: str, file: str, held: frozenset[tuple[str, int]]) -> Iterator[DamagedFile]:
    before = bytes_of(f"{log_dir}/{file}")
    try:
        entries = parse_offsets(before or b"", file)
    except LayoutError:
        return
    if before is not None and entries:
        orphan, strange = encode_offsets({**entries, _ORPHAN: 0}), before + b"what a broker never wrote\n"
        yield DamagedFile(log_dir, file, Damage.ORPHAN_ENTRY, before, orphan, held)
        yield DamagedFile(log_dir, file, Damage.STRANGE_LINE, before, strange, held)


def _write(member: Member, path: str, data: bytes | None) -> None:
    """Write a file of a machine durably; None: remove it."""
    folder, name = os.path.split(path)
    with Directory.open(folder) as parent:
        if data is None:
            remove_file(member.disks.disk, parent, name)
        else:
            replace_file(member.disks.disk, parent, name, data)
