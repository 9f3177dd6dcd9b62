"""All rules together: whether the broker would start here, and what would be lost.

``preflight`` is a function of the evidence, the broker in question and the metadata. It reads no disk and no clock. The
command line decides the exit code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layout.directory_name import DirectoryKind
from logstore.rows import Kind
from reconciler.desired import Completeness, DesiredState
from reconciler.preflight.closed_rules import closed_findings, is_of_refusal
from reconciler.preflight.evidence import SeenBroker, find_wants
from reconciler.preflight.file_rules import file_findings
from reconciler.preflight.known_releases import knows_level, release_of_level
from reconciler.preflight.log_dir_rules import consequences, log_dir_findings
from reconciler.preflight.question import BrokerAsked
from reconciler.preflight.replica_rules import EFFECT_OF, replica_findings
from reconciler.preflight.rules import Finding, FindingPlace, StartEffect
from reconciler.text import count

_SUMMARY: Mapping[StartEffect, tuple[str, str]] = {
    StartEffect.LOG_DIR_OFFLINE: ("log dir", "would go offline"),
    StartEffect.DELETED: ("replica", "would be deleted"),
    StartEffect.OLD_RECORDS: ("replica", "would bring a deleted topic's records into the new one"),
    StartEffect.RENAMED_TO_STRAY: ("replica", "would be renamed to -stray"),
    StartEffect.REPLACED: ("replica", "would be replaced by a future one"),
    StartEffect.CREATED_EMPTY: ("log dir or replica", "would be created empty"),
    StartEffect.NOT_SERVED: ("replica", "would not be served"),
    StartEffect.UNKNOWN: ("thing", "cannot be told from here"),
}
_CURRENT = frozenset({Kind.LIVE.value, Kind.FUTURE.value})


@dataclass(frozen=True, slots=True)
class Preflight:
    """All findings about a broker in question."""

    asked: BrokerAsked
    findings: Sequence[Finding]
    """The gravest first."""
    with_metadata: bool
    """Some metadata are about this broker, so that strays are known."""

    @property
    def starts(self) -> bool:
        """Whether the broker would start, as far as is known."""
        return all(each.effect is not StartEffect.STARTUP_ABORTS for each in self.findings)

    @property
    def is_clean(self) -> bool:
        """Whether the broker would start, and nothing would be lost, renamed, deleted or left unused."""
        return all(each.effect is StartEffect.NOTE for each in self.findings)

    @property
    def totals(self) -> dict[StartEffect, int]:
        """Number of log dirs, replicas or reasons for each effect that occurs."""
        totals = Counter[StartEffect]()
        for each in self.findings:
            if each.effect is not StartEffect.LOG_DIR_OFFLINE:
                by_replica = each.effect in _SUMMARY and each.effect is not StartEffect.UNKNOWN
                totals[each.effect] += max(each.replicas, 1) if by_replica else 1
        offline = {each.place.log_dir for each in self.findings if each.effect is StartEffect.LOG_DIR_OFFLINE}
        totals[StartEffect.LOG_DIR_OFFLINE] = len(offline)
        return {effect: totals[effect] for effect in StartEffect if totals[effect]}

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        totals = self.totals
        parts = [_summarized(effect, totals[effect]) for effect in _SUMMARY if effect in totals]
        if self.starts:
            first = f"{self.asked} would start here"
        else:
            why = f"for {count(totals[StartEffect.STARTUP_ABORTS], 'reason')}"
            if {each.rule for each in self.findings if each.effect is StartEffect.STARTUP_ABORTS} == {"lock_held"}:
                why = "while another process has the log dirs open"
            first = f"{self.asked} would not start here, {why}"
            parts = [f"once it does: {parts[0]}", *parts[1:]] if parts else []
        if not self.with_metadata:
            parts.append("without metadata it is not known which replicas the cluster wants here")
        return "; ".join([first, *parts])


def preflight(broker: SeenBroker, asked: BrokerAsked, states: Mapping[str, DesiredState], now_ms: int = 0) -> Preflight:
    """Apply every rule.

    Args:
        broker: the evidence about its log dirs.
        asked: release and mode of the broker in question.
        states: desired state by cluster ID, as :func:`reconciler.desired.by_cluster` returns it.
        now_ms: in ms since 1970, for the comparison; no rule depends on it.
    """
    rows = list(broker.rows())
    wants = find_wants(states, rows, now_ms)
    findings = [
        *log_dir_findings(broker, asked),
        *replica_findings(broker, asked, wants),
        *file_findings(broker, asked),
        *_empty_metadata(broker, asked, states),
        *_level_too_new(asked, states),
    ]
    findings = [*closed_findings(broker), *(each for each in findings if not is_of_refusal(each, broker))]
    findings += consequences(broker, asked, findings)
    speaks = any(want.is_judged for want in wants.of.values()) or bool(wants.nowhere)
    replicas = any(row["kind"] in _CURRENT for row in rows)
    return Preflight(asked, sorted(findings, key=lambda each: each.order), speaks or not replicas)


def _empty_metadata(broker: SeenBroker, asked: BrokerAsked, states: Mapping[str, DesiredState]) -> Iterator[Finding]:
    """Report metadata without a topic: an audit ignores them, and a KRaft broker believes them (FACTS §6.1, §6.3)."""
    for cluster, state in states.items():
        replicas = sum(row["kind"] in _CURRENT and (row["cluster_id"] or "") == cluster for row in broker.rows())
        full = state.identity.completeness is Completeness.FULL
        if not asked.is_kraft or not full or state.topics.num_rows or not replicas:
            continue
        effect = EFFECT_OF.get(asked.when_unwanted(DirectoryKind.LIVE).action, StartEffect.NOTE)
        sentence = (
            f"{state.identity.location} knows no topic at all: a broker that were given such metadata would take all "
            f"{count(replicas, 'replica')} for strays"
        )
        yield Finding(effect, "empty_metadata", sentence, FindingPlace(), replicas=replicas)


def _level_too_new(asked: BrokerAsked, states: Mapping[str, DesiredState]) -> Iterator[Finding]:
    """Report metadata of a later feature level than the release knows: it halts on the record (FACTS §7.4)."""
    for state in states.values():
        level = state.identity.metadata_version
        if not asked.reads_metadata_log or level is None or knows_level(asked.release, level):
            continue
        first = release_of_level(level)
        came = "no release that is known here has" if first is None else f"came with {first.major}.{first.minor}"
        sentence = (
            f"{state.identity.location} has metadata.version {level}, which {came}: {asked.release} cannot read that "
            "level, and halts; give the release of the broker's own program"
        )
        yield Finding(StartEffect.STARTUP_ABORTS, "feature_level_too_new", sentence)


def _summarized(effect: StartEffect, number: int) -> str:
    noun, what = _SUMMARY[effect]
    many = "log dirs or replicas" if noun == "log dir or replica" else f"{noun}s"
    return f"{count(number, noun, many)} {what}"
