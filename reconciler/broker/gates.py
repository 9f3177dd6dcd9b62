"""What keeps a control request from being carried out on somebody's word alone: the gates of ``policy``. Pure.

A controller that sends a request to its broker has decided, and ``Broker`` asks no questions. Whoever sends one by hand
may have taken the wrong file or the wrong disks, and a FULL request that is empty stages everything. So what a
rehearsal foretells is held to the gates that a plan is held to, each with the same override, and to one more::

    create      empty replicas would be made in a real broker's log dirs, which that broker does itself   --allow create

Source: DESIGN §4, §6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from layout.topic import NAMESPACE_SEPARATOR
from reconciler.broker.dry_run import Effect, EffectKind
from reconciler.broker.judgement import PartitionKey
from reconciler.plan import INTERNAL_PREFIX, BrokerFacts, Gate, GateInputs, MetadataFacts, Policy, refusals
from reconciler.protocol import ControlRequest, LeaderAndIsrRequest, PartitionState, RequestType
from reconciler.text import count, listed
from reconciler.verdicts import Verdict

CREATE: Final = "create"
"""The gate of this module's own."""

ALLOWABLE: Final = (Gate.BROKER, Gate.EMPTY, Gate.ABSENT, Gate.SOLE_COPY, Gate.INTERNAL, CREATE)
"""Gates that ``--allow`` opens; the others have a number of their own, or ask nothing of a request."""


@dataclass(frozen=True, slots=True)
class HandSentRequest:
    """A request on its way to one broker's disks.

    Attributes:
        request: a good one.
        location: of its file, for messages.
        node_id: of the broker.
        broker: ``broker 1 of cluster C``.
        live: how many live replicas it has.
        effects: that a rehearsal foretells.
        offline: path of each log dir that cannot be used → why.
        foreign: paths of log dirs that a real broker reads.
        now_ms: in ms since 1970.
    """

    request: ControlRequest
    location: str
    node_id: int
    broker: str
    live: int
    effects: Sequence[Effect]
    offline: Mapping[str, str]
    foreign: Collection[str]
    now_ms: int


def shut_gates(sent: HandSentRequest, policy: Policy, allowed: Collection[str] = ()) -> list[str]:
    """Every gate that is shut, each as one sentence with its numbers and its override; none: go on.

    Args:
        sent: what would be done.
        policy: the gates of plans.
        allowed: names of gates that stand open, besides those of the policy.
    """
    states = dict(_states(sent.request))
    staged = [effect for effect in sent.effects if effect.kind is EffectKind.STAGED]
    complete = isinstance(sent.request, LeaderAndIsrRequest) and sent.request.type is RequestType.FULL
    wanted = sum(sent.node_id in state.replicas for state in states.values())
    # Only a request that is FULL says anything by what it lacks.
    opened = {Gate(name) for name in allowed if name != CREATE} | (set() if complete else {Gate.EMPTY})
    facts = GateInputs(
        sent.now_ms,
        (MetadataFacts(sent.location, True, None, len(sent.request.topics), wanted),),
        (BrokerFacts(sent.broker, sent.live, len(staged), True, wanted > 0 or not complete),),
        tuple(sent.offline.items()),
        tuple(_sole_copies(staged, states, sent.node_id)),
        tuple(f"{effect.topic}-{effect.partition}" for effect in staged if _is_internal(effect.topic)),
    )
    shut = [each.reason for each in refusals(facts, replace(policy, allowed=policy.allowed | opened))]
    made = [each for each in sent.effects if each.kind is EffectKind.CREATED and each.log_dir in sent.foreign]
    if made and CREATE not in allowed:
        shut.append(
            f"{count(len(made), 'empty replica')} would be made in log dirs that a real broker reads, which makes them "
            f"itself: {listed([f'{each.topic}-{each.partition}' for each in made])} (override: --allow {CREATE})"
        )
    return shut


def _states(request: ControlRequest) -> Iterator[tuple[PartitionKey, PartitionState]]:
    if isinstance(request, LeaderAndIsrRequest):
        for topic in request.topics:
            for state in topic.partitions:
                yield (topic.topic, state.partition), state


def _sole_copies(
    staged: Sequence[Effect], states: Mapping[PartitionKey, PartitionState], node_id: int
) -> Iterator[str]:
    """What would be staged though no other replica is in sync, as far as the request tells."""
    for effect in staged:
        state = states.get(effect.key)
        if state is None:
            continue
        others = {broker for broker in state.isr if broker in state.replicas} - {node_id}
        if effect.verdict in (Verdict.STALE_ID, Verdict.NOT_ASSIGNED) and not others:
            yield f"{effect.topic}-{effect.partition}"


def _is_internal(topic: str) -> bool:
    return topic.rpartition(NAMESPACE_SEPARATOR)[2].startswith(INTERNAL_PREFIX)
