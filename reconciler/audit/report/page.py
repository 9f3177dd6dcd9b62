"""An audit as one self-contained HTML page: no link, no request, light and dark, and printable.

This module decides the content of the page and its order; ``report.html.jinja``, ``report.css`` and ``report.js``
decide how it looks and how its findings are searched. Nothing but the table of findings grows with the number of
replicas, and that up to a limit: the rest is totals, and a bounded number of brokers and topics, the worst first.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from itertools import zip_longest
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from reconciler.audit.fleet import FleetKey
from reconciler.audit.next_steps import AdvisedStep, BrokerCalls, advised_steps, first_step
from reconciler.audit.report.charts import (
    BROKERS_SHOWN,
    WIDTH,
    WORST_FIRST,
    BrokerNames,
    heat_map,
    in_order,
    reclaimable,
    worst,
)
from reconciler.audit.report.findings_table import FINDINGS_SHOWN, as_script_data, in_groups, shown_findings
from reconciler.audit.report.tallies import TO_ACT_ON, Broker, Cell, Tallies, tally
from reconciler.audit.result import AuditResult, BrokerSummary
from reconciler.next_steps import Call, step_of_broker
from reconciler.text import NOTHING, age, count, listed, moment, size, visible
from reconciler.verdicts import FLEET_ADVICE, URGENCY, Severity, Verdict, severity, with_doubt

FLEET_SHOWN = 200
HOLDERS_NAMED = 20
"""Brokers that are named as holders of a topic ID."""


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
    environment.globals.update(
        age=age, count=count, moment=moment, size=size, with_doubt=with_doubt,
        fleet_advice=FLEET_ADVICE, fleet_limit=FLEET_SHOWN,
    )  # fmt: skip
    return environment.from_string(_part("report.html.jinja")).render(_content(result, call, earlier))


def _content(result: AuditResult, call: Call | None, earlier: Sequence[EarlierRun]) -> dict[str, Any]:
    sums = tally(result)
    several_clusters = len({broker.cluster_id for broker in result.brokers}) > 1
    names = BrokerNames((each.cluster_id, each.node_id) for each in result.brokers)
    steps = _steps(result, sums.cells, call)
    findings = shown_findings(result, names, call)
    total = sum(result.totals.get(verdict.value, 0) for verdict in TO_ACT_ON)
    brokers = _brokers(result, sums.cells, names, call)
    by_size = any(weight for name, weight in result.disk_bytes.items() if name != Verdict.OK)
    style, script = _part("report.css"), _part("report.js")
    return {
        "result": result,
        "title": _title(result),
        "style": Markup(style),
        "script": Markup(script),
        "policy": f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'",
        "headline": _headline(result, total, sums.cells, steps, names),
        "first": first_step(result, steps, call),
        "several_clusters": several_clusters,
        "reclaimable": reclaimable(sums.cells, names),
        "heat": heat_map(sums.cells, names),
        "topics": _topics(sums),
        "held": _held(result, sums),
        "totals": _totals(result, sums.cells, by_size),
        "by_size": by_size,
        "trend": _trend(result, earlier, sums.cells),
        "chart_without_ok": Verdict.OK in result.totals and len(result.totals) > 1,
        "groups": in_groups(findings[:FINDINGS_SHOWN]),
        "data": as_script_data(findings, {(each.cluster_id, each.node_id) for each in result.brokers}, names),
        "explained": {step.verdict for step in steps},
        "carried": len(findings),
        "as_rows": min(FINDINGS_SHOWN, len(findings)),
        "more": total - len(findings),
        "brokers": brokers[:BROKERS_SHOWN],
        "more_brokers": max(0, len(brokers) - BROKERS_SHOWN),
        "steps": [{"severity": _shade(sums.cells, each.verdict), "advised": each} for each in steps],
    }


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    """Name a style or a script in the policy of the page, so that a browser runs no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _title(result: AuditResult) -> str:
    clusters = sorted({broker.cluster_id for broker in result.brokers if broker.cluster_id})
    if len(clusters) == 1:
        return f"cluster {visible(clusters[0])}"
    return count(len(clusters), "cluster") if clusters else "log dirs without identity"


def _of(cells: Sequence[Cell], verdict: Verdict) -> list[Cell]:
    return [cell for cell in cells if cell.verdict is verdict]


def _shade(cells: Sequence[Cell], verdict: Verdict) -> Severity:
    """Return how urgent a verdict is by its gravest finding; without any, by itself."""
    found = _of(cells, verdict)
    return worst(found) if found else severity(verdict)


def _steps(result: AuditResult, cells: Sequence[Cell], call: Call | None) -> list[AdvisedStep]:
    """List the steps by the gravest finding of each verdict: what a broker ignores does not come first."""
    graver = sorted(TO_ACT_ON, key=lambda verdict: WORST_FIRST.index(worst(_of(cells, verdict))))
    return advised_steps(result, graver, call)


def _headline(
    result: AuditResult, total: int, cells: Sequence[Cell], steps: Sequence[AdvisedStep], names: BrokerNames
) -> Mapping[str, str]:
    """Say in one sentence what matters: how many findings, how many of them are urgent, and which comes first."""
    fleet = f"{count(len(result.fleet), 'finding')} of the fleet as a whole"
    if result.is_clean:
        return {"severity": Severity.OK, "text": "Clean: nobody has to act on anything that was found.", "means": ""}
    if not steps:
        return {"severity": Severity.ATTENTION, "text": f"No finding of a replica, but {fleet}.", "means": ""}
    first, meaning = steps[0].verdict, steps[0].advice.meaning
    gravest = worst(_of(cells, first))
    urgent = sum(cell.rows for cell in cells if cell.severity is Severity.CRITICAL)
    brokers = sorted({cell.broker for cell in _of(cells, first) if cell.severity is gravest}, key=in_order)
    parts = [f"{count(total, 'urgent finding' if urgent == total else 'finding')} to act on"]
    if 0 < urgent < total:
        parts.append(f"{count(urgent)} of them urgent")
    named = [names.long(each) for each in brokers if each[1] is not None]
    nameless = ["a log dir of no broker"] if len(named) < len(brokers) else []
    parts.append(f"first of all {first} on {listed([*named, *nameless], 3)}")
    text = ", ".join(parts) + (f"; {fleet}." if result.fleet else ".")
    return {"severity": gravest, "text": text, "means": meaning}


def _topics(sums: Tallies) -> list[Mapping[str, Any]]:
    return [
        {
            "topic": each.topic,
            "cluster": each.cluster_id,
            "brokers": listed([str(node) for node in each.brokers], HOLDERS_NAMED),
            "verdicts": [
                {"name": verdict.value, "severity": severity(verdict), "rows": count(rows)}
                for verdict, rows in each.verdicts.items()
            ],
            "size": size(each.disk_bytes),
        }
        for each in sums.topics
    ]


def _held(result: AuditResult, sums: Tallies) -> list[Mapping[str, Any]]:
    """List the topics under several IDs with who holds each: by name where that is known, else as a range."""
    topics: list[Mapping[str, Any]] = []
    for finding in result.fleet[:FLEET_SHOWN]:
        held = []
        for each in finding.held:
            found, brokers = sums.holders.get((finding.cluster_id, finding.subject, each.topic_id), (0, ()))
            first, last = each.first_broker, each.last_broker
            nodes = each.brokers or (brokers if found == each.replicas else ())
            if nodes:
                who = listed([str(node) for node in nodes if node >= 0], HOLDERS_NAMED) or NOTHING
            else:
                who = f"{first} to {last}" if first < last else NOTHING if first < 0 else str(first)
            held.append({"topic_id": each.topic_id, "known": each.known, "replicas": each.replicas, "who": who})
        if held:
            topics.append({"topic": finding.subject, "cluster": finding.cluster_id, "ids": held})
    return topics


def _totals(result: AuditResult, cells: Sequence[Cell], by_size: bool) -> list[Mapping[str, Any]]:
    """List a row for each verdict found; OK has no bar beside others, because it would dwarf the bars that matter."""
    weights = dict(result.disk_bytes if by_size else result.totals)
    if len(weights) > 1:
        weights.pop(Verdict.OK.value, None)
    most = max(weights.values(), default=0) or 1
    return [
        {
            "verdict": verdict.value,
            "severity": _shade(cells, verdict),
            "count": result.totals[verdict.value],
            "disk_bytes": result.disk_bytes.get(verdict.value),
            "doubt": result.doubts.get(verdict.value, 0),
            "width": round(weights.get(verdict.value, 0) * WIDTH / most),
        }
        for verdict in URGENCY
        if verdict.value in result.totals
    ]


def _trend(result: AuditResult, earlier: Sequence[EarlierRun], cells: Sequence[Cell]) -> Mapping[str, Any]:
    """Set this run above the earlier ones: findings by verdict, and the space of those to act on."""
    if not earlier:
        return {}
    here = frozenset(finding.key for finding in result.fleet)
    runs = [EarlierRun("this run", result.audited_ms, result.totals, result.disk_bytes, here), *earlier]
    verdicts = [each for each in TO_ACT_ON if any(run.totals.get(each.value) for run in runs)]
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
    kinds = [_shade(cells, each) for each in verdicts]
    return {"verdicts": [{"name": each, "severity": kind} for each, kind in zip(verdicts, kinds, strict=True)],
            "rows": rows}  # fmt: skip


def _fleet_trend(found: Collection[FleetKey] | None, before: Collection[FleetKey] | None) -> str:
    """Say how many findings of the fleet a run has, and how many came and went since the run before it."""
    if found is None:
        return NOTHING
    if before is None:
        return count(len(found))
    came, went = (len(set(one) - set(other)) for one, other in ((found, before), (before, found)))
    changes = ", ".join(f"{count(number)} {what}" for number, what in ((came, "new"), (went, "gone")) if number)
    return f"{count(len(found))} ({changes})" if changes else count(len(found))


def _brokers(
    result: AuditResult, cells: Sequence[Cell], names: BrokerNames, call: Call | None
) -> list[Mapping[str, Any]]:
    """List every broker with its bars, the brokers with the most space in findings first."""
    found: dict[Broker, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.broker, []).append(cell)
    calls = BrokerCalls(result, call)
    most = max((broker.disk_bytes for broker in result.brokers), default=0) or 1
    rows = [
        _broker(broker, found.get((broker.cluster_id, broker.node_id), ()), names, calls, most)
        for broker in result.brokers
    ]
    return sorted(rows, key=lambda row: (-row["found"], WORST_FIRST.index(row["severity"])))


def _broker(
    broker: BrokerSummary, cells: Sequence[Cell], names: BrokerNames, calls: BrokerCalls, most: int
) -> Mapping[str, Any]:
    parts = [
        (kind.value, sum(cell.disk_bytes for cell in cells if cell.severity is kind))
        for kind in (Severity.CRITICAL, Severity.ATTENTION)
    ]
    parts.append(("rest", broker.disk_bytes - sum(weight for _, weight in parts)))
    bars, x = [], 0
    for kind, weight in parts:
        width = round(max(0, weight) * WIDTH / most)
        bars.append({"kind": kind, "x": x, "width": width})
        x += width
    key: Broker = (broker.cluster_id, broker.node_id)
    asks = any(cell.verdict in TO_ACT_ON for cell in cells) and broker.node_id is not None
    finding = {"cluster_id": broker.cluster_id, "broker": broker.node_id, "log_dir": None}
    return {
        "name": names.long(key),
        "node": broker.node_id,
        "cluster_id": broker.cluster_id,
        "role": broker.role,
        "severity": worst(cells),
        "log_dirs": broker.log_dirs,
        "replicas": broker.replicas,
        "disk_bytes": broker.disk_bytes,
        "found": sum(weight for _, weight in parts[:-1]),
        "step": step_of_broker(calls.of(finding)) if asks else None,
        "bars": bars,
    }
