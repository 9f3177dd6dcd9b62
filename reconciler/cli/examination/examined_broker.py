"""Looks at everything that is known of each broker whose log dirs are given, so that its next steps can be decided.

Nothing is changed and no lock is taken: a scan, the verdicts, what only many rows tell, what a broker would do at its
start, what is staged, who holds the locks, and how much room the disks have.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from logstore.log_dir import LOCK_FILE, FallbackRecords
from logstore.scan import Observation, scan_all
from logstore.staging import stages_in_place
from reconciler.audit import AuditResult
from reconciler.cli.examination.cut_short import find_cut_short
from reconciler.cli.examination.found_verdicts import (
    by_verdict,
    comes_back,
    first_place,
    found_verdict,
    in_sync_replicas,
    live_replicas,
    lost_replicas,
    unclaimed_strays,
    with_former_names,
    without_directory_id,
)
from reconciler.cli.examination.metadata_trust import is_only_voter, judge_metadata
from reconciler.cli.examination.other_disks import names_beside, with_not_given
from reconciler.cli.examination.room import is_blank, is_full, lies_apart, takes_no_file
from reconciler.cli.examination.staged_replicas import count_staged, recorded_elsewhere, worth_purging
from reconciler.cli.frame import (
    Inputs,
    broker_in_question,
    closed_at,
    forbidden_in,
    location_among,
    read_policy,
    run_join,
    show_busy,
    why_in_use,
    with_progress,
)
from reconciler.desired import BrokerKey, DesiredState, Mode, by_cluster
from reconciler.next_steps import (
    REPAIRED,
    UNWANTED,
    Call,
    FoundVerdict,
    MetadataTrust,
    Obstacle,
    Situation,
    Step,
    UncertainReplica,
    next_steps,
)
from reconciler.plan import (
    GatesShutError,
    PlanOrigin,
    Policy,
    RepairChoice,
    RepairView,
    propose_repair,
    read_history,
    shut_for_repair,
    uncertain_replicas,
)
from reconciler.policy import PolicyRules
from reconciler.preflight import Preflight, StartEffect, look_at_broker, preflight
from reconciler.text import moment
from reconciler.verdicts import BENIGN, Judged, Verdict, broker_of, compare


@dataclass(frozen=True, slots=True)
class ExaminedBroker:
    """One broker: what was found, what its start would do, and the steps to its health."""

    cluster_id: str | None
    node_id: int | None
    totals: Mapping[str, int]
    """Findings by verdict, the most urgent first."""
    evidence: Mapping[str, str]
    """Place and evidence of the first finding of each verdict."""
    fleet: Sequence[tuple[str, str, str]]
    """Kind, subject and detail of each finding of the fleet that is about this broker."""
    start: Preflight
    situation: Situation
    steps: Sequence[Step]

    @property
    def is_clean(self) -> bool:
        """Whether nobody has to act: no step is printed but for later.

        A start that only goes on with a move between log dirs needs nobody.
        """
        benign = {verdict.value for verdict in BENIGN}
        stops = (each.effect not in (StartEffect.NOTE, StartEffect.REPLACED) for each in self.start.findings)
        calm = not (self.fleet or self.situation.full) and all(name in benign for name in self.totals)
        calm = calm and all(step.later for step in self.steps)
        return calm and (bool(self.situation.in_use) or not any(stops))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What all brokers are judged by."""

    states: Mapping[str, DesiredState]
    result: AuditResult
    fallback: FallbackRecords
    now_ms: int
    seen: Sequence[Observation]
    """All log dirs of one broker."""
    recorded_elsewhere: Collection[str]
    """Locations of what is staged in a log dir, and has its record on another disk."""
    rules: PolicyRules
    of_other_clusters: tuple[str, ...]
    """Log dirs that name the same node.id of another cluster."""


def examine(
    inputs: Inputs, states: Sequence[DesiredState], call: Call, fallback: FallbackRecords, now_ms: int
) -> list[ExaminedBroker]:
    """Look at every broker whose log dirs were given.

    The call says how the command was called; each broker gets its own log dirs.

    Raises:
        RefusedError: the metadata does not fit the log dirs.
        UsageError: a release does not have the mode that was named, or there is a mistake in the policy.
    """
    rules = read_policy(call.policy)
    scanned = scan_all(inputs.log_dirs, fallback=fallback)
    seen = list(with_progress(scanned, len(inputs.log_dirs), "scanning log dirs"))
    clusters = {each.identity.cluster_id for each in seen if each.identity is not None and each.identity.cluster_id}
    of_cluster = by_cluster(states, clusters)
    with show_busy("comparing"):
        result = _fleet(seen, states, now_ms)
    given = dict(zip(map(os.path.abspath, inputs.log_dirs), inputs.log_dirs, strict=True))
    examined = []
    groups = _by_broker(seen)
    for broker, several in groups.items():
        elsewhere = {name for each in several for name in recorded_elsewhere(each, fallback)}
        judged = list(compare(of_cluster, [row for each in several for row in each.rows.to_pylist()], now_ms))
        own = replace(call, log_dirs=tuple(given.get(each.log_dir, each.log_dir) for each in several))
        others = [each for key, group in groups.items() if _same_node(key, broker) for each in group]
        same_node = tuple(given.get(each.log_dir, each.log_dir) for each in others)
        evidence = _Evidence(of_cluster, result, fallback, now_ms, several, elsewhere, rules, same_node)
        examined.append(_examined(broker, own, judged, evidence))
    return examined


def _same_node(one: BrokerKey, other: BrokerKey) -> bool:
    return one.node == other.node >= 0 and one.cluster != other.cluster


def _by_broker(seen: Sequence[Observation]) -> dict[BrokerKey, list[Observation]]:
    """Group log dirs by their broker.

    A disk that is not mounted names no broker. Beside the log dirs of one broker it is taken for one of them.
    """
    brokers = [broker_of(each.rows.slice(0, 1).to_pylist()[0]) for each in seen]
    named = {broker for broker in brokers if broker.node >= 0}
    groups: dict[BrokerKey, list[Observation]] = defaultdict(list)
    for broker, each in zip(brokers, seen, strict=True):
        groups[next(iter(named)) if len(named) == 1 else broker].append(each)
    return groups


def _fleet(seen: Sequence[Observation], states: Sequence[DesiredState], now_ms: int) -> AuditResult:
    with tempfile.TemporaryDirectory(prefix="logstore-doctor-") as folder:
        return run_join([each.rows for each in seen], [], states, folder, now_ms=now_ms)


def _examined(broker: BrokerKey, call: Call, judged: Sequence[Judged], evidence: _Evidence) -> ExaminedBroker:
    states, now_ms = evidence.states, evidence.now_ms
    start = _start(call, states, now_ms)
    in_use = tuple(path for path in call.log_dirs if why_in_use(path) is not None)
    in_sync = in_sync_replicas(states, judged)
    live, lost = live_replicas(judged), lost_replicas(judged)
    held = _held(judged, live, evidence)
    kept_by_rule = {id(each) for each, _ in held}
    to_act = by_verdict([each for each in judged if id(each) not in kept_by_rule])
    found = {verdict: found_verdict(several, in_sync, live, lost) for verdict, several in to_act.items()}
    fleet = with_not_given(_about(broker, call, judged, evidence.result), broker, call.log_dirs, judged)
    trust, why = judge_metadata(states.get(broker.cluster), broker, now_ms, judged, call.log_dirs)
    if Verdict.FOREIGN in found:
        found[Verdict.FOREIGN] = with_former_names(found[Verdict.FOREIGN], judged)
    looked = _repair_evidence(found, evidence)
    staged, due, due_ms, due_inside = count_staged(call.log_dirs, evidence.fallback, evidence.rules, now_ms)
    full = tuple(path for path in call.log_dirs if is_full(path))
    obstacles = _obstacles(start, bool(in_use))
    freed, freed_bytes, in_the_way = _purged_early(judged, live, full, obstacles, evidence)
    # The metadata log's own disk is no disk to begin anew on: a controller that is alone would forget the cluster.
    kept = {call.metadata_log_dir or call.log_dirs[0]} if start.asked.is_kraft else set()
    replaceable = [path for path in call.log_dirs if path not in kept]
    situation = Situation(
        call=replace(call, opened=looked.opened),
        found=found,
        fleet={kind: subject for kind, subject, _ in fleet},
        trust=trust,
        trust_why=why,
        only_voter=is_only_voter(states.get(broker.cluster), broker),
        obstacles=obstacles,
        in_use=in_use,
        full=full,
        staged=staged,
        due=due,
        due_from=None if due_ms is None else moment(due_ms),
        due_inside=due_inside,
        undecided=looked.undecided,
        on_zookeeper=start.asked.mode is Mode.ZOOKEEPER and not start.asked.migrating,
        unreadable=_closed(call.log_dirs, judged, start),
        repairable=looked.repairable,
        held=len(held),
        held_by=held[0][1] if held else "",
        live_twice=looked.live_twice,
        copied=looked.copied,
        uncertain=(*looked.uncertain, *(unclaimed_strays(judged) if trust is MetadataTrust.GOOD else ())),
        without_lock=tuple(filter(_finds_no_lock, call.log_dirs)),
        freed=tuple(location_among(log_dir, name, call.log_dirs) for log_dir, name in freed),
        in_place=tuple(filter(stages_in_place, call.log_dirs)),
        knows_strays=start.asked.knows_strays,
        in_the_way=in_the_way,
        freed_bytes=freed_bytes,
        blank=tuple(map(os.path.abspath, filter(is_blank, replaceable))),
        cluster_id=broker.cluster if start.asked.is_kraft else "",
        unnamed_disks=without_directory_id(judged),
        mount_points=tuple(filter(os.path.ismount, map(os.path.abspath, call.log_dirs))),
        cut_short=find_cut_short(call.log_dirs),
        moved_by_copy=tuple(filter(lies_apart, map(os.path.abspath, call.log_dirs))),
        beside=frozenset(path for log_dir in call.log_dirs for path in names_beside(log_dir)),
        of_other_clusters=evidence.of_other_clusters,
    )
    return ExaminedBroker(
        broker.cluster or None,
        broker.node if broker.node >= 0 else None,
        {verdict.value: len(several) for verdict, several in by_verdict(judged).items()},
        {verdict.value: first_place(several) for verdict, several in by_verdict(judged).items()},
        fleet,
        start,
        situation,
        next_steps(situation),
    )


def _finds_no_lock(path: str) -> bool:
    """Whether the lock file that every change needs is not there, and no file can be made."""
    return takes_no_file(path) and not os.path.lexists(f"{path}/{LOCK_FILE}")


def _purged_early(
    judged: Sequence[Judged],
    live: frozenset[tuple[str, int | None]],
    full: tuple[str, ...],
    obstacles: Sequence[Obstacle],
    evidence: _Evidence,
) -> tuple[list[tuple[str, str]], int, tuple[Obstacle, ...]]:
    """Find what is purged of full disks before its time, how much that frees, and what stays in the broker's way."""
    cured = (each.observed for each in judged if each.verdict is Verdict.STAGED_DUE or comes_back(each, live))
    gone = {row["name"] for row in cured if row is not None}
    unknown = tuple(each for each in obstacles if each.rule == "unknown_to_release")
    # Whoever looks without the folder of records takes what is recorded there for strays that nobody deletes.
    may_go = [each for each in judged if evidence.rules.keeping(each.row.topic, evidence.now_ms) is None]
    recorded = {*(each.name for each in unknown), *evidence.recorded_elsewhere}
    freed, freed_bytes = worth_purging(full, may_go, gone, recorded)
    gone.update(name for _, name in freed)
    return freed, freed_bytes, tuple(each for each in unknown if each.name not in gone)


def _held(
    judged: Sequence[Judged], live: frozenset[tuple[str, int | None]], evidence: _Evidence
) -> list[tuple[Judged, str]]:
    """List what nobody wants here and the policy keeps all the same, each with the rule: no plan stages it."""
    unwanted = (each for each in judged if each.verdict in (*UNWANTED, Verdict.STRAY) and not comes_back(each, live))
    rules = ((each, evidence.rules.keeping(each.row.topic, evidence.now_ms)) for each in unwanted)
    return [(each, rule.described()) for each, rule in rules if rule is not None]


@dataclass(frozen=True, slots=True)
class _RepairEvidence:
    """What a repair would do, and what it leaves to a person."""

    repairable: int | None = None
    """How many actions its plan would have."""
    undecided: tuple[tuple[str, ...], ...] = ()
    """The copies of each replica that is live twice, where nothing tells which is the better one."""
    live_twice: str = ""
    """Why nothing is repaired of what is live twice, and naming one copy does not help; empty: it is not so."""
    copied: bool = False
    """Whether that is because one of the log dirs is another disk's copy, or not the broker's."""
    uncertain: tuple[UncertainReplica, ...] = ()
    opened: str | None = None
    """The options that open the gates, where it takes a topic ID from the metadata's word alone."""


def _repair_evidence(found: Mapping[Verdict, FoundVerdict], evidence: _Evidence) -> _RepairEvidence:
    if not found.keys() & frozenset(REPAIRED):
        return _RepairEvidence()
    view = RepairView.of(evidence.seen, evidence.states, (), evidence.now_ms)
    origin, memory = PlanOrigin(evidence.now_ms, "", ""), read_history(view.log_dirs).memory()
    policy, uncertain = Policy.cautious().with_numbers(evidence.rules), tuple(uncertain_replicas(view))
    plan, undecided = propose_repair(view, RepairChoice(policy=Policy.kip516()), origin)
    shut = shut_for_repair(view.states, policy, memory, evidence.now_ms)
    try:
        propose_repair(view, RepairChoice(policy=policy), origin, memory)
    except GatesShutError as error:
        shut = list(error.refusals)
    else:
        # What waits for other steps, or for the operator's word, is held to the same gates once its turn comes.
        shut = shut if uncertain else []
    opened = " ".join(word for each in shut for word in each.option or ()) or None
    left = [
        each for each in plan.left_alone if each.verdict == Verdict.DUPLICATE and each.name != "." and not undecided
    ]
    live_twice, copied = (left[0].reason, bool(left[0].next)) if left else ("", False)
    decided = tuple(each.paths for each in undecided)
    return _RepairEvidence(len(plan.actions), decided, live_twice, copied, uncertain, opened)


def _start(call: Call, states: Mapping[str, DesiredState], now_ms: int) -> Preflight:
    seen = look_at_broker(call.log_dirs, call.metadata_log_dir)
    return preflight(seen, broker_in_question(call.release, call.mode, seen, states.values()), states, now_ms)


def _closed(log_dirs: Sequence[str], judged: Sequence[Judged], start: Preflight) -> tuple[str, ...]:
    """List what this user may not read, and the broker's own user perhaps may, each place once."""
    rows = [each.observed for each in judged if each.verdict is Verdict.DAMAGED and each.observed is not None]
    found = [*map(forbidden_in, log_dirs), *(closed_at(row["log_dir"], row["name"]) for row in rows)]
    places = [each.place for each in start.findings if each.rule == "closed_to_this_user"]
    found += [os.path.normpath(f"{place.log_dir}/{place.name}") for place in places]
    return tuple(dict.fromkeys(os.path.abspath(path) for path in found if path is not None))


def _obstacles(start: Preflight, runs: bool) -> tuple[Obstacle, ...]:
    return tuple(
        Obstacle(each.rule, each.problem, each.place.log_dir, each.place.name)
        for each in start.findings
        if each.effect in (StartEffect.STARTUP_ABORTS, StartEffect.LOG_DIR_OFFLINE)
        and not (runs and each.rule == "lock_held")
    )


def _about(broker: BrokerKey, call: Call, judged: Sequence[Judged], result: AuditResult) -> list[tuple[str, str, str]]:
    """List kind, subject and detail of each finding of the fleet that is about a broker.

    Where one broker's disks are all that was looked at, no other copy can be known, so that says nothing.
    """
    alone = sum(each.node_id is not None for each in result.brokers) <= 1
    paths = {os.path.abspath(path) for path in call.log_dirs}
    rows = [each.observed for each in judged if each.observed is not None]
    names = {f"broker {broker.node}", broker.cluster, *paths}
    names |= {row["directory_id"] for row in rows if row["directory_id"]}
    names |= {each.row.topic for each in judged if each.row.topic and each.verdict not in BENIGN}
    return [
        (each.kind, each.subject, each.detail)
        for each in result.fleet
        if (each.subject in names or f"broker {broker.node} " in each.detail)
        and not (alone and each.kind == "ONLY_KNOWN_COPY")
    ]
