"""Makes a plan from what was seen, what is wanted, and what is asked for: a pure function, without a clock or a file.

What a replica is, the case table has said; here stands what follows from it::

    STALE_ID, NOT_ASSIGNED, UNKNOWN_TOPIC    stage; in log dirs that are ours, create the wanted replica in its place
    NO_ID                                    write the topic ID, unless others of the topic hold another one
    STAGED, STAGED_DUE, STRAY and wanted     restore, unless a replica of the partition lives, or several could come
    STRAY and not wanted                     with strays asked for: give it a due time where it lies
    MISSING                                  create, in log dirs that are ours; a real broker does that itself
    DUPLICATE, DAMAGED, CHECKPOINT_ENTRY, LEFTOVER         left to ``logstore repair``
    MARKED_DELETE and wanted, FUTURE_ABANDONED, FOREIGN    left to a person
    everything else                          nothing; it is counted

An abandoned future replica is left alone on purpose: whether a broker will finish the move is known to no file.
Nothing is planned where a gate is shut. Source: DESIGN §3, §4, §6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reconciler.desired import DesiredState
from reconciler.errors import RefusedError
from reconciler.plan.plan import STAGING_ACTIONS, Action, ActionKind, Plan, PlannedLogDir
from reconciler.plan.plan_choice import PlanChoice, cheapest
from reconciler.plan.plan_draft import PlanDraft
from reconciler.plan.plan_facts import EarlierRuns, gather_gate_inputs, is_internal, sole_copies
from reconciler.plan.plan_json import sealed
from reconciler.plan.plan_view import PlanView, ScannedLogDir
from reconciler.plan.policy import Refusal, refusals


class GatesShutError(RefusedError):
    """No plan is made, because gates are shut; ``refusals`` holds every one of them."""

    def __init__(self, shut: Sequence[Refusal]) -> None:
        """Join the reasons into one message."""
        super().__init__("no plan is made: " + "; ".join(refusal.reason for refusal in shut))
        self.refusals = tuple(shut)


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """When, where and by whom a plan is made."""

    now_ms: int
    host: str
    user: str


def make_plan(view: PlanView, choice: PlanChoice, maker: PlanOrigin, memory: EarlierRuns | None = None) -> Plan:
    """Make a plan, with its fingerprints.

    Args:
        view: what was seen, judged by the case table.
        choice: what is asked for.
        maker: stands in the plan.
        memory: what the journals of earlier runs say.

    Raises:
        GatesShutError: one or more gates are shut.
    """
    memory = memory or EarlierRuns()
    draft = PlanDraft(view, choice.strays, maker.now_ms + choice.delay_ms)
    draft.fill()
    possible = [action for action, _ in draft.candidates]
    picked = [action for action in possible if choice.has(action)]
    if choice.need is not None:
        unsafe = {*sole_copies(view, draft.candidates), *(each for each in possible if is_internal(each))}
        picked = cheapest(picked, choice.need, unsafe)
    picked = [_seen_often_enough(action, choice, memory) for action in picked]
    shut = refusals(gather_gate_inputs(view, draft.candidates, picked, memory, maker.now_ms), choice.policy)
    if shut:
        raise GatesShutError(shut)
    places = {path: number for number, path in enumerate(view.log_dirs)}
    order = {kind: number for number, kind in enumerate(ActionKind)}
    picked.sort(key=lambda each: (places[each.log_dir], order[each.kind], each.topic, each.partition, each.name))
    return sealed(
        Plan(
            maker.now_ms,
            maker.host,
            maker.user,
            choice.delay_ms,
            choice.policy.described(),
            tuple(_planned(log_dir) for log_dir in view.trusted),
            tuple(_identity(state, cluster) for cluster, state in view.states.items()),
            tuple(picked),
            tuple(draft.told()),
            dict(sorted(Counter(each.verdict.value for each in view.judged).items())),
        )
    )


def _seen_often_enough(action: Action, choice: PlanChoice, memory: EarlierRuns) -> Action:
    """The action, or a note in its place where too few runs have seen the replica unwanted."""
    if action.kind not in STAGING_ACTIONS:
        return action
    before = memory.sightings.get((action.log_dir, action.inode, action.topic_id), 0)
    if before + 1 >= choice.sightings:
        return action
    seen = f"seen for the {before + 1}. time of {choice.sightings} that are asked for"
    return replace(action, kind=ActionKind.NOTE_SIGHTING, why=f"{action.why}; {seen}", due_ms=None, undo=None)


def _planned(log_dir: ScannedLogDir) -> PlannedLogDir:
    row = log_dir.row
    return PlannedLogDir(log_dir.path, row["cluster_id"], row["node_id"], row["directory_id"], log_dir.staging)


def _identity(state: DesiredState, cluster: str) -> dict[str, str]:
    """What a plan and the journal say of a metadata source, as text."""
    identity = state.identity
    told = {
        "source": identity.source,
        "location": identity.location,
        "cluster_id": identity.cluster_id or cluster or None,
        "completeness": identity.completeness.value,
        "offset": identity.offset,
        "epoch": identity.epoch,
        "timestamp_ms": identity.timestamp_ms,
        "sha256": identity.digest or None,
        "topics": state.topics.num_rows,
        "replicas": state.replicas.num_rows,
    }
    return {key: str(value) for key, value in told.items() if value is not None}
