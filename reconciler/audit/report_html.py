"""An audit as one self-contained HTML page: no script, no link, light and dark, and printable.

This module decides the content of the page and its order; ``report.html.jinja`` decides how it looks. Nothing on the
page grows with the number of replicas: it has totals, and a bounded number of brokers and findings, most urgent first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

import jinja2
import pyarrow as pa
import pyarrow.dataset as ds

from reconciler.audit.findings import FINDING_SCHEMA
from reconciler.audit.fleet import FleetKey
from reconciler.audit.next_steps import advised_steps
from reconciler.audit.result import AuditResult, BrokerSummary
from reconciler.next_steps import Call
from reconciler.text import NOTHING, age, count, json_objects, moment, size, visible
from reconciler.verdicts import (
    BENIGN,
    FLEET_ADVICE,
    URGENCY,
    Severity,
    Verdict,
    full_evidence,
    location_of,
    severity,
    severity_of,
    with_doubt,
)

FINDINGS_SHOWN = 500
FLEET_SHOWN = 200
BROKERS_SHOWN = 200

_WIDTH = 1000
"""Width of a chart, in the units of its view box."""

_TO_ACT_ON = tuple(verdict for verdict in URGENCY if verdict not in BENIGN)

_Broker = tuple[str | None, int | None]


class EarlierRun(NamedTuple):
    """The totals of an earlier audit, for the trend."""

    run_id: str
    audited_ms: int | None
    """None: nothing was found at all, not even what is OK."""
    totals: Mapping[str, int]
    """Rows by verdict."""
    disk_bytes: Mapping[str, int]
    """Space by verdict; empty where sizes were not added up."""
    fleet: Collection[FleetKey] | None
    """The findings of the fleet as a whole; None: not known, because an older release wrote the run."""


def render_report(result: AuditResult, call: Call | None = None, earlier: Sequence[EarlierRun] = ()) -> str:
    """Render the page.

    Args:
        result: the audit.
        call: how the command was called, for the commands that come next; None: not known.
        earlier: earlier audits of the same fleet, the newest first.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["visible"] = visible
    template = environment.from_string(resources.files(__package__).joinpath("report.html.jinja").read_text("utf-8"))
    total = sum(result.totals.get(verdict.value, 0) for verdict in _TO_ACT_ON)
    steps = advised_steps(result, _TO_ACT_ON, call)
    brokers = _brokers(result)
    by_size = any(weight for name, weight in result.disk_bytes.items() if name != Verdict.OK)
    return template.render(
        result=result,
        title=_title(result),
        headline=_headline(result, total),
        several_clusters=len({broker.cluster_id for broker in result.brokers}) > 1,
        totals=_totals(result, by_size),
        by_size=by_size,
        trend=_trend(result, earlier),
        chart_without_ok=Verdict.OK in result.totals and len(result.totals) > 1,
        findings=_groups(
            [_finding(each, result.audited_ms) for each in json_objects(result.most_urgent(FINDINGS_SHOWN, _TO_ACT_ON))]
        ),
        explained={step.verdict for step in steps},
        more=max(0, total - FINDINGS_SHOWN),
        fleet_limit=FLEET_SHOWN,
        fleet_advice=FLEET_ADVICE,
        with_doubt=with_doubt,
        brokers=brokers[:BROKERS_SHOWN],
        more_brokers=max(0, len(brokers) - BROKERS_SHOWN),
        steps=steps,
        age=age,
        count=count,
        severity=severity,
        moment=moment,
        size=size,
    )


def _title(result: AuditResult) -> str:
    clusters = sorted({broker.cluster_id for broker in result.brokers if broker.cluster_id})
    if len(clusters) == 1:
        return f"cluster {visible(clusters[0])}"
    return count(len(clusters), "cluster") if clusters else "log dirs without identity"


def _headline(result: AuditResult, total: int) -> Mapping[str, str]:
    if result.is_clean:
        return {"severity": Severity.OK, "text": "Clean: nobody has to act on anything that was found."}
    worst = next((verdict for verdict in _TO_ACT_ON if result.totals.get(verdict.value)), None)
    fleet = f"{count(len(result.fleet), 'finding')} of the fleet as a whole"
    if worst is None:
        return {"severity": Severity.ATTENTION, "text": f"No finding of a replica, but {fleet}."}
    text = f"{count(total, 'finding')} to act on, first of all {worst}"
    return {"severity": severity(worst), "text": f"{text}; {fleet}." if result.fleet else f"{text}."}


def _totals(result: AuditResult, by_size: bool) -> list[Mapping[str, Any]]:
    """List a row for each verdict found; OK has no bar beside others, because it would dwarf the bars that matter."""
    weights = dict(result.disk_bytes if by_size else result.totals)
    if len(weights) > 1:
        weights.pop(Verdict.OK.value, None)
    most = max(weights.values(), default=0) or 1
    return [
        {
            "verdict": verdict.value,
            "severity": severity(verdict),
            "count": result.totals[verdict.value],
            "disk_bytes": result.disk_bytes.get(verdict.value),
            "doubt": result.doubts.get(verdict.value, 0),
            "width": round(weights.get(verdict.value, 0) * _WIDTH / most),
        }
        for verdict in URGENCY
        if verdict.value in result.totals
    ]


def _trend(result: AuditResult, earlier: Sequence[EarlierRun]) -> Mapping[str, Any]:
    """Set this run above the earlier ones: findings by verdict, and the space of those to act on."""
    if not earlier:
        return {}
    here = frozenset(finding.key for finding in result.fleet)
    runs = [EarlierRun("this run", result.audited_ms, result.totals, result.disk_bytes, here), *earlier]
    verdicts = [each for each in _TO_ACT_ON if any(run.totals.get(each.value) for run in runs)]
    rows = [
        {
            "run": run.run_id,
            "audited_ms": run.audited_ms,
            "counts": [run.totals.get(each.value, 0) for each in verdicts],
            "disk_bytes": sum(run.disk_bytes.get(each.value, 0) for each in verdicts) if run.disk_bytes else None,
            "fleet": _fleet_trend(run.fleet, before.fleet if before else None),
        }
        for run, before in zip_longest(runs, runs[1:])
    ]
    return {"verdicts": [{"name": each.value, "severity": severity(each)} for each in verdicts], "rows": rows}


def _fleet_trend(found: Collection[FleetKey] | None, before: Collection[FleetKey] | None) -> str:
    """Say how many findings of the fleet a run has, and how many came and went since the run before it."""
    if found is None:
        return NOTHING
    if before is None:
        return count(len(found))
    came, went = (len(set(one) - set(other)) for one, other in ((found, before), (before, found)))
    changes = ", ".join(f"{count(number)} {what}" for number, what in ((came, "new"), (went, "gone")) if number)
    return f"{count(len(found))} ({changes})" if changes else count(len(found))


def _groups(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Group findings of one verdict on one broker; they are sorted by both."""
    groups: list[Mapping[str, Any]] = []
    for (verdict, broker), several in groupby(findings, key=lambda each: (each["verdict"], each["broker"])):
        of_group = list(several)
        shown = {"verdict": verdict, "broker": broker, "severity": severity(Verdict(verdict)), "findings": of_group}
        groups.append(shown)
    return groups


def _finding(finding: Mapping[str, Any], now_ms: int) -> Mapping[str, Any]:
    modified = finding["modified_ms"]
    return {
        **finding,
        "severity": severity_of(finding),
        "where": location_of(finding),
        "age": age(None if modified is None else now_ms - modified),
        "evidence": full_evidence(finding),
    }


def _brokers(result: AuditResult) -> list[Mapping[str, Any]]:
    """List every broker with its bars, the brokers with the most space in findings first."""
    found = _bytes_found(result.findings_path)
    most = max((broker.disk_bytes for broker in result.brokers), default=0) or 1
    rows = [_broker(broker, found.get((broker.cluster_id, broker.node_id), {}), most) for broker in result.brokers]
    return sorted(rows, key=lambda row: -row["found"])


def _broker(broker: BrokerSummary, found: Mapping[Severity, int], most: int) -> Mapping[str, Any]:
    parts = [(kind.value, found.get(kind, 0)) for kind in (Severity.CRITICAL, Severity.ATTENTION)]
    parts.append(("rest", broker.disk_bytes - sum(weight for _, weight in parts)))
    bars, x = [], 0
    for kind, weight in parts:
        width = round(max(0, weight) * _WIDTH / most)
        bars.append({"kind": kind, "x": x, "width": width})
        x += width
    return {
        "cluster_id": broker.cluster_id,
        "node": broker.node_id,
        "role": broker.role,
        "log_dirs": broker.log_dirs,
        "replicas": broker.replicas,
        "disk_bytes": broker.disk_bytes,
        "found": sum(weight for _, weight in parts[:-1]),
        "bars": bars,
    }


def _bytes_found(findings_path: str) -> dict[_Broker, dict[Severity, int]]:
    """Add up the space of each broker's findings by severity, batch by batch."""
    found: dict[_Broker, dict[Severity, int]] = {}
    keys = ["cluster_id", "broker", "verdict"]
    dataset = ds.dataset(findings_path, schema=FINDING_SCHEMA, format="parquet")
    for batch in dataset.to_batches(columns=[*keys, "disk_bytes"]):
        added = pa.Table.from_batches([batch]).group_by(keys).aggregate([("disk_bytes", "sum")])
        for row in added.to_pylist():
            broker = found.setdefault((row["cluster_id"], row["broker"]), {})
            kind = severity(Verdict(row["verdict"]))
            broker[kind] = broker.get(kind, 0) + (row["disk_bytes_sum"] or 0)
    return found
