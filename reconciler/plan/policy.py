"""Which gates a plan is held to, at which numbers, and the choice of actions. Pure; ``gates`` says when one is shut.

A comparison can be right and its premise wrong: metadata of another cluster, of last month, or of a cluster that has
just lost its topics makes every replica look stale. So a plan is held to gates before it is made. No metadata may
condemn what is younger than it, and nothing is condemned by what is not known. What was written less than
:data:`reconciler.verdicts.CLOCK_SKEW_MS` before the metadata's last record counts as younger, because the clocks of two
machines differ. Each gate has one override, except that no option lets a log dir and its copy into one plan, which
``apply`` would refuse. A plan of repairs that takes a topic ID from the metadata's word alone is held to those of them
that are about the metadata as a whole: a wrong ID condemns the wrong replica later::

    cluster      the metadata names no cluster.id, or the log dirs are of another one    --allow cluster
    broker       the metadata does not know the node.id of these log dirs                --allow broker
    empty        there is no metadata, or it knows no topic                              --allow empty
    time         the metadata does not say as of when it speaks, or names the future     --allow time
    age          the metadata is older than allowed                                      --max-age
    incomplete   the metadata ends before its source did, or lacks a part of it          --allow incomplete
    went-back    the metadata is older than what a plan applied here was made from       --allow went-back
    shrunk       the metadata knows far fewer topics or replicas than last time          --allow shrunk
    clock        this machine's clock is behind what its own disks say                   --allow clock
    absent       a log dir is missing, or does not name its broker                       --allow absent
    log-dir      the broker never registered a log dir, or it holds another one's data   --allow log-dir
    newer        a replica to be staged was made or written to after the metadata        --allow newer
    uncommitted  a replica to be staged is condemned by records that may be taken back   --allow uncommitted
    share        too large a part of a broker's replicas looks unwanted                  --max-share
    count        too many of a broker's replicas look unwanted                           --max-count
    sole-copy    a replica to be staged is the only one in sync                          --allow sole-copy
    live-copy    no live broker has a replica in sync of what would be staged            --allow live-copy
    no-id        a replica to be staged has no topic ID and a name that is not known     --allow no-id
    internal     a replica to be staged is of an internal topic                          --allow internal

:meth:`Policy.kip516` has no gates, for an embedded broker whose controller decides. :meth:`Policy.cautious` is the
default of the command line. Source: DESIGN §6.

The operator picks actions by :class:`PlanChoice`: topics by shell patterns, verdicts by name. ``need`` asks for the
safest set that frees a number of bytes once it is purged. It takes replicas with other copies in sync first, then
strays of a broker, then replicas of a re-created topic, and last replicas of unknown topics. Within each group the
largest come first, because a person reviews few replicas sooner than many.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from layout.topic import NAMESPACE_SEPARATOR
from logstore import check_fields
from reconciler.errors import UsageError
from reconciler.plan.plan import REMOVING_ACTIONS, STAGING_ACTIONS, Action, ActionKind
from reconciler.policy import PolicyRules
from reconciler.verdicts import Verdict

INTERNAL_PREFIX: Final = "__"
"""The prefix of the names of Kafka's own topics, for example ``__consumer_offsets``."""

INTERNAL_TOPICS: Final = (
    "_schemas*",
    "_confluent*",
    "connect-*",
    "mm2-*",
    "*.internal",
    "*-changelog",
    "*-repartition",
)
"""Shell patterns of topics in which other programs of Kafka's world keep their own state."""

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


_MOST = float(1 << 62)
"""No age, span or number of bytes comes near it; a sum with a time stays within an int64."""


class Gate(StrEnum):
    """A reason not to make a plan; the values are used on the command line."""

    CLUSTER = "cluster"
    BROKER = "broker"
    EMPTY = "empty"
    TIME = "time"
    AGE = "age"
    INCOMPLETE = "incomplete"
    WENT_BACK = "went-back"
    SHRUNK = "shrunk"
    CLOCK = "clock"
    ABSENT = "absent"
    LOG_DIR = "log-dir"
    NEWER = "newer"
    UNCOMMITTED = "uncommitted"
    SHARE = "share"
    COUNT = "count"
    SOLE_COPY = "sole-copy"
    LIVE_COPY = "live-copy"
    NO_ID = "no-id"
    INTERNAL = "internal"


BY_NUMBER: Final[Mapping[Gate, str]] = {
    Gate.AGE: "--max-age",
    Gate.SHARE: "--max-share",
    Gate.COUNT: "--max-count",
}
"""Gates that are overridden by a number, with the option that takes it."""

ALLOWABLE: Final = tuple(gate for gate in Gate if gate not in BY_NUMBER)
"""Gates that ``--allow`` opens."""

ALLOWABLE_FOR_REPAIR: Final = (Gate.CLUSTER, Gate.TIME, Gate.INCOMPLETE, Gate.WENT_BACK, Gate.SHRUNK)
"""Those of them that a plan of repairs is held to where it takes a topic ID from the metadata's word alone."""


_FIELDS: Final = {
    "max_age": "oldest_ms",
    "max_shrink": "most_shrink",
    "max_share": "most_share",
    "max_count": "most_count",
}
"""The names of a policy's numbers in a policy file, and in options with dashes."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which gates hold and at which numbers; None: there is no such gate.

    Attributes:
        oldest_ms: the greatest age of metadata.
        most_shrink: the greatest part of its topics or replicas that a cluster may have lost since last time.
        most_share: the greatest part of a broker's live replicas that may be staged.
        most_count: the greatest number of a broker's live replicas that may be staged.
        allowed: gates of :data:`ALLOWABLE` that are open.

    Raises:
        UsageError: one is of another type, is negative, or is a part of more than 1: such a gate would never shut.
    """

    oldest_ms: int | None
    most_shrink: float | None
    most_share: float | None
    most_count: int | None
    allowed: frozenset[Gate] = frozenset()

    def __post_init__(self) -> None:
        part, number = (0.0, 1.0), (0.0, _MOST)
        limits = {"oldest_ms": number, "most_shrink": part, "most_share": part, "most_count": number}
        check_fields(self, UsageError, limits)

    @classmethod
    def kip516(cls) -> Policy:
        """Hold a plan to no gate: the controller of an embedded broker has decided."""
        return cls(None, None, None, None, frozenset(Gate))

    @classmethod
    def cautious(cls) -> Policy:
        """Allow metadata of one day, 30 percent shrinking, and staging of 30 percent and 1000 replicas."""
        return cls(DAY_MS, 0.3, 0.3, 1000)

    def with_numbers(self, rules: PolicyRules, but: Collection[str] = ()) -> Policy:
        """Return the policy with the numbers of a policy file; ``but``: names of those that were given otherwise."""
        found = {_FIELDS[name]: number.value for name, number in rules.gates.items() if name not in but}
        return replace(self, **found)  # type: ignore[arg-type]  # check_fields tells a count from a share

    def described(self) -> dict[str, str]:
        """Return the policy as text, for the plan."""
        return {
            "max_age_ms": _text(self.oldest_ms),
            "max_shrink": _text(self.most_shrink),
            "max_share": _text(self.most_share),
            "max_count": _text(self.most_count),
            "allowed": ", ".join(sorted(self.allowed)) or "nothing",
        }


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
        apart_ms: least time between two sightings that count; the later one also needs later metadata.
        internal: shell patterns of topics that are internal beside Kafka's own.
        strays_without_id: whether strays without a topic ID get one too, where a replica lives in their place, its data
            in sync.
        refetched: topics whose replicas with a missing or damaged topic ID are staged, so that they are fetched anew.
        rules: the policy file's: topics that are never touched or held, longer delays, foreign names that are allowed.
        as_typed: the options by which all of this was chosen, as a shell takes them; empty: not by a command line.

    Raises:
        UsageError: one is of another type or negative, or no sighting at all is asked for.
    """

    policy: Policy = field(default_factory=Policy.cautious)
    delay_ms: int = 7 * 86_400_000
    topics: tuple[str, ...] = ()
    verdicts: frozenset[Verdict] = frozenset()
    need: int | None = None
    strays: bool = False
    sightings: int = 1
    apart_ms: int = HOUR_MS
    internal: tuple[str, ...] = INTERNAL_TOPICS
    strays_without_id: bool = False
    refetched: frozenset[str] = frozenset()
    rules: PolicyRules = field(default_factory=PolicyRules)
    as_typed: str = ""

    def __post_init__(self) -> None:
        limits = dict.fromkeys(("delay_ms", "need", "apart_ms"), (0.0, _MOST))
        check_fields(self, UsageError, {**limits, "sightings": (1.0, _MOST)})

    def described(self) -> dict[str, str]:
        """Return gates and rules as text, for the plan; with several sightings also how the next one is planned."""
        again = {"apart_ms": str(self.apart_ms), "as_typed": self.as_typed} if self.sightings > 1 else {}
        return self.policy.described() | self.rules.described() | again

    def has(self, action: Action) -> bool:
        """Whether the choice of topics and verdicts includes an action."""
        by_topic = not self.topics or any(fnmatchcase(action.topic, pattern) for pattern in self.topics)
        return by_topic and (not self.verdicts or action.verdict in self.verdicts)


def is_internal_topic(topic: str, patterns: Collection[str] = INTERNAL_TOPICS) -> bool:
    """Whether a topic is one of Kafka's own, or its name fits one of the patterns; its namespace does not count."""
    name = topic.rpartition(NAMESPACE_SEPARATOR)[2]
    return name.startswith(INTERNAL_PREFIX) or any(fnmatchcase(name, pattern) for pattern in patterns)


def why_forbidden(rules: PolicyRules, action: Action, now_ms: int) -> str | None:
    """Say why the rules of a policy file forbid an action at a time, a clause; None: they do not."""
    if action.kind is ActionKind.NOTE_SIGHTING:
        return None
    topics = {action.topic, *(topic for topic, _ in action.dropped)}
    removal = rules.forbids_removal(action.topic, now_ms) if action.kind in REMOVING_ACTIONS else None
    return rules.forbids_change(sorted(topics)) or removal


def cheapest(actions: Sequence[Action], need: int, unsafe: Collection[Action]) -> list[Action]:
    """Pick the least risky actions that free enough bytes, and the creations that belong to them.

    ``need``: bytes to free; where all free fewer, all are taken; ``unsafe``: actions that a gate would refuse; they are
    never picked.
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
