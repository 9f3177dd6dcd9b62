"""The steps advised after an audit: one for each verdict that asks for action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.audit.result import AuditResult
from reconciler.verdicts import BENIGN, Advice, Verdict, advice_of, next_command


@dataclass(frozen=True, slots=True)
class AdvisedStep:
    """The advice for all findings of one verdict, with a command for the first of them."""

    verdict: Verdict
    advice: Advice
    command: str


def advised_steps(result: AuditResult, verdicts: Iterable[Verdict]) -> list[AdvisedStep]:
    """List a step for each of the verdicts that the audit found and that asks for action, in the given order."""
    sources = {source.cluster_id: source for source in result.metadata}
    found = []
    for verdict in verdicts:
        if verdict in BENIGN:
            continue
        for finding in result.most_urgent(1, (verdict,)).to_pylist():
            source = sources.get(finding["cluster_id"], sources.get(None))
            mode, location = (None, None) if source is None else (source.mode, source.location)
            found.append(AdvisedStep(verdict, advice_of(verdict, mode), next_command(verdict, finding, location)))
    return found
