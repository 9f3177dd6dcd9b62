"""Looks at everything that is known of each broker whose log dirs are given, so that its next steps can be decided.

Nothing is changed and no lock is taken: a scan, the verdicts, what only many rows tell, what a broker would do at its
start, what is staged, who holds the locks, and how much room the disks have.
"""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layout.directory_name import MAX_DIRECTORY_NAME
from logstore import LogStoreError
from logstore.log_dir import LOCK_FILE, FallbackRecords, ReadOnlyLogDir
from logstore.scan import Observation, scan_all
from logstore.staging import Placement, Staged, find_staged, stages_in_place
from reconciler.audit import AuditResult
from reconciler.cli.frame.changes import why_in_use
from reconciler.cli.frame.engines import run_join
from reconciler.cli.frame.inputs import Inputs, is_blank, is_forbidden, is_full, takes_no_file, worth_having
from reconciler.cli.frame.options import read_policy
from reconciler.cli.frame.output import show_busy, with_progress
from reconciler.cli.frame.question import broker_in_question
from reconciler.desired import BrokerKey, Completeness, DesiredState, Mode, by_cluster, is_own_copy
from reconciler.next_steps import (
    NAMED_AT_ONCE,
    REPAIRED,
    Call,
    FoundVerdict,
    MetadataTrust,
    Obstacle,
    Situation,
    Step,
    UncertainReplica,
    next_steps,
    worth_freeing,
)
from reconciler.plan import (
    PlanOrigin,
    RepairChoice,
    RepairView,
    led_elsewhere,
    propose_repair,
    read_history,
    uncertain_replicas,
)
from reconciler.policy import PolicyRules
from reconciler.preflight import Preflight, StartEffect, look_at_broker, preflight
from reconciler.text import age, moment
from reconciler.verdicts import BENIGN, CLOCK_TOLERANCE_MS, URGENCY, Judged, Verdict, broker_of, compare, with_doubt

_DAY_MS = 86_400_000


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
        """Whether nobody has to act. A start that only goes on with a move between log dirs needs nobody."""
        benign = {verdict.value for verdict in BENIGN}
        stops = (each.effect not in (StartEffect.NOTE, StartEffect.REPLACED) for each in self.start.findings)
        calm = not (self.fleet or self.situation.full) and all(name in benign for name in self.totals)
        return calm and (bool(self.situation.in_use) or not any(stops))


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
    for broker, several in _by_broker(seen).items():
        elsewhere = {name for each in several for name in _with_record_elsewhere(each, fallback)}
        judged = list(compare(of_cluster, [row for each in several for row in each.rows.to_pylist()], now_ms))
        own = replace(call, log_dirs=tuple(given.get(each.log_dir, each.log_dir) for each in several))
        evidence = _Evidence(of_cluster, result, fallback, now_ms, several, elsewhere, rules)
        examined.append(_examined(broker, own, judged, evidence))
    return examined


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


def _examined(broker: BrokerKey, call: Call, judged: Sequence[Judged], evidence: _Evidence) -> ExaminedBroker:
    states, now_ms = evidence.states, evidence.now_ms
    start = _start(call, states, now_ms)
    in_use = tuple(path for path in call.log_dirs if why_in_use(path) is not None)
    in_sync = _in_sync(states, judged)
    live = _live(judged)
    found = {verdict: _found(several, in_sync, live) for verdict, several in _by_verdict(judged).items()}
    fleet = _about(broker, call, judged, evidence.result)
    trust, why = _trust(states.get(broker.cluster), broker, now_ms, judged, call.log_dirs)
    looked = _repair_evidence(found, evidence)
    staged, due, due_ms, due_inside = _staged(call.log_dirs, evidence, now_ms)
    full = tuple(path for path in call.log_dirs if is_full(path))
    obstacles = _obstacles(start, bool(in_use))
    cured = (each.observed for each in judged if each.verdict is Verdict.STAGED_DUE or _comes_back(each, live))
    gone = {row["name"] for row in cured if row is not None}
    unknown = tuple(each for each in obstacles if each.rule == "unknown_to_release")
    # Whoever looks without the folder of records takes what is recorded there for strays that nobody deletes.
    may_go = [each for each in judged if evidence.rules.keeping(each.row.topic, now_ms) is None]
    freed, freed_bytes = _freed(full, may_go, gone, {*(each.name for each in unknown), *evidence.recorded_elsewhere})
    gone.update(freed)
    # The metadata log's own disk is no disk to begin anew on: a controller that is alone would forget the cluster.
    kept = {call.metadata_log_dir or call.log_dirs[0]} if start.asked.is_kraft else set()
    replaceable = [path for path in call.log_dirs if path not in kept]
    situation = Situation(
        call,
        found,
        {kind: subject for kind, subject, _ in fleet},
        trust,
        why,
        obstacles,
        in_use,
        full,
        staged,
        due,
        None if due_ms is None else moment(due_ms),
        due_inside,
        looked.undecided,
        start.asked.mode is Mode.ZOOKEEPER and not start.asked.migrating,
        tuple(filter(is_forbidden, call.log_dirs)),
        looked.repairable,
        (*looked.uncertain, *(_unclaimed_strays(judged) if trust is MetadataTrust.GOOD else ())),
        tuple(path for path in call.log_dirs if takes_no_file(path) and not os.path.lexists(f"{path}/{LOCK_FILE}")),
        freed,
        tuple(filter(stages_in_place, call.log_dirs)),
        start.asked.knows_strays,
        tuple(each for each in unknown if each.name not in gone),
        freed_bytes,
        tuple(map(os.path.abspath, filter(is_blank, replaceable))),
        broker.cluster if start.asked.is_kraft else "",
        _without_directory_id(judged),
        tuple(filter(os.path.ismount, map(os.path.abspath, call.log_dirs))),
    )
    return ExaminedBroker(
        broker.cluster or None,
        broker.node if broker.node >= 0 else None,
        {verdict.value: each.number for verdict, each in found.items()},
        {verdict.value: _first(several[0]) for verdict, several in _by_verdict(judged).items()},
        fleet,
        start,
        situation,
        next_steps(situation),
    )


def _without_directory_id(judged: Sequence[Judged]) -> tuple[str, ...]:
    rows = (each.observed for each in judged if each.row.kind == "log_dir" and each.verdict is Verdict.OK)
    return tuple(row["log_dir"] for row in rows if row is not None and row["directory_id"] is None)


@dataclass(frozen=True, slots=True)
class _RepairEvidence:
    """What a repair would do, and what it leaves to a person."""

    repairable: int | None = None
    """How many actions its plan would have."""
    undecided: tuple[tuple[str, ...], ...] = ()
    """The copies of each replica that is live twice, where nothing tells which is the better one."""
    uncertain: tuple[UncertainReplica, ...] = ()


def _repair_evidence(found: Mapping[Verdict, FoundVerdict], evidence: _Evidence) -> _RepairEvidence:
    if not found.keys() & frozenset(REPAIRED):
        return _RepairEvidence()
    view = RepairView.of(evidence.seen, evidence.states, (), evidence.now_ms)
    plan, undecided = propose_repair(view, RepairChoice(), PlanOrigin(evidence.now_ms, "", ""))
    return _RepairEvidence(len(plan.actions), tuple(each.paths for each in undecided), tuple(uncertain_replicas(view)))


def _by_verdict(judged: Sequence[Judged]) -> dict[Verdict, list[Judged]]:
    found: dict[Verdict, list[Judged]] = defaultdict(list)
    for each in judged:
        found[each.verdict].append(each)
    return {verdict: found[verdict] for verdict in URGENCY if verdict in found and verdict is not Verdict.OK}


def _first(judged: Judged) -> str:
    row: Mapping[str, Any] = judged.observed or judged.wanted or {}
    place = f"{row['topic']}-{row['partition']}"
    if judged.observed is not None:
        place = posixpath.normpath(f"{row['log_dir']}/{row['name']}")
    return f"{place}: {with_doubt(judged.evidence, judged.doubt)}"


def _in_sync(states: Mapping[str, DesiredState], judged: Sequence[Judged]) -> frozenset[tuple[str, int | None]]:
    """Topic and partition of each live replica that is as it should be, and in sync or led by another live broker."""
    strays = [each.observed for each in judged if _is_bare_stray(each) and each.observed is not None]
    bare = {
        (str(row["topic"]), int(row["partition"])) for row in strays if None not in (row["topic"], row["partition"])
    }
    fine = {
        (each.row.topic, each.observed["partition"]): each
        for each in judged
        if bare and each.verdict is Verdict.OK and each.wanted is not None and each.observed is not None
    }
    behind = {key: broker_of(each.observed or {}) for key, each in fine.items() if not (each.wanted or {})["in_sync"]}
    led = led_elsewhere(states, [(behind[key], *key) for key in bare & behind.keys()])
    return frozenset(key for key in fine if key not in behind or (behind[key], *key) in led)


def _is_bare_stray(judged: Judged) -> bool:
    return judged.verdict is Verdict.STRAY and not judged.row.disk_topic_id


def _is_cut(judged: Judged) -> bool:
    """Whether its name has the greatest length, so that it may be cut, and the topic be another one."""
    return judged.observed is not None and len(judged.observed["name"]) >= MAX_DIRECTORY_NAME


def _is_left(judged: Judged, live: frozenset[tuple[str, int | None]]) -> bool:
    """Whether a stray with a topic ID gets no action all the same, which no plan gives it later either."""
    if judged.verdict is not Verdict.STRAY or _is_bare_stray(judged):
        return False
    return not _comes_back(judged, live) if judged.row.wanted else _is_cut(judged)


def _unclaimed_strays(judged: Sequence[Judged]) -> Iterator[UncertainReplica]:
    """Find strays that no plan ever takes."""
    wanted, live = {(each.wanted["topic"], each.wanted["partition"]) for each in judged if each.wanted}, _live(judged)
    for each in judged:
        row = each.observed or {}
        if _is_bare_stray(each) and not _is_cut(each) and (row["topic"], row["partition"]) not in wanted:
            reason = "it has no topic ID, and the metadata wants no replica of its name here"
        elif _is_cut(each) and (_is_bare_stray(each) or _is_left(each, live)):
            reason = "its name was cut, so nothing says surely what it was"
        elif _is_left(each, live):
            reason = "a live replica of its topic ID is in its place"
        else:
            continue
        yield UncertainReplica(row["log_dir"], row["name"], row["topic"], reason, is_live=False, is_unclaimed=True)


def _live(judged: Sequence[Judged]) -> frozenset[tuple[str, int | None]]:
    """Topic and partition of each live replica."""
    seen = (each for each in judged if each.row.kind == "live")
    return frozenset((each.row.topic, each.observed["partition"]) for each in seen if each.observed is not None)


def _comes_back(judged: Judged, live: frozenset[tuple[str, int | None]]) -> bool:
    """Whether the metadata wants a replica here, and none lives in its place."""
    wanted = judged.wanted
    return judged.row.wanted and (wanted is None or (wanted["topic"], wanted["partition"]) not in live)


def _found(
    several: Sequence[Judged], in_sync: frozenset[tuple[str, int | None]], live: frozenset[tuple[str, int | None]]
) -> FoundVerdict:
    directories = [each for each in several if each.observed is not None and _is_directory(each.observed)]
    first, *others = (_alone(each) for each in (directories or several)[:NAMED_AT_ONCE])
    strays = [each for each in several if _is_bare_stray(each)]
    whole = [each for each in strays if not _is_cut(each)]
    replaced = sum((each.row.topic, (each.observed or {}).get("partition")) in in_sync for each in whole)
    return replace(
        first,
        number=len(several),
        wanted=sum(_comes_back(each, live) for each in several),
        directories=len(directories),
        replaced=replaced,
        sole=sum(
            each.wanted is not None and each.wanted["in_sync"] and each.wanted["isr_size"] == 1 for each in several
        ),
        left=len(strays) - replaced + sum(_is_left(each, live) for each in several),
        others=tuple(others),
    )


def _alone(judged: Judged) -> FoundVerdict:
    row = judged.observed or {}
    stranger = judged.row.id_topic if judged.row.id_topic != judged.row.topic else ""
    return FoundVerdict(
        1, row.get("log_dir"), row.get("name"), row.get("topic"), row.get("partition"), stranger or None
    )


def _is_directory(row: Mapping[str, Any]) -> bool:
    return os.path.isdir(os.path.join(row["log_dir"], row["name"]))


def _start(call: Call, states: Mapping[str, DesiredState], now_ms: int) -> Preflight:
    seen = look_at_broker(call.log_dirs, call.metadata_log_dir)
    return preflight(seen, broker_in_question(call.release, call.mode, seen, states.values()), states, now_ms)


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


def _trust(
    state: DesiredState | None, broker: BrokerKey, now_ms: int, judged: Sequence[Judged], log_dirs: Sequence[str]
) -> tuple[MetadataTrust, str]:
    """Judge the metadata, and say in a clause what is wrong with it."""
    if state is None or not state.topics.num_rows:
        return MetadataTrust.NONE, "no metadata of this cluster was given or found, or it knows no topic"
    identity = state.identity
    since = None if identity.as_of_ms is None else now_ms - identity.as_of_ms
    if is_own_copy(state, [broker]):
        when = "it stopped" if identity.as_of_ms is None else moment(identity.as_of_ms)
        why = f"{identity.location} is this broker's own copy, which ends at {when}: nothing since is known"
        return MetadataTrust.OWN_COPY, why
    if since is None:
        return MetadataTrust.OLD, f"{identity.location} does not say as of when it speaks"
    if since < -CLOCK_TOLERANCE_MS:
        future = f"{identity.location} is of {moment(identity.as_of_ms)}, which is {age(-since)} in the future"
        return MetadataTrust.OLD, f"{future}, so its clock or this machine's is wrong"
    if since > _DAY_MS:
        return MetadataTrust.OLD, f"{identity.location} is {age(since)} old"
    if clause := read_history(log_dirs).went_back(identity, broker.cluster):
        return MetadataTrust.OLD, f"{identity.location} went back in time: {clause}"
    if identity.completeness is not Completeness.FULL or identity.ends_early:
        why = identity.ends_early[0] if identity.ends_early else "it does not mention every topic"
        return MetadataTrust.INCOMPLETE, f"{identity.location}: {why}"
    if any(each.doubt for each in judged if each.observed is not None):
        return MetadataTrust.OLD, f"{identity.location} is older than what it condemns here"
    return MetadataTrust.GOOD, ""


def _recorded(log_dir: str, fallback: FallbackRecords) -> list[Staged]:
    """List what is staged in a log dir and has its record, there or in the folder of fallback records."""
    try:
        with ReadOnlyLogDir.open(log_dir) as opened:
            return [staged for staged in find_staged(opened, fallback) if staged.record is not None]
    except (LogStoreError, OSError):
        return []  # the scan has a row with the problem of this log dir


def _with_record_elsewhere(seen: Observation, fallback: FallbackRecords) -> set[str]:
    """Find the names of what is staged in a log dir itself, and has its record on another disk."""
    try:
        found = fallback.read(seen.log_dir)
    except LogStoreError:
        found = None
    entries = {} if found is None else found.entries
    return {row["name"] for row in seen.rows.to_pylist() if row["kind"] == "staged" and row["name"] in entries}


def _staged(log_dirs: Sequence[str], evidence: _Evidence, now_ms: int) -> tuple[int, int, int | None, int]:
    """Count what waits or is held, and what is due; find the earliest due time; count what is due inside."""
    counts, earliest, inside = Counter[bool](), None, 0
    for path in log_dirs:
        for staged in _recorded(path, evidence.fallback):
            goes = staged.is_due(now_ms) and evidence.rules.keeping(staged.topic, now_ms) is None
            counts[goes] += 1
            inside += goes and staged.placement is not Placement.SIBLING
            if not staged.is_due(now_ms) and staged.due_ms is not None:
                earliest = staged.due_ms if earliest is None else min(earliest, staged.due_ms)
    return counts[False], counts[True], earliest, inside


def _freed(
    full: Sequence[str], judged: Sequence[Judged], gone: set[str], in_the_way: set[str | None]
) -> tuple[tuple[str, ...], int]:
    """Locations of staged replicas on full disks that give room worth having, and their sum; not what is ``gone``."""
    names, total = list[str](), 0
    rows = [each.observed or {} for each in judged if each.verdict is Verdict.STAGED]
    for path in map(os.path.abspath, full):
        here = {row["name"]: row["disk_bytes"] or 0 for row in rows if row["log_dir"] == path}
        waiting = {name: here[name] for name in here.keys() - gone}
        worth = worth_freeing(waiting, worth_having(path), in_the_way)
        names += worth
        total += sum(map(here.__getitem__, worth))
    return tuple(names), total
