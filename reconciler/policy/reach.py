"""What the rules of a policy name on some disks: replicas, what lies staged, and entries that are not Kafka's. Pure.

Rows are those of a scan (:data:`logstore.rows.ROW_SCHEMA`), as mappings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logstore.rows import Kind
from reconciler.policy.rules import PolicyRules, Rule, RuleKind

_OTHERS = (Kind.FUTURE, Kind.DELETE, Kind.STRAY)


@dataclass(slots=True)
class RuleReach:
    """What one rule names.

    Attributes:
        rule: of the policy.
        live: live replicas.
        staged: replicas that lie staged.
        others: future, stray and delete directories.
        foreign: entries of log dirs that are not Kafka's.
        bytes: what all these take on the disks.
        in_metadata: topics that the metadata knows.
    """

    rule: Rule
    live: int = 0
    staged: int = 0
    others: int = 0
    foreign: int = 0
    bytes: int = 0
    in_metadata: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the rule names nothing, on the disks or in the metadata."""
        return not (self.live or self.staged or self.others or self.foreign or self.in_metadata)


def reach_of(
    rules: PolicyRules, rows: Iterable[Mapping[str, Any]], known_topics: Collection[str] = ()
) -> list[RuleReach]:
    """Count what each rule names, in the order of the rules; of several delays for a topic only the first counts.

    ``known_topics``: those in the metadata.
    """
    found = {number: RuleReach(rule) for number, rule in enumerate(rules.rules)}
    of_topic: dict[str, list[RuleReach]] = {}

    def reaches(topic: str) -> list[RuleReach]:
        if topic not in of_topic:
            of_topic[topic] = _about(topic, found.values())
        return of_topic[topic]

    for row in rows:
        if row["kind"] == Kind.FOREIGN:
            named = [each for each in found.values() if each.rule.kind is RuleKind.FOREIGN]
            for each in (one for one in named if one.rule.names(row["name"])):
                each.foreign += 1
                each.bytes += _bytes(row)
        elif row["topic"] is not None and row["kind"] in (Kind.LIVE, Kind.STAGED, *_OTHERS):
            for each in reaches(row["topic"]):
                each.live += row["kind"] == Kind.LIVE
                each.staged += row["kind"] == Kind.STAGED
                each.others += row["kind"] in _OTHERS
                each.bytes += _bytes(row)
    for topic in known_topics:
        for each in reaches(topic):
            each.in_metadata += 1
    return list(found.values())


def _about(topic: str, reaches: Iterable[RuleReach]) -> list[RuleReach]:
    about = [each for each in reaches if each.rule.kind is not RuleKind.FOREIGN and each.rule.names(topic)]
    delays = [each for each in about if each.rule.kind is RuleKind.DELAY]
    return [each for each in about if each not in delays[1:]]


def _bytes(row: Mapping[str, Any]) -> int:
    size = row["bytes"] if row["disk_bytes"] is None else row["disk_bytes"]
    return size or 0


@dataclass(slots=True)
class StagedGroup:
    """What lies staged, or would, and waits for the same reason.

    Attributes:
        rule: that keeps it, or whose delay it has; None: no rule, so the default holds.
        number: of replicas.
        bytes: that they take on the disks.
        due: how many of them are due already.
        first_due_ms: the earliest due time, in ms since 1970; None: none of them has one.
    """

    rule: Rule | None
    number: int = 0
    bytes: int = 0
    due: int = 0
    first_due_ms: int | None = None

    def add(self, number_of_bytes: int, due_ms: int | None, now_ms: int) -> None:
        """Count one more."""
        self.number += 1
        self.bytes += number_of_bytes
        if due_ms is not None:
            self.due += due_ms <= now_ms
            self.first_due_ms = due_ms if self.first_due_ms is None else min(self.first_due_ms, due_ms)


def staged_groups(rules: PolicyRules, rows: Iterable[Mapping[str, Any]], now_ms: int) -> Sequence[StagedGroup]:
    """Group what lies staged by the rule that keeps it from a purge; what no rule keeps comes last."""
    groups: dict[Rule | None, StagedGroup] = {rule: StagedGroup(rule) for rule in (*rules.rules, None)}
    for row in rows:
        if row["kind"] == Kind.STAGED:
            groups[rules.keeping(row["topic"], now_ms)].add(_bytes(row), row["due_ms"], now_ms)
    return [group for group in groups.values() if group.number]
