"""The findings as the page's table has them: columns for the script that searches and sorts, and the first as rows.

A text that many findings share, such as a path or a command, stands once in a column, so that 50,000 findings take a
few megabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import orjson
from markupsafe import Markup

from reconciler.audit.next_steps import BrokerCalls
from reconciler.audit.report.charts import BrokerNames, in_order
from reconciler.audit.report.tallies import TO_ACT_ON
from reconciler.audit.result import AuditResult
from reconciler.next_steps import Call
from reconciler.text import NOTHING, age, json_objects, size, visible
from reconciler.verdicts import Verdict, full_evidence, location_of, severity, severity_of

SEARCHED = 50_000
"""Findings that the page carries, the most urgent first."""

FINDINGS_SHOWN = 500
"""Findings that stand in the page as rows, for readers without JavaScript."""


class ShownFinding(NamedTuple):
    """One finding as text, and the numbers by which it is sorted; every text prints."""

    verdict: str
    severity: str
    broker: str
    where: str
    disk_topic_id: str
    metadata_topic_id: str
    size: str
    age: str
    evidence: str
    next: str
    disk_bytes: int | None
    modified_ms: int | None


_TEXTS = ShownFinding._fields[:-2]


def shown_findings(result: AuditResult, names: BrokerNames, call: Call | None) -> list[ShownFinding]:
    """Return the most urgent findings that ask for action, at most :data:`SEARCHED`."""
    calls = BrokerCalls(result, call)
    found = result.most_urgent(SEARCHED, TO_ACT_ON)
    return list(_shown(json_objects(found), names, calls, result.audited_ms))


def _shown(
    findings: Iterable[Mapping[str, Any]], names: BrokerNames, calls: BrokerCalls, now_ms: int
) -> Iterator[ShownFinding]:
    for finding in findings:
        modified = finding["modified_ms"]
        step = calls.step_of(finding)
        yield ShownFinding(
            finding["verdict"],
            severity_of(finding).value,
            names.short((finding["cluster_id"], finding["broker"])),
            visible(location_of(finding)),
            visible(finding["disk_topic_id"] or NOTHING),
            visible(finding["metadata_topic_id"] or NOTHING),
            size(finding["disk_bytes"]),
            age(None if modified is None else now_ms - modified),
            visible(full_evidence(finding)),
            visible((None if step is None else step.text) or ""),
            finding["disk_bytes"],
            modified,
        )


def as_script_data(findings: Sequence[ShownFinding], brokers: Iterable[tuple[str | None, int | None]],
                   names: BrokerNames) -> Markup:  # fmt: skip
    """Write the findings as JSON that stands in a script element: no text in it can end the element.

    ``{"column": {"values": [text, …], "rows": [index of a value, …]}, …, "disk_bytes": [number, …], …}``. The values
    of ``broker`` are in the order of brokers, those of the other columns in the order of their first finding.
    """
    document: dict[str, Any] = {}
    for number, column in enumerate(_TEXTS):
        first = [names.short(broker) for broker in sorted(brokers, key=in_order)] if column == "broker" else []
        places = {text: place for place, text in enumerate(dict.fromkeys(first))}
        rows = [places.setdefault(str(each[number]), len(places)) for each in findings]
        document[column] = {"values": list(places), "rows": rows}
    document["disk_bytes"] = [each.disk_bytes for each in findings]
    document["modified_ms"] = [each.modified_ms for each in findings]
    text = orjson.dumps(document).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def in_groups(findings: Sequence[ShownFinding]) -> list[Mapping[str, Any]]:
    """Group findings of one verdict on one broker; they are sorted by both."""
    groups: list[Mapping[str, Any]] = []
    for (verdict, broker), several in groupby(findings, key=lambda each: (each.verdict, each.broker)):
        shown = {"verdict": verdict, "broker": broker, "findings": list(several)}
        groups.append(shown | {"severity": _of_group(Verdict(verdict), shown["findings"])})
    return groups


def _of_group(verdict: Verdict, findings: Sequence[ShownFinding]) -> str:
    kinds = {each.severity for each in findings}
    return kinds.pop() if len(kinds) == 1 else severity(verdict).value
