"""Drills an operator's plan: it is made of one state of the disks, and applied to what has become of them.

In a history little changes between plan and apply that the plan has to notice. Here much does: a directory takes the
place of another one or gets another topic ID, data changes and keeps its length, a hold is laid, a day goes by, the log
dir is another one, the machine is another one. Then it is compared what is carried out, what is left and what is
refused::

    refused    a plan of another machine, of another time or for other log dirs; not a byte changes
    left       an action on what is not the replica of the plan any more, or that a rule forbids by now
    done       every other one: staged it has its bytes still, and restored the name that the metadata gives it

A second plan follows the first, by metadata that wants some of what was staged back, perhaps under another name. Some
games are about replicas that are live twice instead (``copies``). Source: DESIGN §6.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from layout.ids import TopicId
from logstore import ManualClock
from logstore.fs.crash_disk import memory_folder
from logstore.repair import RepairStatus
from logstore.scan import scan_all
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.errors import RefusedError
from reconciler.plan import (
    Action,
    ActionKind,
    ApplyOptions,
    ApplyOutcome,
    Plan,
    PlanChoice,
    PlanOrigin,
    PlanView,
    Policy,
    apply_plan,
    encode_plan,
    make_plan,
    parse_plan,
)
from reconciler.policy import PolicyRules, parse_policy
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.plans.copies import play_copies
from reconciler.simulator.drills.plans.machine import CLUSTER, NODE_ID, NOW_MS, Fate, Lying, Machine

_STEPS_PER_GAME: Final = 40
"""Steps of the drill for each machine that is drawn."""

_HOST: Final = "host"
_TOPICS: Final = ("orders", "clicks", "payments", "audit")
_PARTITIONS: Final = 2
_CHANGES: Final = (*(Fate.NONE,) * 8, *Fate)
_CHANGES_OF_STAGED: Final = (*(Fate.NONE,) * 3, *(each for each in Fate if each is not Fate.OTHER_ID))
"""Fewer are staged, so something becomes of more of them. Their topic ID is the ledger's, whatever lies beside it."""

_OF_COPIES: Final = 0.25
"""How likely a game is about replicas that are live twice."""

_REASONS: Final = (*("",) * 9, "machine", "age", "log_dir")
"""Why a whole plan is refused; empty: it is not."""

_DAY_MS: Final = 86_400_000


def drill_plans(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Make and apply plans as a seed says; ``reach`` counts what they come to.

    Raises:
        BrokenInvariantError: a plan is not what the rules say, or what it did is not.
    """
    random = Random(f"{seed}/plan drill")
    for _ in range(steps // _STEPS_PER_GAME):
        with memory_folder() as folder:
            machine = Machine(folder, random)
            if random.random() < _OF_COPIES:
                play_copies(random, machine, reach)
                continue
            game = _Game(random, machine, reach)
            if game.play(game.some_wanted()):
                game.play(game.wanted_back())


class _Game:
    """One machine, and the plans that are made for it."""

    def __init__(self, random: Random, machine: Machine, reach: Callable[[str], None]) -> None:
        self._random, self._machine, self._reach = random, machine, reach
        self._clock, self._offset = ManualClock(NOW_MS), 10
        self._ids = {name: TopicId(random.randbytes(16)) for name in _TOPICS}
        for name, topic_id in self._ids.items():
            for number in range(random.randint(1, _PARTITIONS)):
                machine.add(f"{name}-{number}", topic_id)

    def some_wanted(self) -> dict[TopicId, str]:
        """Draw the topics that are wanted here; gives their names."""
        return {topic_id: name for name, topic_id in self._ids.items() if self._random.random() < 0.3}

    def wanted_back(self) -> dict[TopicId, str]:
        """Draw them anew, each under its name or another one."""
        return {
            topic_id: self._random.choice((name, f"{name}-renamed"))
            for name, topic_id in self._ids.items()
            if self._random.random() < 0.7
        }

    def play(self, wanted: Mapping[TopicId, str]) -> bool:
        """Make a plan by metadata that wants these topics here, and apply it; False: it was refused."""
        random, machine = self._random, self._machine
        plan = self._made(wanted)
        self._check_plan(plan, wanted)
        if not plan.actions:
            return True
        drawn_of = {ActionKind.STAGE: _CHANGES, ActionKind.RESTORE: _CHANGES_OF_STAGED}
        changes = {each.fingerprint: random.choice(drawn_of[each.kind]) for each in plan.actions}
        for each in plan.actions:
            machine.change(_path(each), changes[each.fingerprint])
        rules, held = self._rules()
        how, why = self._conditions(plan, rules)
        before, files = machine.found(), machine.bytes_of_all()
        try:
            outcome = apply_plan(plan, how)
        except RefusedError as error:
            if not why or machine.bytes_of_all() != files:
                what = "changed the disks" if why else "is one of this machine and these disks"
                raise BrokenInvariantError(f"a plan was refused, and {what}: {error}") from error
            self._reach(f"drill_plan refused_{why}")
            return False
        if why:
            raise BrokenInvariantError(f"a plan is applied, and should be refused, because of the {why}")
        left = dict[str, str]()
        for each in plan.actions:
            is_held = each.topic in held and (held[each.topic] or each.kind is ActionKind.STAGE)
            left[each.fingerprint] = "held" if is_held else changes[each.fingerprint].value
            self._reach(f"drill_plan {each.kind}_{left[each.fingerprint]}")
        self._check_applied(outcome, left, before, wanted)
        return True

    def _made(self, wanted: Mapping[TopicId, str]) -> Plan:
        """Make a plan of the disks as they are, and read it from its file."""
        self._offset += 1
        self._clock.advance(60_000)
        now_ms, builder = self._clock.now_ms(), DesiredBuilder()
        for topic_id, name in wanted.items():
            for number in range(_PARTITIONS):
                builder.partition(name, str(topic_id), number, (NODE_ID, 1), isr=(NODE_ID, 1), leader=1)
        builder.partition("elsewhere", str(TopicId(bytes([1] * 16))), 0, (1, 2), isr=(1, 2), leader=1)
        identity = MetadataIdentity("kraft", "/metadata", CLUSTER, offset=self._offset, timestamp_ms=now_ms)
        log_dirs = self._machine.log_dirs
        roots = {path: f"{path}.deleting" for path in log_dirs}
        view = PlanView.of(list(scan_all(log_dirs, jobs=0)), roots, [builder.build(identity)], now_ms)
        plan = make_plan(view, PlanChoice(Policy.kip516()), PlanOrigin(now_ms, _HOST, "drill"))
        return parse_plan(encode_plan(plan))

    def _check_plan(self, plan: Plan, wanted: Mapping[TopicId, str]) -> None:
        """Compare the actions with what lies there: what nobody wants is staged, and what is wanted comes back."""
        expected = set[tuple[str, ActionKind]]()
        for lying in self._machine.found().values():
            name = None if lying.topic_id is None else wanted.get(lying.topic_id)
            if lying.is_staged and name is not None:
                expected.add((lying.path, ActionKind.RESTORE))
            elif not lying.is_staged and name is None:
                expected.add((lying.path, ActionKind.STAGE))
        if (found := {(_path(each), each.kind) for each in plan.actions}) != expected:
            raise BrokenInvariantError(f"the actions of a plan are too many or too few: {sorted(found ^ expected)}")

    def _rules(self) -> tuple[PolicyRules, dict[str, bool]]:
        """Draw a policy file that was written meanwhile; gives topics, and whether nothing at all may change there."""
        lines, held = list[str](), dict[str, bool]()
        for name in self._random.sample(_TOPICS, self._random.choice((0, 0, 1))):
            held[name] = self._random.random() < 0.3
            lines += ["[[never_touch]]" if held[name] else "[[hold]]", f'topics = ["{name}"]', 'reason = "drilled"']
        return parse_policy("policy.toml", "\n".join(lines).encode()), held

    def _conditions(self, plan: Plan, rules: PolicyRules) -> tuple[ApplyOptions, str]:
        """Draw how a plan is applied; gives why all of it is to be refused too, empty: it is not."""
        why = self._random.choice(_REASONS)
        if why == "age":
            self._clock.advance(_DAY_MS + 1)
        elif why == "log_dir":
            self._machine.identify(self._random.choice(plan.actions).log_dir)
        host = "another-host" if why == "machine" else _HOST
        return ApplyOptions(host, "drill", self._clock, any_clock=True, rules=rules), why

    def _check_applied(
        self,
        outcome: ApplyOutcome,
        left: Mapping[str, str],
        before: Mapping[int, Lying],
        wanted: Mapping[TopicId, str],
    ) -> None:
        """Compare what was done with what may be; ``left``: action → why it is not done, ``none``: it is."""
        after, done = self._machine.found(), set[int]()
        for each in outcome.results:
            action, is_due = each.action, left[each.action.fingerprint] == Fate.NONE
            what = f"{action.kind} of {_path(action)} ({left[action.fingerprint]}) is {each.status}: {each.detail}"
            if each.status is not (RepairStatus.DONE if is_due else RepairStatus.SKIPPED):
                raise BrokenInvariantError(what)
            if not is_due or action.inode is None:
                continue
            done.add(action.inode)
            then, now = before[action.inode], after.get(action.inode)
            if now is None or now.files != then.files:
                raise BrokenInvariantError(f"{what}, and its files are not what they were")
            home = f"{action.log_dir}/{wanted.get(then.topic_id)}-{action.partition}" if then.topic_id else ""
            if now.is_staged is not (action.kind is ActionKind.STAGE) or not (now.is_staged or now.path == home):
                raise BrokenInvariantError(f"{what}, and it lies in {now.path}")
        if {inode: each for inode, each in before.items() if inode not in done} != {
            inode: each for inode, each in after.items() if inode not in done
        }:
            raise BrokenInvariantError("a plan changed a replica that it does not name, or that it left")


def _path(action: Action) -> str:
    return posixpath.normpath(f"{action.log_dir}/{action.name}")
