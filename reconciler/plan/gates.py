"""When a gate is shut, and what is said of it: one sentence with the numbers, and the option that opens it. Pure.

``policy`` lists the gates; ``gate_inputs`` gathers what they depend on. All shut gates are reported at once.
Source: DESIGN §6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.errors import RefusedError
from reconciler.plan.plan import Plan
from reconciler.plan.policy import BY_NUMBER, HOUR_MS, Gate, Policy
from reconciler.text import age, count, listed, moment
from reconciler.verdicts import CLOCK_TOLERANCE_MS


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker whose log dirs were given.

    Attributes:
        name: ``broker 1 of cluster C``.
        live: number of live replicas on its disks.
        staged: number of live replicas that the plan would stage.
        cluster_matches: metadata of the broker's own cluster was given.
        known: the metadata knows its node.id.
        unwanted: number of live replicas that look unwanted, picked for the plan or not.
        counted_in: the log dirs that were given, where the broker registered more of them, a clause; empty: all.
    """

    name: str
    live: int
    staged: int
    cluster_matches: bool
    known: bool
    unwanted: int = 0
    counted_in: str = ""


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """One metadata source, beside what a source said of the same cluster when a plan was last applied here.

    Attributes:
        location: as it was given.
        names_cluster: whether the source names its cluster.
        as_of_ms: as of when it speaks, in ms since 1970; None: not known.
        topics: number of topics in the source.
        replicas: number of wanted replicas, on all brokers.
        topics_before: number of topics last time; None: not known.
        replicas_before: number of wanted replicas last time; None: not known.
        ends_early: why the source is not whole, one sentence each.
        went_back: a clause that compares it with what an applied plan was made from; None: it is not older.
        as_of_from: what its time rests on, one clause; empty: on its newest record.
    """

    location: str
    names_cluster: bool
    as_of_ms: int | None
    topics: int
    replicas: int
    topics_before: int | None = None
    replicas_before: int | None = None
    ends_early: tuple[str, ...] = ()
    went_back: str | None = None
    as_of_from: str = ""


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """Names of the replicas to be staged that are in doubt, by the reason; a name may have a remark in brackets.

    Attributes:
        newer: made or written to after the time as of which the metadata speaks, or so shortly before that clocks do
            not tell.
        uncommitted: condemned by records that may still be taken back.
        sole_copies: the only copy in sync.
        no_live_copy: in sync elsewhere, but on no live broker, or without a leader.
        no_id: without a topic ID, under a name that the metadata does not know.
        internal: of internal topics.
    """

    newer: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()
    sole_copies: tuple[str, ...] = ()
    no_live_copy: tuple[str, ...] = ()
    no_id: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GateInputs:
    """All numbers and names that the gates depend on.

    Attributes:
        now_ms: in ms since 1970.
        metadata: every given source.
        brokers: every broker whose log dirs were given.
        absent: path and problem of each log dir that cannot be trusted.
        strange: path and problem of each log dir that does not look like the broker's own.
        written: the newest times that the disks know: what was written, and when, in ms since 1970.
        candidates: the replicas to be staged that are in doubt.
        copied: path and problem of each log dir under whose directory.id another one was given: no option opens it.
    """

    now_ms: int
    metadata: tuple[MetadataFacts, ...] = ()
    brokers: tuple[BrokerFacts, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    strange: tuple[tuple[str, str], ...] = ()
    written: tuple[tuple[str, int], ...] = ()
    candidates: CandidateFacts = field(default_factory=CandidateFacts)
    copied: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A shut gate, the reason (one sentence with the numbers and the override), and the option that opens the gate.

    ``option`` is None where none does, because ``apply`` would refuse the plan.
    """

    gate: Gate
    reason: str = field(compare=False)
    option: tuple[str, str] | None = field(default=None, compare=False)


class GatesShutError(RefusedError):
    """A plan is refused because gates are shut.

    Attributes:
        refusals: every shut gate.
        plan: what would be planned if they were open, to be shown and never carried out.
    """

    def __init__(self, shut: Sequence[Refusal], plan: Plan) -> None:
        """Join the reasons into one message."""
        super().__init__("no plan is made: " + "; ".join(refusal.reason for refusal in shut))
        self.refusals, self.plan = tuple(shut), plan


def refusals(facts: GateInputs, policy: Policy) -> list[Refusal]:
    """List every shut gate in the order of :class:`Gate`; an empty list allows the plan."""
    shut = [*_of_metadata(facts, policy), *_of_log_dirs(facts), *_of_brokers(facts, policy), *_of_candidates(facts)]
    order = list(Gate)
    # An embedded broker has its log dirs open, and so knows that none of them is a copy of another.
    is_held = policy != Policy.kip516()
    left = [each for each in shut if each.gate not in policy.allowed or (each.option is None and is_held)]
    return sorted(left, key=lambda refusal: order.index(refusal.gate))


def _of_metadata(facts: GateInputs, policy: Policy) -> Iterator[Refusal]:
    if not facts.metadata:
        yield _refused(Gate.EMPTY, "there is no metadata, so nothing can be called stale: name it with --metadata")
    for source in facts.metadata:
        place = source.location
        if not source.names_cluster:
            yield _refused(Gate.CLUSTER, f"{place} names no cluster.id, so it may be another cluster's")
        if not source.topics or not source.replicas:
            known = f"{count(source.topics, 'topic')} and {count(source.replicas, 'replica')}"
            yield _refused(Gate.EMPTY, f"{place} knows {known}: a cluster that lost its metadata looks the same")
        yield from _of_time(source, facts.now_ms, policy)
        if source.ends_early:
            yield _refused(
                Gate.INCOMPLETE,
                f"{place} is not whole, so what was created since looks unwanted: {'; '.join(source.ends_early)}",
            )
        if source.went_back:
            yield _refused(Gate.WENT_BACK, f"{place} went back in time: {source.went_back}")
        pairs = (("topic", source.topics, source.topics_before), ("replica", source.replicas, source.replicas_before))
        for noun, now, before in pairs:
            if before and policy.most_shrink is not None and now < before * (1 - policy.most_shrink):
                yield _refused(
                    Gate.SHRUNK,
                    f"{place} knows {count(now, noun)}, and knew {before:,} when a plan was last applied here: "
                    f"{_percent(1 - now / before)} fewer, where {_percent(policy.most_shrink)} is the most",
                )


def _of_time(source: MetadataFacts, now_ms: int, policy: Policy) -> Iterator[Refusal]:
    place = source.location
    if source.as_of_ms is None:
        yield _refused(
            Gate.TIME, f"{place} does not say as of when it speaks, so nothing says whether it is newer than the disks"
        )
        return
    old = now_ms - source.as_of_ms
    if -old > CLOCK_TOLERANCE_MS:
        yield _refused(
            Gate.TIME,
            f"{place} is of {moment(source.as_of_ms)}, which is {age(-old)} in the future: its clock or this machine's "
            "is wrong",
        )
    if policy.oldest_ms is not None and old > policy.oldest_ms:
        yield _refused(
            Gate.AGE,
            f"{place} is {age(old)} old, and {age(policy.oldest_ms)} is the most: whatever was created since looks "
            "unwanted",
            f"{old // HOUR_MS + 1}h",
        )


def _of_log_dirs(facts: GateInputs) -> Iterator[Refusal]:
    behind = [(what, ms) for what, ms in facts.written if ms > facts.now_ms + CLOCK_TOLERANCE_MS]
    if behind:
        what, newest_ms = max(behind, key=lambda each: each[1])
        yield _refused(
            Gate.CLOCK,
            f"this machine's clock says {moment(facts.now_ms)}, and {what} is of {moment(newest_ms)}: what is staged "
            f"now would be due {age(newest_ms - facts.now_ms)} too early",
        )
    for path, problem in facts.absent:
        yield _refused(Gate.ABSENT, f"{path} cannot be trusted: {problem}")
    of_another = "does not look like a log dir of this broker"
    copies = dict(facts.copied)
    for path, problem in facts.strange:
        if path not in copies:
            yield _refused(Gate.LOG_DIR, f"{path} {of_another}: {problem}")
    strange = dict(facts.strange)
    for path, problem in copies.items():
        also = f"{strange[path]}; " if path in strange else ""
        yield Refusal(Gate.LOG_DIR, f"{path} {of_another}: {also}{problem}")


def _of_brokers(facts: GateInputs, policy: Policy) -> Iterator[Refusal]:
    for broker in facts.brokers:
        if facts.metadata and not broker.cluster_matches:
            yield _refused(Gate.CLUSTER, f"{broker.name} has log dirs here, and no metadata of its cluster was given")
        elif facts.metadata and not broker.known:
            yield _refused(
                Gate.BROKER,
                f"the metadata does not speak of {broker.name}, so each of its {count(broker.live, 'replica')} looks "
                "unwanted: are these the right log dirs?",
            )
        if not broker.staged:
            continue
        unwanted = max(broker.staged, broker.unwanted)
        share = unwanted / max(broker.live, 1)
        counted = f", counted in {broker.counted_in}," if broker.counted_in else ""
        seen = f"{unwanted:,} of {count(broker.live, 'replica')} of {broker.name}{counted} look unwanted"
        if policy.most_share is not None and share > policy.most_share:
            yield _refused(
                Gate.SHARE,
                f"{seen}: {_percent(share)}, where {_percent(policy.most_share)} is the most",
                f"{math.ceil(100 * share)}%",
            )
        if policy.most_count is not None and unwanted > policy.most_count:
            yield _refused(Gate.COUNT, f"{seen}, where {policy.most_count:,} is the most", str(unwanted))


def _of_candidates(facts: GateInputs) -> Iterator[Refusal]:
    found = facts.candidates
    sentences = {
        Gate.NEWER: (
            found.newer,
            "{} newer than the metadata, which cannot condemn what it does not know: take newer metadata, of a running "
            "broker or controller, against",
        ),
        Gate.UNCOMMITTED: (found.uncommitted, "{} condemned by records that may never have been committed"),
        Gate.SOLE_COPY: (
            found.sole_copies,
            "{} perhaps the only copy: no other is in sync, as far as the metadata knows",
        ),
        Gate.LIVE_COPY: (found.no_live_copy, "{} the only live copy: no registered, unfenced broker leads it in sync"),
        Gate.NO_ID: (found.no_id, "{} without a topic ID, and of a name that the metadata does not know"),
        Gate.INTERNAL: (found.internal, "{} of internal topics"),
    }
    for gate, (names, sentence) in sentences.items():
        if names:
            said = f"{sentence.format(count(len(names), 'replica is', 'replicas are'))}: {listed(names)}"
            yield _refused(gate, said + (_as_of(facts.metadata) if gate is Gate.NEWER else ""))


def _as_of(metadata: tuple[MetadataFacts, ...]) -> str:
    """Say as of when each source speaks whose time rests on something else than its newest record."""
    dated = [each for each in metadata if each.as_of_from and each.as_of_ms is not None]
    return "".join(f"; {each.location} speaks as of {moment(each.as_of_ms)}, by {each.as_of_from}" for each in dated)


def _refused(gate: Gate, what: str, number: str = "") -> Refusal:
    option = (BY_NUMBER[gate], number) if gate in BY_NUMBER else ("--allow", gate.value)
    return Refusal(gate, f"{what} (override: {' '.join(option)})", option)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
