"""A game of plans about replicas that are live twice: a worse copy is staged where both are as the plan knew them.

Which copy is the better one is known: its leader epoch is the later one. While the plan waits, something becomes of one
of the two. The worse one is staged only where it and the better one are still there, under the same topic ID; whatever
becomes of the better one, nothing else is staged, so at least one copy stays live. Source: DESIGN §6; FACTS §1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Final

from layout.ids import TopicId
from logstore import ManualClock
from logstore.repair import RepairStatus
from logstore.scan import scan_all
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity, by_cluster
from reconciler.plan import (
    ActionKind,
    ApplyOptions,
    Plan,
    PlanOrigin,
    RepairChoice,
    RepairView,
    apply_plan,
    encode_plan,
    parse_plan,
    propose_repair,
)
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.plans.machine import CLUSTER, NODE_ID, NOW_MS, Fate, Lying, Machine

_TOPIC, _HOST = "orders", "host"
_FATES: Final = (Fate.GONE, Fate.REPLACED, Fate.OTHER_ID)


def play_copies(random: Random, machine: Machine, reach: Callable[[str], None]) -> None:
    """Make a plan of what is live twice, let something become of it, and apply the plan.

    Raises:
        BrokenInvariantError: a copy is staged that should stay, or is not, or the plan is of other copies.
    """
    topic_id, count = TopicId(random.randbytes(16)), random.randint(1, 3)
    better = [machine.add_copies(f"{_TOPIC}-{number}", topic_id) for number in range(count)]
    plan = _made(machine, [_wanted(topic_id, count)] if random.random() < 0.5 else [])
    kept = sorted(f"{each.keeps.log_dir}/{each.keeps.name}" for each in plan.actions if each.keeps is not None)
    if kept != sorted(better):
        raise BrokenInvariantError(f"of what is live twice a plan keeps {kept}, and {sorted(better)} should stay")
    fates = dict[int | None, str]()
    for each in plan.actions:
        fate, which = random.choice((Fate.NONE, *_FATES)), random.choice(("better", "worse"))
        fates[each.inode] = "none" if fate is Fate.NONE else f"{which}_{fate}"
        keeps = each.keeps
        if fate is not Fate.NONE and keeps is not None:
            path = f"{keeps.log_dir}/{keeps.name}" if which == "better" else f"{each.log_dir}/{each.name}"
            machine.change(path, fate)
        reach(f"drill_plan copy_{fates[each.inode]}")
    before = machine.found()
    outcome = apply_plan(plan, ApplyOptions(_HOST, "drill", ManualClock(NOW_MS + 1), any_clock=True))
    for result in outcome.results:
        fate_of_both = fates[result.action.inode]
        if result.status is not (RepairStatus.DONE if fate_of_both == "none" else RepairStatus.SKIPPED):
            what = f"the worse copy {result.action.log_dir}/{result.action.name} ({fate_of_both})"
            raise BrokenInvariantError(f"{what} is {result.status}: {result.detail}")
    _check_disks(before, machine.found(), {inode for inode, each in fates.items() if each == "none"})


def _check_disks(before: Mapping[int, Lying], after: Mapping[int, Lying], staged: Collection[int | None]) -> None:
    """Nothing changed but that some copies, by their inodes, are staged with all that they hold."""
    if before.keys() != after.keys():
        raise BrokenInvariantError("a plan of what is live twice lost or made a directory")
    for inode, then in before.items():
        now, is_due = after[inode], inode in staged
        if now.files != then.files or now.is_staged is not is_due or (not is_due and now.path != then.path):
            raise BrokenInvariantError(f"{then.path} should be {'staged' if is_due else 'as it was'}: {now.path}")


def _wanted(topic_id: TopicId, count: int) -> DesiredState:
    builder = DesiredBuilder()
    for number in range(count):
        builder.partition(_TOPIC, str(topic_id), number, (NODE_ID, 1), isr=(NODE_ID, 1), leader=1)
    return builder.build(MetadataIdentity("kraft", "/metadata", CLUSTER, offset=1, timestamp_ms=NOW_MS))


def _made(machine: Machine, states: list[DesiredState]) -> Plan:
    """Make a plan of the disks as they are, and read it from its file."""
    seen = list(scan_all(machine.log_dirs, jobs=0))
    view = RepairView.of(seen, by_cluster(states, {CLUSTER}), frozenset(), NOW_MS)
    choice = RepairChoice(frozenset({ActionKind.STAGE_DUPLICATE}))
    plan, _ = propose_repair(view, choice, PlanOrigin(NOW_MS, _HOST, "drill"))
    return parse_plan(encode_plan(plan))
