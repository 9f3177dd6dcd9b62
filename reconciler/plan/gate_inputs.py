"""Gather the numbers and names that the gates depend on, from the evidence and the picked actions. Pure.

``policy`` decides which numbers are too large. Source: DESIGN §6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from layout.topic import NAMESPACE_SEPARATOR
from reconciler.desired import BrokerKey, DesiredState, in_memory
from reconciler.plan.evidence import PlanView
from reconciler.plan.plan import STAGING_ACTIONS, Action, ActionKind
from reconciler.plan.policy import INTERNAL_PREFIX, BrokerFacts, GateInputs, MetadataFacts
from reconciler.verdicts import Judged, Verdict, broker_of

SightingKey = tuple[str, int | None, str | None]
"""Log dir, inode and topic ID of a replica that was seen unwanted; a new directory of the same name is another one."""


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """What the journals of earlier runs say.

    Attributes:
        metadata: cluster → number of topics and of replicas in the metadata when a plan was last applied.
        sightings: replica → number of earlier runs that saw it unwanted.
    """

    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sightings: Mapping[SightingKey, int] = field(default_factory=dict)


def gather_gate_inputs(
    view: PlanView,
    candidates: Sequence[tuple[Action, Judged]],
    picked: Iterable[Action],
    memory: EarlierRuns,
    now_ms: int,
) -> GateInputs:
    """Gather the inputs of the gates.

    Args:
        view: the evidence.
        candidates: all possible actions, each with its judged row.
        picked: the actions of the plan.
        memory: of earlier runs.
        now_ms: in ms since 1970.
    """
    staged = [action for action in picked if action.kind in STAGING_ACTIONS]
    chosen = set(staged)
    of_broker = Counter(view.log_dirs[action.log_dir].broker for action in staged if action.kind is ActionKind.STAGE)
    brokers = dict.fromkeys(log_dir.broker for log_dir in view.trusted)
    known = {cluster: _nodes(state) for cluster, state in view.states.items()}
    pairs = [pair for pair in candidates if pair[0] in chosen]
    return GateInputs(
        now_ms,
        tuple(_metadata(state, cluster, memory) for cluster, state in view.states.items()),
        tuple(_broker(broker, view, of_broker[broker], known) for broker in brokers),
        tuple(
            (log_dir.path, log_dir.row["problem"] or "nothing says whose it is")
            for log_dir in view.log_dirs.values()
            if not log_dir.can_be_trusted
        ),
        tuple(str(action.replica) for action in sole_copies(view, pairs)),
        tuple(str(action.replica) for action in staged if is_internal(action)),
    )


def is_internal(action: Action) -> bool:
    """Whether the action is about one of Kafka's own topics."""
    return action.topic.rpartition(NAMESPACE_SEPARATOR)[2].startswith(INTERNAL_PREFIX)


def sole_copies(view: PlanView, candidates: Iterable[tuple[Action, Judged]]) -> list[Action]:
    """Find candidates that may be the only copy in sync, as far as the metadata knows.

    A replica that is wanted here is the only copy if it alone is in sync. An unwanted replica is the only copy if no
    replica of its partition is in sync where it is wanted. A topic that the metadata does not know has no copy in sync
    anywhere, and its verdict says so already.
    """
    pairs = [pair for pair in candidates if pair[0].kind in STAGING_ACTIONS]
    found = []
    in_sync = {cluster: dict(_in_sync(state, pairs)) for cluster, state in view.states.items()}
    for action, judged in pairs:
        wanted = judged.wanted
        cluster = broker_of(judged.observed or {}).cluster
        partition = (judged.row.id_topic or action.topic, action.partition)
        if wanted is not None:
            alone = wanted["in_sync"] and wanted["isr_size"] == 1
        else:
            elsewhere = in_sync.get(cluster, {}).get(partition)
            lives_on = action.verdict == Verdict.NOT_ASSIGNED or bool(judged.row.id_topic)
            alone = lives_on and elsewhere == 0
        if alone:
            found.append(action)
    return found


def _in_sync(state: DesiredState, pairs: Iterable[tuple[Action, Judged]]) -> Iterator[tuple[tuple[str, int], int]]:
    """Count the replicas in sync of each partition, for the topics of the candidates."""
    topics = {judged.row.id_topic or action.topic for action, judged in pairs}
    if not topics:
        return
    rows = in_memory(state.replicas).select(["topic", "partition", "in_sync"])
    rows = rows.filter(pc.is_in(rows.column("topic"), value_set=pc.cast(sorted(topics), "string")))
    counts: Counter[tuple[str, int]] = Counter()
    for row in rows.to_pylist():
        counts[row["topic"], row["partition"]] += bool(row["in_sync"])
    yield from counts.items()


def _metadata(state: DesiredState, cluster: str, memory: EarlierRuns) -> MetadataFacts:
    identity = state.identity
    topics_before, replicas_before = memory.metadata.get(cluster, (None, None))
    return MetadataFacts(
        identity.location,
        identity.cluster_id is not None or not cluster,
        identity.timestamp_ms,
        state.topics.num_rows,
        state.replicas.num_rows,
        topics_before,
        replicas_before,
    )


def _broker(broker: BrokerKey, view: PlanView, staged: int, known: Mapping[str, frozenset[int]]) -> BrokerFacts:
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
    )


def _nodes(state: DesiredState) -> frozenset[int]:
    """Return every node that the metadata knows: registered, or with a replica assigned to it."""
    registered = state.brokers.column("node_id").to_pylist()
    assigned = pc.unique(state.replicas.column("node_id")).to_pylist()
    return frozenset([*registered, *assigned])
