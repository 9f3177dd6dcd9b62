"""Drills what a plan is judged by: verdicts, the choice among copies, and the gates, each against an oracle.

A history compares disks with metadata that is always whole, young and its own, and on disks that nobody swapped. Here
the metadata and the rows of a scan are drawn (``drawn``), some of the premises are spoiled (``premises``), and what the
comparison and a plan say of them is compared with two oracles (``verdict_oracle``, ``gate_oracle``). Nothing lies on a
disk. Source: DESIGN §3, §6.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

from reconciler.desired import BrokerKey, DesiredState
from reconciler.plan import (
    ALLOWABLE,
    Action,
    ActionKind,
    GatesShutError,
    Plan,
    PlanChoice,
    PlanOrigin,
    PlanView,
    Policy,
    ScannedLogDir,
    make_plan,
)
from reconciler.policy import PolicyRules, parse_policy
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.judgement.drawn import CLUSTER, NOW_MS, draw_cluster, new_id
from reconciler.simulator.drills.judgement.gate_oracle import GateOracle
from reconciler.simulator.drills.judgement.premises import Premises, spoil
from reconciler.simulator.drills.judgement.verdict_oracle import (
    UNWANTED,
    ExpectedVerdict,
    Place,
    VerdictOracle,
    better_copy,
    broker,
)
from reconciler.verdicts import Copy, Judged, Ranking, Verdict, compare, rank_copies, wanted_again

_STEPS_PER_CLUSTER: Final = 10
"""Steps of the drill for each cluster that is drawn."""

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_PATTERNS: Final = ("*", "orders*", "*s", "org:*", "app-*")


def drill_judgement(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill verdicts and gates as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: a verdict, a choice or a gate is not what an oracle says.
    """
    random = Random(f"{seed}/judgement drill")
    for _ in range(steps // _STEPS_PER_CLUSTER):
        premises = spoil(random, draw_cluster(random))
        oracle = VerdictOracle(premises.drawn)
        states = {} if premises.no_metadata else {CLUSTER: premises.drawn.metadata.tables()}
        judged = list(compare(states, oracle.rows, NOW_MS))
        for each in judged:
            reach(f"drill_verdict {each.verdict}")
        _check_verdicts(premises, oracle, judged)
        again = set(wanted_again(states, oracle.rows, NOW_MS))
        if again != oracle.wanted_again():
            raise BrokenInvariantError(f"staged replicas are wanted again: {again}, and not {oracle.wanted_again()}")
        _check_plan(random, premises, oracle, _Evidence(states, judged), reach)
        _check_ranking(random)


class _Evidence(NamedTuple):
    """Desired states by cluster, and what the case table says of each row, and of what is wanted and not there."""

    states: dict[str, DesiredState]
    judged: list[Judged]


def _check_verdicts(premises: Premises, oracle: VerdictOracle, judged: Iterable[Judged]) -> None:
    here: dict[Place, ExpectedVerdict] = {}
    absent: dict[tuple[BrokerKey, str, int], ExpectedVerdict] = {}
    nodes = {each.broker.node: each.broker for each in premises.drawn.log_dirs if each.broker.cluster == CLUSTER}
    for each in judged:
        found = ExpectedVerdict(each.verdict, each.doubt)
        if each.observed is not None:
            here[each.observed["log_dir"], each.observed["name"]] = found
        elif each.wanted is not None:
            absent[nodes[each.wanted["node_id"]], each.wanted["topic"], each.wanted["partition"]] = found
    for what, found_there, expected in (("row", here, oracle.of_rows()), ("absent", absent, oracle.of_absent())):
        _compare_verdicts(what, found_there, expected)


def _compare_verdicts(what: str, found: Mapping[Any, ExpectedVerdict], expected: Mapping[Any, ExpectedVerdict]) -> None:
    for key in {**found, **expected}:
        said, wanted = found.get(key), expected.get(key)
        if said != wanted:
            raise BrokenInvariantError(f"the {what} {key} is {_words(said)}, and {_words(wanted)} was expected")


def _words(said: ExpectedVerdict | None) -> str:
    return "nothing" if said is None else f"{said.verdict} in doubt {said.doubt or 'none'}"


def _check_ranking(random: Random) -> None:
    """Rank the copies of one replica."""
    ids = [new_id(random), new_id(random), ""]
    copies = [
        Copy(
            str(number),
            random.choice((ids[0], ids[0], random.choice(ids))),
            random.choice((None, -1, 0, 1, 2, 2)),
            random.choice((None, -1, 3, 5, 5)),
            random.random() < 0.4,
        )
        for number in range(random.randint(2, 3))
    ]
    wanted = random.choice((ids[0], ids[1], ""))
    found, best = rank_copies(copies, wanted), better_copy(copies, wanted)
    chosen = found.best if isinstance(found, Ranking) else None
    if chosen is not best:
        raise BrokenInvariantError(f"of {copies} under {wanted!r}, the best is {chosen}, and {best} was expected")


def _check_plan(
    random: Random, premises: Premises, oracle: VerdictOracle, evidence: _Evidence, reach: Callable[[str], None]
) -> None:
    """Make a plan, and compare the gates that refuse it, and what it would do, with the oracles."""
    policy, view = _policy(random), _view(premises, oracle, evidence)
    patterns = tuple(random.sample(_PATTERNS, 1)) if random.random() < 0.3 else ()
    rules, held = _rules(random)
    choice = PlanChoice(policy, topics=patterns, strays=random.random() < 0.3, rules=rules)
    shut = set()
    try:
        plan = make_plan(view, choice, PlanOrigin(NOW_MS, "host", "drill"), premises.memory)
    except GatesShutError as error:
        plan, shut = error.plan, {each.gate for each in error.refusals}
    chosen = [
        row
        for row in oracle.rows
        if _is_staged(row, oracle, strays=choice.strays)
        and _is_chosen(row["topic"], patterns)
        and row["topic"] not in held
    ]
    never = {topic for topic, is_forever in held.items() if is_forever}
    named = {(row["log_dir"], row["name"]): row["topic"] for row in oracle.rows}
    ids = {
        each
        for each in oracle.given_an_id(view.epochs)
        if _is_chosen(named[each], patterns) and named[each] not in never
    }
    _compare_actions(plan, {(row["log_dir"], row["name"]) for row in chosen}, ActionKind.STAGE, ActionKind.STAGE_STRAY)
    _compare_actions(plan, ids, ActionKind.WRITE_TOPIC_ID)
    changed = {_broker_of(premises, each) for each in plan.actions}
    expected = GateOracle(premises, oracle, chosen, changed).refused(policy)
    for gate in expected:
        reach(f"drill_gate {gate}")
    if shut != expected:
        over, lacking = sorted(shut - expected), sorted(expected - shut)
        what = f"{', '.join(over) or 'none'} are shut that should be open, {', '.join(lacking) or 'none'} are open"
        raise BrokenInvariantError(f"of the gates of a plan, {what} that should be shut")


def _broker_of(premises: Premises, action: Action) -> BrokerKey:
    return next(each.broker for each in premises.drawn.log_dirs if each.path == action.log_dir)


def _compare_actions(plan: Plan, expected: set[Place], *kinds: ActionKind) -> None:
    found = {(each.log_dir, each.name) for each in plan.actions if each.kind in kinds}
    if found != expected:
        names = ", ".join(f"{log_dir}/{name}" for log_dir, name in sorted(found ^ expected))
        raise BrokenInvariantError(f"the actions {' and '.join(kinds)} of a plan are too many or too few: {names}")


def _is_staged(row: Mapping[str, Any], oracle: VerdictOracle, *, strays: bool) -> bool:
    verdict = oracle.of_row(row).verdict
    return verdict in UNWANTED or (verdict is Verdict.STRAY and strays and oracle.is_unwanted_stray(row))


def _is_chosen(topic: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(
        topic.startswith(head) and topic.endswith(tail) for head, _, tail in (each.partition("*") for each in patterns)
    )


def _policy(random: Random) -> Policy:
    return Policy(
        oldest_ms=random.choice((None, _HOUR_MS, _HOUR_MS, _DAY_MS)),
        most_shrink=random.choice((None, 0.1, 0.3)),
        most_share=random.choice((None, 0.1, 0.5, 1.0)),
        most_count=random.choice((None, 1, 3, 1000)),
        allowed=frozenset(random.sample(ALLOWABLE, random.choice((0, 0, 2)))),
    )


def _rules(random: Random) -> tuple[PolicyRules, dict[str, bool]]:
    """Draw a policy file; gives its rules, and topics of which nothing is to be staged now → nothing changed at all."""
    lines, held, now = list[str](), dict[str, bool](), datetime.fromtimestamp(NOW_MS / 1000, UTC)
    for topic in ("orders", "clicks", "orders-old", "hits") if random.random() < 0.4 else ():
        kind, days = random.choice(("hold", "hold", "hold", "never_touch")), random.randint(-1, 1)
        lines += [f"[[{kind}]]", f'topics = ["{topic}"]', 'reason = "a drilled one"']
        until = now + timedelta(days=days)
        if kind == "hold" and random.random() < 0.8:
            is_day = random.random() < 0.6
            lines.append(f"until = {until.date() if is_day else until.isoformat()}")
            if (until.date() < now.date()) if is_day else (until <= now):
                continue
        held[topic] = kind == "never_touch"
    return parse_policy("policy.toml", "\n".join(lines).encode()), held


def _view(premises: Premises, oracle: VerdictOracle, evidence: _Evidence) -> PlanView:
    """Give the evidence of a plan, as a scan of the drawn log dirs would."""
    log_dirs, judged_of = premises.drawn.log_dirs, defaultdict[str, list[Judged]](list)
    for each in evidence.judged:
        judged_of[CLUSTER if each.observed is None else broker(each.observed).cluster].append(each)
    return PlanView(
        {
            each.path: ScannedLogDir(each.path, each.head, None, each.path, premises.newest.get(each.path))
            for each in log_dirs
        },
        evidence.states,
        dict(judged_of),
        Counter(broker(row) for row in oracle.rows if row["kind"] == "live"),
        {(each.path, name): ms for each in log_dirs for name, ms in each.created.items()},
        {(each.path, name): epoch for each in log_dirs for name, epoch in each.epochs.items()},
    )
