"""The rules of a policy: topics that wait longer, are never touched or held, and names that are allowed.

A rule names topics by shell patterns of their full names. It stands in a line of a file, and whatever it keeps is
listed with that line. Three kinds are about topics, and one about what else lies in a log dir::

    delay         how long what is staged waits for its purge; the first rule that matches counts
    never_touch   no plan changes anything of the topic, and no purge deletes it
    hold          a legal hold: nothing of the topic is staged, and nothing is deleted, due or not, until its end
    foreign       names of entries of a log dir that are not Kafka's, and are meant to lie there

Whether a hold has ended is asked anew each time, so one that was laid after a plan was made counts as it is applied.
Pure: the time is an argument. Source: USERS, feature 24; DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from reconciler.text import listed, moment


class RuleKind(StrEnum):
    """What a rule is about; the values are the keys of the file."""

    DELAY = "delay"
    NEVER_TOUCH = "never_touch"
    HOLD = "hold"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        kind: what it is about.
        patterns: shell patterns of full topic names, or of names in a log dir.
        origin: ``FILE:LINE``.
        reason: why, in the operator's words; empty for delays and foreign names.
        delay_ms: of a delay: how long what is staged waits.
        until_ms: of a hold: when it ends, in ms since 1970; None: it holds until somebody takes it out.
    """

    kind: RuleKind
    patterns: tuple[str, ...]
    origin: str
    reason: str = ""
    delay_ms: int = 0
    until_ms: int | None = None

    def names(self, name: str | None) -> bool:
        """Whether the rule is about a topic, or a name in a log dir; None, which is not known, is never named."""
        return name is not None and any(fnmatchcase(name, pattern) for pattern in self.patterns)

    def has_ended(self, now_ms: int) -> bool:
        """Whether it is a hold that is over."""
        return self.until_ms is not None and now_ms >= self.until_ms

    def described(self) -> str:
        """Say in a clause what it forbids and why, and where it stands."""
        until = "" if self.until_ms is None else f" until {moment(self.until_ms)}"
        what = "held" if self.kind is RuleKind.HOLD else "never touched"
        return f"{what}{until}: {self.reason} ({self.origin})"


@dataclass(frozen=True, slots=True)
class GateNumber:
    """A number of a gate that the policy sets: a share, a count or ms, as it is written there, and where it stands."""

    value: float
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """Everything that a policy file says; without a file, nothing.

    Attributes:
        path: of the file, as it was given; empty: there is none.
        rules: in the order of the file.
        gates: ``max_age``, ``max_shrink``, ``max_share`` or ``max_count`` → the number that the file sets.
    """

    path: str = ""
    rules: tuple[Rule, ...] = ()
    gates: Mapping[str, GateNumber] = field(default_factory=dict, hash=False)

    def of_kind(self, *kinds: RuleKind) -> Iterator[Rule]:
        """Yield the rules of some kinds, in the order of the file."""
        return (rule for rule in self.rules if rule.kind in kinds)

    def first(self, name: str | None, *kinds: RuleKind) -> Rule | None:
        """Return the first rule of some kinds that names a topic, or a name in a log dir; None: there is none."""
        return next((rule for rule in self.of_kind(*kinds) if rule.names(name)), None)

    def delay_ms(self, topic: str | None, default_ms: int) -> int:
        """Return how long what is staged of a topic waits for its purge."""
        rule = self.first(topic, RuleKind.DELAY)
        return default_ms if rule is None else rule.delay_ms

    def forbids_change(self, topics: Iterable[str]) -> str | None:
        """Say why nothing of one of these topics may be changed, a clause; None: no rule forbids it."""
        found = (self.first(topic, RuleKind.NEVER_TOUCH) for topic in topics)
        return next((rule.described() for rule in found if rule is not None), None)

    def forbids_removal(self, topic: str | None, now_ms: int) -> str | None:
        """Say why nothing of a topic may be staged or deleted at a time, a clause; None: no rule forbids it."""
        rule = self.keeping(topic, now_ms)
        return None if rule is None else rule.described()

    def keeping(self, topic: str | None, now_ms: int) -> Rule | None:
        """Return the first rule by which nothing of a topic may be staged or deleted at a time; None: there is none."""
        found = self.of_kind(RuleKind.NEVER_TOUCH, RuleKind.HOLD)
        return next((rule for rule in found if rule.names(topic) and not rule.has_ended(now_ms)), None)

    def allows(self, name: str | None) -> bool:
        """Whether a name in a log dir that is not Kafka's is meant to lie there."""
        return self.first(name, RuleKind.FOREIGN) is not None

    def described(self) -> dict[str, str]:
        """Return the rules as text, for a plan; empty where there is no file."""
        if not self.path:
            return {}
        said = {"policy_file": self.path}
        for kind in RuleKind:
            lines = [_in_a_plan(rule) for rule in self.of_kind(kind)]
            if lines:
                said[kind.value] = "; ".join(lines)
        return said


def _in_a_plan(rule: Rule) -> str:
    patterns = listed(rule.patterns, 20)
    if rule.kind is RuleKind.FOREIGN:
        return patterns
    return f"{patterns}: {rule.delay_ms} ms" if rule.kind is RuleKind.DELAY else f"{patterns} {rule.described()}"
