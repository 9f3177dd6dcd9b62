"""The gates that a plan is held to, each with one named override, and the choice of actions. Pure.

A comparison can be right and its premise wrong: metadata of another cluster, of last month, or of a cluster that has
just lost its topics makes every replica look stale. So a plan is held to gates before it is shown::

    cluster     the metadata names no cluster.id, or the log dirs are of another one     --allow cluster
    broker      the metadata does not know the node.id of these log dirs                 --allow broker
    empty       there is no metadata, or it knows no topic                               --allow empty
    age         the metadata is older than allowed                                       --max-age
    shrunk      the metadata knows far fewer topics or replicas than last time           --allow shrunk
    absent      a log dir is missing, or does not name its broker                        --allow absent
    share       too large a part of a broker's replicas would be staged                  --max-share
    count       too many of a broker's replicas would be staged                          --max-count
    sole-copy   a replica to be staged is the only one in sync                           --allow sole-copy
    internal    a replica to be staged is of an internal topic                           --allow internal

All shut gates are reported at once, with their numbers. :meth:`Policy.kip516` has no gates, for an embedded broker
whose controller decides. :meth:`Policy.cautious` is the default of the command line. Source: DESIGN §6.

The operator picks actions by :class:`PlanChoice`: topics by shell patterns, verdicts by name. ``need`` asks for the
safest set that frees a number of bytes once it is purged. It takes replicas with other copies in sync first, then
strays of a broker, then replicas of a re-created topic, and last replicas of unknown topics. Within each group the
largest come first, because a person reviews few replicas sooner than many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from reconciler.plan.plan import STAGING_ACTIONS, Action, ActionKind
from reconciler.text import age, count, listed
from reconciler.verdicts import Verdict

INTERNAL_PREFIX: Final = "__"
"""The prefix of the names of Kafka's own topics, for example ``__consumer_offsets``."""

DAY_MS: Final = 86_400_000


class Gate(StrEnum):
    """A reason not to make a plan; the values are used on the command line."""

    CLUSTER = "cluster"
    BROKER = "broker"
    EMPTY = "empty"
    AGE = "age"
    SHRUNK = "shrunk"
    ABSENT = "absent"
    SHARE = "share"
    COUNT = "count"
    SOLE_COPY = "sole-copy"
    INTERNAL = "internal"


BY_NUMBER: Final[Mapping[Gate, str]] = {
    Gate.AGE: "--max-age",
    Gate.SHARE: "--max-share",
    Gate.COUNT: "--max-count",
}
"""Gates that are overridden by a number, with the option that takes it."""

ALLOWABLE: Final = tuple(gate for gate in Gate if gate not in BY_NUMBER)
"""Gates that ``--allow`` opens."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which gates hold and at which numbers; None: there is no such gate.

    Attributes:
        oldest_ms: the greatest age of metadata.
        most_shrink: the greatest part of its topics or replicas that a cluster may have lost since last time.
        most_share: the greatest part of a broker's live replicas that may be staged.
        most_count: the greatest number of a broker's live replicas that may be staged.
        allowed: gates of :data:`ALLOWABLE` that are open.
    """

    oldest_ms: int | None
    most_shrink: float | None
    most_share: float | None
    most_count: int | None
    allowed: frozenset[Gate] = frozenset()

    @classmethod
    def kip516(cls) -> Policy:
        """Hold a plan to no gate: the controller of an embedded broker has decided."""
        return cls(None, None, None, None, frozenset(Gate))

    @classmethod
    def cautious(cls) -> Policy:
        """Allow metadata of one day, 30 percent shrinking, and staging of 30 percent and 1000 replicas."""
        return cls(DAY_MS, 0.3, 0.3, 1000)

    def described(self) -> dict[str, str]:
        """Return the policy as text, for the plan."""
        return {
            "max_age_ms": _text(self.oldest_ms),
            "max_shrink": _text(self.most_shrink),
            "max_share": _text(self.most_share),
            "max_count": _text(self.most_count),
            "allowed": ", ".join(sorted(self.allowed)) or "nothing",
        }


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker whose log dirs were given.

    Attributes:
        name: ``broker 1 of cluster C``.
        live: number of live replicas on its disks.
        staged: number of live replicas that the plan would stage.
        cluster_matches: metadata of the broker's own cluster was given.
        known: the metadata knows its node.id.
    """

    name: str
    live: int
    staged: int
    cluster_matches: bool
    known: bool


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """One metadata source, beside what a source said of the same cluster when a plan was last applied here.

    Attributes:
        location: as it was given.
        names_cluster: whether the source names its cluster.
        timestamp_ms: of its newest record; None: not known.
        topics: number of topics in the source.
        replicas: number of wanted replicas, on all brokers.
        topics_before: number of topics last time; None: not known.
        replicas_before: number of wanted replicas last time; None: not known.
    """

    location: str
    names_cluster: bool
    timestamp_ms: int | None
    topics: int
    replicas: int
    topics_before: int | None = None
    replicas_before: int | None = None


@dataclass(frozen=True, slots=True)
class GateInputs:
    """All numbers and names that the gates depend on.

    Attributes:
        now_ms: in ms since 1970.
        metadata: every given source.
        brokers: every broker whose log dirs were given.
        absent: path and problem of each log dir that cannot be trusted.
        sole_copies: names of replicas to be staged that are the only copy in sync.
        internal: names of replicas to be staged that are of internal topics.
    """

    now_ms: int
    metadata: tuple[MetadataFacts, ...] = ()
    brokers: tuple[BrokerFacts, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    sole_copies: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A shut gate, and the reason: one sentence with the numbers and the override."""

    gate: Gate
    reason: str = field(compare=False)


def refusals(facts: GateInputs, policy: Policy) -> list[Refusal]:
    """List every shut gate in the order of :class:`Gate`; an empty list allows the plan."""
    shut = [*_of_metadata(facts, policy), *_of_log_dirs(facts), *_of_candidates(facts, policy)]
    order = list(Gate)
    left = [refusal for refusal in shut if refusal.gate not in policy.allowed]
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
        old = None if source.timestamp_ms is None else facts.now_ms - source.timestamp_ms
        if old is not None and policy.oldest_ms is not None and old > policy.oldest_ms:
            yield _refused(
                Gate.AGE,
                f"{place} is {age(old)} old, and {age(policy.oldest_ms)} is the most: whatever was created since looks "
                "unwanted",
            )
        pairs = (("topic", source.topics, source.topics_before), ("replica", source.replicas, source.replicas_before))
        for noun, now, before in pairs:
            if before and policy.most_shrink is not None and now < before * (1 - policy.most_shrink):
                yield _refused(
                    Gate.SHRUNK,
                    f"{place} knows {count(now, noun)}, and knew {before:,} when a plan was last applied here: "
                    f"{_percent(1 - now / before)} fewer, where {_percent(policy.most_shrink)} is the most",
                )


def _of_log_dirs(facts: GateInputs) -> Iterator[Refusal]:
    for broker in facts.brokers:
        if facts.metadata and not broker.cluster_matches:
            yield _refused(Gate.CLUSTER, f"{broker.name} has log dirs here, and no metadata of its cluster was given")
        elif facts.metadata and not broker.known:
            yield _refused(
                Gate.BROKER,
                f"the metadata does not speak of {broker.name}, so each of its {count(broker.live, 'replica')} looks "
                "unwanted: are these the right log dirs?",
            )
    for path, problem in facts.absent:
        yield _refused(Gate.ABSENT, f"{path} cannot be trusted: {problem}")


def _of_candidates(facts: GateInputs, policy: Policy) -> Iterator[Refusal]:
    for broker in facts.brokers:
        if not broker.staged:
            continue
        share = broker.staged / max(broker.live, 1)
        staged = f"{broker.staged:,} of {count(broker.live, 'replica')} of {broker.name} would be staged"
        if policy.most_share is not None and share > policy.most_share:
            yield _refused(Gate.SHARE, f"{staged}: {_percent(share)}, where {_percent(policy.most_share)} is the most")
        if policy.most_count is not None and broker.staged > policy.most_count:
            yield _refused(Gate.COUNT, f"{staged}, where {policy.most_count:,} is the most")
    if facts.sole_copies:
        many = count(len(facts.sole_copies), "replica is", "replicas are")
        yield _refused(
            Gate.SOLE_COPY,
            f"{many} the only copy in sync, as far as the metadata knows: {listed(facts.sole_copies)}",
        )
    if facts.internal:
        yield _refused(
            Gate.INTERNAL,
            f"{count(len(facts.internal), 'replica')} of internal topics would be staged: {listed(facts.internal)}",
        )


def _refused(gate: Gate, what: str) -> Refusal:
    override = BY_NUMBER.get(gate, f"--allow {gate}")
    return Refusal(gate, f"{what} (override: {override})")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _text(number: float | None) -> str:
    return "none" if number is None else str(number)


SAFEST_FIRST = (Verdict.NOT_ASSIGNED, Verdict.STRAY, Verdict.STALE_ID, Verdict.UNKNOWN_TOPIC)
"""Verdicts whose replicas may be staged, the least risky first."""


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The operator's choices for a plan.

    Attributes:
        policy: the gates.
        delay_ms: least time between staging a replica and purging it.
        topics: shell patterns of full topic names; empty: all topics.
        verdicts: verdicts to act on; empty: all verdicts.
        need: bytes to free; None: every unwanted replica is staged.
        strays: whether unwanted strays of a broker get a due time.
        sightings: number of runs, this one included, that must have seen a replica unwanted before it is staged.
    """

    policy: Policy = field(default_factory=Policy.cautious)
    delay_ms: int = 7 * 86_400_000
    topics: tuple[str, ...] = ()
    verdicts: frozenset[Verdict] = frozenset()
    need: int | None = None
    strays: bool = False
    sightings: int = 1

    def has(self, action: Action) -> bool:
        """Whether the choice of topics and verdicts includes an action."""
        by_topic = not self.topics or any(fnmatchcase(action.topic, pattern) for pattern in self.topics)
        return by_topic and (not self.verdicts or action.verdict in self.verdicts)


def cheapest(actions: Sequence[Action], need: int, unsafe: Collection[Action]) -> list[Action]:
    """Pick the least risky actions that free enough bytes, and the creations that belong to them.

    Args:
        actions: all candidates.
        need: bytes to free; where all candidates free fewer, all are taken.
        unsafe: actions that a gate would refuse; they are never picked.
    """
    candidates = [each for each in actions if each.kind in STAGING_ACTIONS and each.frees and each not in unsafe]
    candidates.sort(key=lambda each: (_rank(each), -each.frees, each.log_dir, each.name))
    taken: list[Action] = []
    total = 0
    for each in candidates:
        if total >= need:
            break
        taken.append(each)
        total += each.frees
    # The last action may free so much that some earlier ones are not needed; the riskiest of these are dropped first.
    for each in reversed(taken[:-1]):
        if total - each.frees >= need:
            taken.remove(each)
            total -= each.frees
    kept = set(taken)
    replicas = {each.replica for each in taken if each.kind is ActionKind.STAGE}
    return [each for each in actions if each in kept or (each.kind is ActionKind.CREATE and each.replica in replicas)]


def _rank(action: Action) -> int:
    verdicts = [verdict.value for verdict in SAFEST_FIRST]
    return verdicts.index(action.verdict) if action.verdict in verdicts else len(verdicts)
