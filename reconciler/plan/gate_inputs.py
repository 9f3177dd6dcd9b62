"""Gather the numbers and names that the gates depend on, from the evidence and the picked actions. Pure.

``gates`` decides which numbers are too large. Source: DESIGN §6.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from logstore.rows import Kind
from reconciler.desired import BrokerKey, DesiredState, MetadataIdentity, in_memory, is_only_in_sync
from reconciler.plan.evidence import PlanView, ScannedLogDir, copied_log_dirs
from reconciler.plan.gates import (
    BrokerFacts,
    CandidateFacts,
    GateInputs,
    MetadataFacts,
    Refusal,
    refusals,
)
from reconciler.plan.plan import STAGING_ACTIONS, Action, ActionKind
from reconciler.plan.policy import PlanChoice, Policy, is_internal_topic
from reconciler.text import age, count, moment
from reconciler.verdicts import CLOCK_SKEW_MS, CLOCK_TOLERANCE_MS, Judged, Verdict, broker_of

SightingKey = tuple[str, int | None, str | None]
"""Log dir, inode and topic ID of a replica that was seen unwanted; a new directory of the same name is another one."""

Candidate = tuple[Action, Judged]
"""A possible action, with its judged row."""

_FAMILIES: Final = {"zookeeper-snapshot": "zookeeper"}
"""Sources whose epochs and offsets can be compared with those of a source of another name."""


class Sighting(NamedTuple):
    """A run that saw a replica unwanted: as of when its metadata spoke, and when it ran, in ms since 1970."""

    as_of_ms: int
    seen_ms: int


def count_sightings(sightings: Iterable[Sighting], apart_ms: int) -> int:
    """Count the sightings that are evidence of their own: of later metadata than the one before, and apart in time."""
    number, last = 0, None
    for each in sorted(sightings, key=lambda one: one.seen_ms):
        if last is None or (each.as_of_ms > last.as_of_ms and each.seen_ms - last.seen_ms >= apart_ms):
            number, last = number + 1, each
    return number


class UsedMetadata(NamedTuple):
    """The metadata that an applied plan was made from; None: it did not say."""

    source: str
    epoch: int | None
    offset: int | None
    as_of_ms: int | None
    applied_ms: int


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """What the journals of earlier runs say.

    Attributes:
        metadata: cluster → number of topics and of replicas in the metadata when a plan was last applied.
        sightings: replica → the earlier runs that saw it unwanted.
        used: cluster → the metadata of every applied plan.
        written: log dir → when a run last wrote its journal there, in ms since 1970.
    """

    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sightings: Mapping[SightingKey, Sequence[Sighting]] = field(default_factory=dict)
    used: Mapping[str, Sequence[UsedMetadata]] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)


def seen_often_enough(action: Action, view: PlanView, choice: PlanChoice, memory: EarlierRuns, now_ms: int) -> Action:
    """Return the action, or a note in its place if too few runs have seen the replica unwanted."""
    if action.kind not in STAGING_ACTIONS or choice.sightings == 1:
        return action
    earlier = list(memory.sightings.get((action.log_dir, action.inode, action.topic_id), ()))
    as_of_ms = view.states[view.log_dirs[action.log_dir].broker.cluster].identity.as_of_ms
    if as_of_ms is not None:
        earlier.append(Sighting(as_of_ms, now_ms))
    number = count_sightings(earlier, choice.apart_ms)
    if number >= choice.sightings:
        return action
    seen = (
        f"seen {count(number, 'time')} of {choice.sightings} that are asked for; one more counts "
        f"{age(choice.apart_ms)} after the last, by later metadata"
    )
    return replace(action, kind=ActionKind.NOTE_SIGHTING, why=f"{action.why}; {seen}", due_ms=None, undo=None)


def gather_gate_inputs(
    view: PlanView,
    candidates: Sequence[Candidate],
    picked: Iterable[Action],
    choice: PlanChoice,
    *,
    memory: EarlierRuns,
    now_ms: int,
) -> GateInputs:
    """Gather the inputs of the gates.

    ``candidates``: all possible actions, each with its judged row; ``picked``: the actions of the plan; ``memory``: of
    earlier runs.
    """
    picked = list(picked)
    chosen = {action for action in picked if action.kind in STAGING_ACTIONS}
    changed = {view.log_dirs[action.log_dir].broker for action in picked}
    staged = _of_brokers(view, chosen)
    unwanted = _of_brokers(view, [action for action, _ in candidates])
    brokers = dict.fromkeys(log_dir.broker for log_dir in view.trusted)
    known = {cluster: _nodes(state) for cluster, state in view.states.items()}
    return GateInputs(
        now_ms,
        tuple(_metadata(state, cluster, memory) for cluster, state in view.states.items()),
        tuple(_broker(broker, view, staged[broker], unwanted[broker], known) for broker in brokers),
        tuple(
            (log_dir.path, log_dir.row["problem"] or "nothing says whose it is")
            for log_dir in view.log_dirs.values()
            if not log_dir.can_be_trusted
        ),
        tuple(_strange(view, {action.log_dir for action in chosen})),
        tuple(_written(view, memory)),
        _candidates(view, [pair for pair in candidates if pair[0] in chosen], choice),
        # Each log dir of a broker is opened when a plan is applied, also one in which nothing is changed.
        tuple((each.path, why) for each, why in copied_log_dirs(view.trusted) if each.broker in changed),
    )


def shut_for_repair(
    states: Mapping[str, DesiredState], policy: Policy, memory: EarlierRuns, now_ms: int
) -> list[Refusal]:
    """List the shut gates of a plan of repairs that takes topic IDs from some metadata's word, by cluster."""
    facts = GateInputs(now_ms, tuple(_metadata(state, cluster, memory) for cluster, state in states.items()))
    return refusals(facts, policy) if states else []


def _of_brokers(view: PlanView, actions: Iterable[Action]) -> Counter[BrokerKey]:
    return Counter(view.log_dirs[action.log_dir].broker for action in actions if action.kind is ActionKind.STAGE)


def _candidates(view: PlanView, pairs: Sequence[Candidate], choice: PlanChoice) -> CandidateFacts:
    def named(is_so: Callable[[Action, Judged], bool]) -> tuple[str, ...]:
        return tuple(str(action.replica) for action, judged in pairs if is_so(action, judged))

    copies = copies_in_doubt(view, pairs)
    return CandidateFacts(
        tuple(_newer(view, pairs)),
        named(lambda action, judged: not _ids(action, judged).isdisjoint(_identity(view, judged).uncommitted)),
        tuple(str(action.replica) for action in copies.sole),
        tuple(str(action.replica) for action in copies.not_live),
        named(lambda action, _: action.topic_id is None and action.verdict == Verdict.UNKNOWN_TOPIC),
        named(lambda action, _: is_internal_topic(action.topic, choice.internal)),
    )


def _identity(view: PlanView, judged: Judged) -> MetadataIdentity:
    """Return the identity of the metadata that judged a candidate; a candidate was condemned by some."""
    return view.states[broker_of(judged.observed or {}).cluster].identity


def _ids(action: Action, judged: Judged) -> set[str]:
    """Return the topic IDs on which the verdict on a candidate depends: its own, and that of its name."""
    return {text for text in (action.topic_id, judged.row.name_topic_id) if text}


def _newer(view: PlanView, pairs: Iterable[Candidate]) -> Iterator[str]:
    """Find candidates that changed after the metadata's as-of time, or so shortly before that clocks do not tell.

    A candidate whose times are not known is one of them.
    """
    for action, judged in pairs:
        as_of_ms = _identity(view, judged).as_of_ms
        if as_of_ms is None:
            continue  # the gate ``time`` reports it
        changed_ms = max(action.modified_ms or 0, action.created_ms or 0)
        if not changed_ms:
            yield f"{action.replica} (nothing says when it was made)"
        elif changed_ms > as_of_ms - CLOCK_SKEW_MS:
            what = "made" if (action.created_ms or 0) > as_of_ms - CLOCK_SKEW_MS else "changed"
            when = f"{age(changed_ms - as_of_ms)} later"
            if changed_ms <= as_of_ms:
                when = f"less than {age(CLOCK_SKEW_MS)} before, by which clocks may differ"
            yield f"{action.replica} ({what} {moment(changed_ms)}, {when})"


class DoubtfulCopies(NamedTuple):
    """Candidates that are perhaps the last copy of a replica."""

    sole: list[Action]
    """No other copy is in sync."""
    not_live: list[Action]
    """Copies elsewhere are in sync, but on brokers that are fenced or not registered, or nobody leads the partition."""


def copies_in_doubt(view: PlanView, candidates: Iterable[Candidate]) -> DoubtfulCopies:
    """Find candidates that may be the only copy in sync, or the only live one, as far as the metadata knows.

    A replica that is wanted here is the only copy if it alone is in sync, and has the topic ID of what is in sync. An
    unwanted replica is the only copy if no replica of its partition is in sync where it is wanted. A topic that the
    metadata does not know has no copy in sync anywhere, and its verdict says so already.
    """
    pairs = [pair for pair in candidates if pair[0].kind in STAGING_ACTIONS]
    found = DoubtfulCopies([], [])
    elsewhere = {cluster: _copies(state, pairs) for cluster, state in view.states.items()}
    for action, judged in pairs:
        wanted = judged.wanted
        if wanted is not None:
            is_same = None in (action.topic_id, wanted["topic_id"]) or action.topic_id == wanted["topic_id"]
            if is_same and is_only_in_sync(wanted):
                found.sole.append(action)
            continue
        if action.verdict != Verdict.NOT_ASSIGNED and not judged.row.id_topic:
            continue
        of_cluster = elsewhere.get(broker_of(judged.observed or {}).cluster, {})
        copies = of_cluster.get((judged.row.id_topic or action.topic, action.partition))
        if copies is not None and not copies.in_sync:
            found.sole.append(action)
        elif copies is not None and not (copies.live and copies.is_led):
            found.not_live.append(action)
    return found


@dataclass(slots=True)
class _Copies:
    """The replicas of one partition where they are wanted."""

    in_sync: int = 0
    live: int = 0
    is_led: bool = False


def _copies(state: DesiredState, pairs: Iterable[Candidate]) -> dict[tuple[str, int], _Copies]:
    """Count the replicas in sync of each partition, for the topics of the candidates."""
    found: dict[tuple[str, int], _Copies] = defaultdict(_Copies)
    topics = {judged.row.id_topic or action.topic for action, judged in pairs}
    if not topics:
        return found
    fenced = {row["node_id"]: bool(row["fenced"]) for row in state.brokers.to_pylist()}
    rows = in_memory(state.replicas).select(["topic", "partition", "node_id", "in_sync", "leader"])
    rows = rows.filter(pc.is_in(rows.column("topic"), value_set=pc.cast(sorted(topics), "string")))
    for row in rows.to_pylist():
        copies = found[row["topic"], row["partition"]]
        copies.in_sync += bool(row["in_sync"])
        # A source that names no broker at all does not say which of them live.
        copies.live += bool(row["in_sync"]) and not (fenced and fenced.get(row["node_id"], True))
        copies.is_led |= bool(row["leader"])
    return found


def led_elsewhere(
    states: Mapping[str, DesiredState], replicas: Collection[tuple[BrokerKey, str, int]]
) -> frozenset[tuple[BrokerKey, str, int]]:
    """Find the replicas that their broker can fetch anew: another one leads the partition, is in sync, and lives.

    ``states``: by cluster; ``replicas``: topics by name.
    """
    of_cluster: dict[str, list[tuple[BrokerKey, str, int]]] = defaultdict(list)
    for key in replicas:
        if key[1] is not None:
            of_cluster[key[0].cluster].append(key)
    found = set[tuple[BrokerKey, str, int]]()
    for cluster, keys in of_cluster.items():
        if cluster in states:
            leaders = _leaders(states[cluster], {topic for _, topic, _ in keys})
            found |= {key for key in keys if leaders.get(key[1:], key[0].node) != key[0].node}
    return frozenset(found)


def _leaders(state: DesiredState, topics: Collection[str]) -> dict[tuple[str, int], int]:
    """Map topic and partition to the live broker that leads it in sync; a source without brokers says of all so."""
    fenced = {row["node_id"]: bool(row["fenced"]) for row in state.brokers.to_pylist()}
    rows = in_memory(state.replicas).select(["topic", "partition", "node_id", "in_sync", "leader"])
    rows = rows.filter(pc.is_in(rows.column("topic"), value_set=pc.cast(sorted(topics), "string")))
    return {
        (row["topic"], row["partition"]): row["node_id"]
        for row in rows.to_pylist()
        if row["leader"] and row["in_sync"] and not (fenced and fenced.get(row["node_id"], True))
    }


def _strange(view: PlanView, chosen: Collection[str]) -> Iterator[tuple[str, str]]:
    """Find log dirs that the broker never registered, and those that hold too little of what belongs into them.

    ``chosen``: paths of the log dirs in which a plan stages.
    """
    placed = {cluster: _placed(state, frozenset(b.node for b in view.live)) for cluster, state in view.states.items()}
    held = defaultdict(set)
    for each in view.judged:
        if each.observed is not None and each.observed["kind"] == Kind.LIVE:
            held[each.observed["log_dir"]].add((each.observed["topic"], each.observed["partition"]))
    for log_dir in view.trusted:
        state = view.states.get(log_dir.broker.cluster)
        if state is None or log_dir.path not in chosen:
            continue
        problem = _unregistered(log_dir, state) or _little_of_it(
            held[log_dir.path], placed[log_dir.broker.cluster][log_dir.broker.node, log_dir.row["directory_id"]]
        )
        if problem:
            yield log_dir.path, problem


def _unregistered(log_dir: ScannedLogDir, state: DesiredState) -> str | None:
    registered = {row["node_id"]: row["directory_ids"] for row in state.brokers.to_pylist()}.get(log_dir.broker.node)
    directory_id = log_dir.row["directory_id"]
    if not registered or directory_id in registered:
        return None
    return f"its directory.id is {directory_id or 'missing'}, and broker {log_dir.broker.node} never registered that"


def _placed(state: DesiredState, nodes: frozenset[int]) -> dict[tuple[int, str | None], set[tuple[str, int]]]:
    """Group what the metadata wants on some brokers by broker and directory ID, where it names one; by topic name."""
    found: dict[tuple[int, str | None], set[tuple[str, int]]] = defaultdict(set)
    rows = in_memory(state.replicas).select(["topic", "partition", "node_id", "directory_id"])
    here = pc.and_(
        pc.is_in(rows.column("node_id"), pa.array(nodes, pa.int32())), rows.column("directory_id").is_valid()
    )
    for row in rows.filter(here).to_pylist():
        found[row["node_id"], row["directory_id"]].add((row["topic"], row["partition"]))
    return found


_TELLING = 12
"""Of fewer replicas a few stale ones make the greater part, and their share says nothing of whose disk it is."""


def _little_of_it(held: set[tuple[str, int]], placed: set[tuple[str, int]]) -> str | None:
    """Say so where a log dir holds replicas, and few of those that the metadata places in it, by name.

    Brokers have partitions in common, such as those of ``__consumer_offsets``: some are on the disk of another broker
    too. Few is none, or less than half both of what lies there and of what should, unless it is too little to tell.
    """
    common = len(placed & held)
    is_telling = not common or len(held) >= _TELLING
    if 2 * common >= min(len(held), len(placed)) or not is_telling:
        return None
    return (
        f"it holds {len(held):,} replicas, and {common or 'none'} of the {len(placed):,} that the metadata places in "
        "it: is it the disk of another broker?"
    )


def _written(view: PlanView, memory: EarlierRuns) -> Iterator[tuple[str, int]]:
    for log_dir in view.trusted:
        if log_dir.newest_ms is not None:
            yield f"the newest file in {log_dir.path}", log_dir.newest_ms
    for path, written_ms in memory.written.items():
        yield f"the newest journal in {path}", written_ms


def went_back(identity: MetadataIdentity, used: Iterable[UsedMetadata]) -> str | None:
    """Say in a clause that metadata is older than what an applied plan was made from; None: it is not.

    Epochs and offsets of one kind of source can be compared, and times of all kinds. A ZooKeeper snapshot only says
    when a node last changed, so where both have a zxid that alone is compared.
    """
    for each in sorted(used, key=lambda one: -one.applied_ms):
        family = _FAMILIES.get(identity.source, identity.source)
        is_same = family == _FAMILIES.get(each.source, each.source)
        numbers = [("epoch", identity.epoch, each.epoch), ("offset", identity.offset, each.offset)] if is_same else []
        for name, now, before in numbers:
            if now is not None and before is not None and now < before:
                return (
                    f"its {name} is {now:,}, and a plan that was applied on {moment(each.applied_ms)} knew {before:,}"
                )
        has_zxids = is_same and family == "zookeeper" and None not in (identity.offset, each.offset)
        if identity.as_of_ms is None or each.as_of_ms is None or has_zxids:
            continue
        if identity.as_of_ms < each.as_of_ms - CLOCK_TOLERANCE_MS:
            return (
                f"it speaks as of {moment(identity.as_of_ms)}, and a plan that was applied on "
                f"{moment(each.applied_ms)} as of {moment(each.as_of_ms)}"
            )
    return None


def _metadata(state: DesiredState, cluster: str, memory: EarlierRuns) -> MetadataFacts:
    identity = state.identity
    topics_before, replicas_before = memory.metadata.get(cluster, (None, None))
    return MetadataFacts(
        identity.location,
        identity.cluster_id is not None or not cluster,
        identity.as_of_ms,
        state.topics.num_rows,
        state.replicas.num_rows,
        topics_before,
        replicas_before,
        identity.ends_early,
        went_back(identity, memory.used.get(cluster, ())),
        identity.as_of_from,
    )


def _broker(
    broker: BrokerKey, view: PlanView, staged: int, unwanted: int, known: Mapping[str, frozenset[int]]
) -> BrokerFacts:
    state = view.states.get(broker.cluster)
    scope = None if state is None else state.identity.scope
    # Metadata without a topic is about no broker, which the gate ``empty`` reports.
    speaks = state is None or not state.topics.num_rows or broker.node in known[broker.cluster]
    return BrokerFacts(
        f"broker {broker.node} of cluster {broker.cluster}",
        view.live[broker],
        staged,
        state is not None,
        speaks and (scope is None or broker.node in scope),
        unwanted,
        _counted_in(broker, view, state),
    )


def _counted_in(broker: BrokerKey, view: PlanView, state: DesiredState | None) -> str:
    """Say in which part of a broker's log dirs its replicas were counted; empty: in all that are known."""
    rows = [] if state is None else state.brokers.to_pylist()
    registered = max((len(row["directory_ids"]) for row in rows if row["node_id"] == broker.node), default=0)
    given = sum(each.broker == broker for each in view.log_dirs.values())
    return f"{given:,} of its {count(registered, 'log dir')}" if given < registered else ""


def _nodes(state: DesiredState) -> frozenset[int]:
    """Return every node that the metadata knows: registered, or with a replica assigned to it."""
    registered = state.brokers.column("node_id").to_pylist()
    assigned = pc.unique(state.replicas.column("node_id")).to_pylist()
    return frozenset([*registered, *assigned])
