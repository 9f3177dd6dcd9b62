"""The gates of a control request that a person sends: the gates of plans, and some of its own. Pure.

A controller that sends a request has decided, so ``Broker`` has no gates. A person may have taken the wrong file or the
wrong disks, and an empty FULL request stages everything. So the changes of a dry run are held to the gates of plans,
each with the same override, and to these::

    cluster     no request names its cluster: the user says which one it was sent in      --cluster-id, --allow cluster
    epoch       the request is older than the records of a replica, and would stage some                  --allow epoch
    create      empty replicas would be made in a real broker's log dirs, which that broker does itself; or, in any log
                dirs, of partitions that the request does not call new, so that their data is lost        --allow create

Source: DESIGN §4, §6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.broker.decision import ActionResult
from reconciler.broker.memory import PartitionKey
from reconciler.plan import (
    INTERNAL_TOPICS,
    Action,
    ActionKind,
    BrokerFacts,
    CandidateFacts,
    Gate,
    GateInputs,
    MetadataFacts,
    Policy,
    is_internal_topic,
    refusals,
)
from reconciler.protocol import ControlRequest, LeaderAndIsrRequest, PartitionState, RequestType
from reconciler.text import count, listed
from reconciler.verdicts import Verdict

CREATE: Final = "create"
EPOCH: Final = "epoch"
"""Gates that plans do not have."""

ALLOWABLE: Final = (
    *(Gate.CLUSTER, Gate.BROKER, Gate.EMPTY, Gate.CLOCK, Gate.ABSENT, Gate.SOLE_COPY, Gate.NO_ID),
    *(Gate.INTERNAL, EPOCH, CREATE),
)
"""Gates that ``--allow`` opens; the others are overridden by a number, or do not apply to a request."""


@dataclass(frozen=True, slots=True)
class HandSentRequest:
    """A request that a person sends to one broker's disks.

    Attributes:
        request: checked.
        location: of its file, for messages.
        node_id: of the broker.
        broker: ``broker 1 of cluster C``.
        live: number of live replicas of the broker.
        changes: of a dry run, each of which would be done.
        offline: path of each unusable log dir → why.
        foreign: paths of log dirs that a real broker reads.
        now_ms: in ms since 1970.
        cluster: in which the request was sent, as the user says; None: the user does not say.
        own_cluster: of the log dirs; None: they name none.
        unwanted: number of live replicas that look unwanted, staged or not.
        older: each partition whose records here are newer than the request, described.
        internal: shell patterns of topics that are internal, beside Kafka's own.
        written: what the disks know, and when it was written, in ms since 1970: no clock that stages is behind it.
    """

    request: ControlRequest
    location: str
    node_id: int
    broker: str
    live: int
    changes: Sequence[ActionResult]
    offline: Mapping[str, str]
    foreign: Collection[str]
    now_ms: int
    cluster: str | None = None
    own_cluster: str | None = None
    unwanted: int = 0
    older: Sequence[str] = ()
    internal: Sequence[str] = INTERNAL_TOPICS
    written: Sequence[tuple[str, int]] = ()


def shut_gates(sent: HandSentRequest, policy: Policy, allowed: Collection[str] = ()) -> list[str]:
    """List every shut gate as one sentence with its numbers and its override; an empty list allows the request.

    ``allowed``: names of gates that are open in addition to the policy's.
    """
    states = dict(_states(sent.request))
    staged = [each.action for each in sent.changes if each.action.kind is ActionKind.STAGE]
    complete = isinstance(sent.request, LeaderAndIsrRequest) and sent.request.type is RequestType.FULL
    wanted = sum(sent.node_id in state.replicas for state in states.values())
    # Only in a FULL request does a missing partition mean anything.
    opened = {Gate(name) for name in allowed if name not in (CREATE, EPOCH)} | (set() if complete else {Gate.EMPTY})
    opened.add(Gate.TIME)  # no request says when it was sent
    facts = GateInputs(
        sent.now_ms,
        (MetadataFacts(sent.location, True, None, len(sent.request.topics), wanted),),
        (BrokerFacts(sent.broker, sent.live, len(staged), True, wanted > 0 or not complete, sent.unwanted),),
        tuple(sent.offline.items()),
        written=tuple(sent.written) if staged else (),
        candidates=CandidateFacts(
            sole_copies=tuple(_sole_copies(staged, states, sent.node_id)),
            no_id=tuple(str(each.replica) for each in staged if _is_unknown_by_name(each)),
            internal=tuple(str(each.replica) for each in staged if is_internal_topic(each.topic, sent.internal)),
        ),
    )
    gates = replace(policy, allowed=policy.allowed | opened)
    shut = [*_of_cluster(sent, gates), *(each.reason for each in refusals(facts, gates))]
    if sent.older and staged and EPOCH not in allowed:
        shut.append(
            f"{sent.location} is older than the records of {count(len(sent.older), 'replica')}, so nobody is to be "
            f"condemned by it: {listed(sent.older)} (override: --allow {EPOCH})"
        )
    if CREATE not in allowed:
        shut += _of_creations(sent, states)
    return shut


def _of_cluster(sent: HandSentRequest, policy: Policy) -> Iterator[str]:
    if Gate.CLUSTER in policy.allowed:
        return
    if sent.cluster is None:
        yield (
            f"{sent.location} names no cluster.id, as no request does, so it may be another cluster's: say with "
            f"--cluster-id in which one it was sent (override: --allow {Gate.CLUSTER})"
        )
    elif sent.cluster != sent.own_cluster:
        yield (
            f"the request was sent in cluster {sent.cluster}, and the log dirs are of {sent.broker} (override: --allow "
            f"{Gate.CLUSTER})"
        )


def _of_creations(sent: HandSentRequest, states: Mapping[PartitionKey, PartitionState]) -> Iterator[str]:
    created = [each for each in sent.changes if each.action.kind is ActionKind.CREATE]
    made = [str(each.action.replica) for each in created if each.log_dir in sent.foreign]
    if made:
        yield (
            f"{count(len(made), 'empty replica')} would be made in log dirs that a real broker reads, which makes them "
            f"itself: {listed(made)} (override: --allow {CREATE})"
        )
    own = (each.action for each in created if each.log_dir not in sent.foreign)
    lost = [str(action.replica) for action in own if _should_be_here(action, states)]
    if lost:
        yield (
            f"{count(len(lost), 'empty replica')} would be made in the place of one that is missing: the request does "
            f"not call it new, so it had its records once: {listed(lost)} (override: --allow {CREATE})"
        )


def _states(request: ControlRequest) -> Iterator[tuple[PartitionKey, PartitionState]]:
    if isinstance(request, LeaderAndIsrRequest):
        for topic in request.topics:
            for state in topic.partitions:
                yield (topic.topic, state.partition), state


def _is_unknown_by_name(staged: Action) -> bool:
    """Whether a name that the request leaves out is all that condemns a replica: it has no topic ID to go by."""
    return staged.topic_id is None and staged.verdict == Verdict.UNKNOWN_TOPIC


def _should_be_here(created: Action, states: Mapping[PartitionKey, PartitionState]) -> bool:
    """Whether a replica that is to be made is one that the controller takes to be here, and is not."""
    state = states.get((created.topic, created.partition))
    return created.verdict == Verdict.MISSING and state is not None and not state.is_new


def _sole_copies(
    staged: Sequence[Action], states: Mapping[PartitionKey, PartitionState], node_id: int
) -> Iterator[str]:
    """Find replicas that would be staged although no other replica is in sync, as far as the request says.

    What is in sync is of the request's topic ID, so a replica under another one is no copy of it.
    """
    for action in staged:
        state = states.get((action.topic, action.partition))
        if state is None:
            continue
        others = {broker for broker in state.isr if broker in state.replicas} - {node_id}
        if action.verdict == Verdict.NOT_ASSIGNED and not others:
            yield str(action.replica)
