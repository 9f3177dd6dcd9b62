"""An operator's plans: each is made from the metadata of its moment, ages for a while, and is then applied.

Nobody tells the controller, which goes on meanwhile: what the plan was made for may be wanted again, gone, or another
replica by then. A plan is applied while the broker is down, so its operator stops it. The power may be cut in the
middle of that; then the plan is applied once more. Source: DESIGN §6.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from layout.scheme import STAGING_DIR
from logstore import LogStoreError
from logstore.scan import scan_all
from logstore.store import LogStore
from reconciler.desired import DesiredState
from reconciler.errors import RefusedError
from reconciler.plan import (
    ApplyOptions,
    ApplyOutcome,
    Gate,
    GatesShutError,
    PlanChoice,
    PlanOrigin,
    PlanView,
    Policy,
    apply_plan,
    encode_plan,
    make_plan,
    parse_plan,
    read_history,
)
from reconciler.simulator.checks import (
    BrokenInvariantError,
    FoundDisks,
    expected_state,
    wrongly_applied,
    wrongly_done_again,
    wrongly_planned,
    wrongly_refused,
)
from reconciler.simulator.cluster import Cluster, Member

_AGES_MS = (0, 0, 300, 1_000, 3_000, 8_000)
"""How long a plan waits until it is applied."""

_OLDEST_MS = 2_500
"""The greatest age of the metadata that a plan was made from."""

_DELAY_MS = 600_000
"""How long what it stages is kept: longer than any config of a history says."""

_ALLOWED = frozenset({Gate.SHRUNK, Gate.INTERNAL, Gate.NO_ID, Gate.LOG_DIR, Gate.CLOCK, Gate.NEWER})
"""Gates that this operator opens: histories delete most topics, and their clocks jump."""

_WRITTEN_MS = 86_400_000
"""How old files are made that were written before a plan: the simulator's are of the real time of day."""

_SAME_SCALE_MS = 365 * 86_400_000

_CUT_SHORT, _CHANGES = 0.25, 60
"""How likely the power is cut while a plan is applied, and within how many changes."""

Downtime = Callable[[Member, Callable[[], None], int | None], bool]
"""Does work on a machine whose broker is down, or is stopped for it, and says whether it came to its end.

The number is that of the changes after which the power is cut; None: it is not.
"""


@dataclass(frozen=True, slots=True)
class _MadePlan:
    """A plan in its file, and what lay on the disks when it was made."""

    member: Member
    data: bytes
    made_ms: int
    found: FoundDisks


class Plans:
    """Makes and applies the plans of one history."""

    def __init__(self, cluster: Cluster, downtime: Downtime) -> None:
        """Plan for the machines of a cluster, and apply by the ``downtime`` of their brokers."""
        self._cluster, self._downtime, self._plans = cluster, downtime, 0
        self._waiting = list[Callable[[], None]]()

    def make(self, member: Member, random: Random) -> None:
        """Make a plan for a machine, whose broker may run, and have it applied some time later."""
        wait_ms, starts = random.choice(_AGES_MS), random.random() < 0.7
        cut = random.randrange(_CHANGES) if random.random() < _CUT_SHORT else None
        made = self._made(member)
        if made is not None:
            self._waiting.append(partial(self._apply, made, cut, starts=starts))
            self._cluster.world.add(wait_ms, "", "operator", partial(self._take, self._waiting[-1]))

    def end(self) -> None:
        """Apply now what still waits."""
        for waiting in list(self._waiting):
            self._take(waiting)

    def _take(self, waiting: Callable[[], None]) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            waiting()

    def _made(self, member: Member) -> _MadePlan | None:
        history, now_ms = self._cluster.world.history, self._cluster.world.clock_of(member.name)
        state = self._state(now_ms)
        _date_files(member, now_ms - _WRITTEN_MS)
        seen = list(scan_all(member.disks.log_dirs, jobs=0))
        roots = {each.log_dir: f"{each.log_dir}/{STAGING_DIR}" for each in seen}
        view = PlanView.of(seen, roots, [state], now_ms)
        policy = Policy(_OLDEST_MS, None, None, None, _ALLOWED)
        memory = read_history(view.log_dirs).memory()
        self._plans += 1  # of two plans of one moment, each has its own name, as if two people had made them
        origin = PlanOrigin(now_ms, member.name, f"operator {self._plans}")
        try:
            plan = make_plan(view, PlanChoice(policy, _DELAY_MS), origin, memory)
        except GatesShutError as error:
            for refusal in error.refusals:
                history.reach(f"plan gate_{refusal.gate}")
            return None
        rows = [row for each in seen for row in each.rows.to_pylist()]
        if state.topics.num_rows or self._cluster.oracle.has_namespaces():
            _check(wrongly_planned(plan, rows, self._cluster.oracle, member.node_id))
        history.reach("plan made" if plan.actions else "plan empty")
        return _MadePlan(member, encode_plan(plan), now_ms, FoundDisks.of(member)) if plan.actions else None

    def _state(self, now_ms: int) -> DesiredState:
        """The metadata of this moment, as a source that says when it was read."""
        state, zxid = expected_state(self._cluster.zookeeper), self._cluster.zookeeper.nodes.last_transaction
        return replace(state, identity=replace(state.identity, timestamp_ms=now_ms, offset=zxid))

    def _apply(self, made: _MadePlan, cut: int | None, *, starts: bool) -> None:
        """Apply a plan twice: after a power cut the second time goes on, and otherwise it finds all of it done."""
        done, applied = list[ApplyOutcome](), partial(self._applied, made)
        if self._downtime(made.member, lambda: done.extend(applied()), cut) or not made.member.running:
            self._downtime(made.member, lambda: done.extend(applied()), None)
        if len(done) > 1:
            _check(wrongly_done_again(*done))
        if starts and done:
            made.member.start()

    def _applied(self, made: _MadePlan) -> list[ApplyOutcome]:
        """Apply a plan on a machine whose broker is down, and check what that changed; it may be refused."""
        world, member, plan = self._cluster.world, made.member, parse_plan(made.data)
        member.broker.maintain(_recovered)  # what a crash left to be done is no change of the plan
        before, old = FoundDisks.of(member), world.clock_of(member.name) - made.made_ms > _OLDEST_MS
        how = ApplyOptions(member.name, "operator", member.broker.clock, member.disks.disk, any_clock=True)
        try:
            outcome = apply_plan(plan, how)
        except RefusedError as error:
            world.history.reach(f"plan refused_{'old' if old else 'disks'}")
            _check(wrongly_refused(made.found, before, FoundDisks.of(member), str(error), old=old))
            return []
        except LogStoreError as error:
            world.history.reach(f"error plan {type(error).__name__}")
            return []
        for each in outcome.results:
            world.history.reach(f"plan {each.action.kind}_{each.status}")
            said = f"{member.name}: by a plan, {each.action.kind} of {each.action.name}: {each.status}"
            world.history.say("operator", said)
        _check(wrongly_applied(made.found, before, FoundDisks.of(member), outcome, old=old))
        return [outcome]


def _recovered(store: LogStore) -> None:
    """Open the log dirs, which is all that recovery takes."""


def _check(wrong: Iterable[str]) -> None:
    if found := list(wrong):
        raise BrokenInvariantError("; ".join(found[:4]))


def _date_files(member: Member, written_ms: int) -> None:
    """Give the files of replicas that have a time of the real world one of the simulated world.

    What is written later has a time of the real world again, so a change is seen however soon it comes.
    """
    for replica in FoundDisks.of(member).replicas.values():
        for name in replica.files:
            path = f"{replica.path}/{name}"
            if os.stat(path).st_mtime_ns > (written_ms + _SAME_SCALE_MS) * 1_000_000:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    member.disks.disk.set_modified(descriptor, written_ms * 1_000_000)
                finally:
                    os.close(descriptor)
