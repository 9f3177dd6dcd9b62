"""An audit as a page for a person at night: totals, fleet findings, the most urgent findings, and the next steps.

This module decides the order and the wording; :class:`reconciler.cli.frame.Page` decides how tables look, and
:mod:`reconciler.verdicts` has the advice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.audit import AuditResult, BrokerCalls, advised_steps, by_urgency
from reconciler.cli.frame import Page
from reconciler.next_steps import Call
from reconciler.text import NOTHING, Column, age, count, json_objects, size
from reconciler.verdicts import BENIGN, URGENCY, Severity, Verdict, full_evidence, location_of, severity, with_doubt

SHOWN_ON_TERMINAL = 50
"""Number of findings shown on a terminal unless the user asks for more."""

STEPS_SHOWN = 5
"""Number of verdicts for which the next command is printed; nobody would read more."""

_STYLE_OF = {
    Severity.CRITICAL: "bold red",
    Severity.ATTENTION: "yellow",
    Severity.CALM: "dim",
    Severity.OK: "green",
}
_STYLES: Mapping[str, str] = {verdict.value: _STYLE_OF[severity(verdict)] for verdict in Verdict}

_ID_COLUMNS = (Column("ID ON DISK"), Column("ID IN METADATA"))
_COLUMNS: tuple[Column, ...] = (
    Column("VERDICT"), Column("BROKER", right=True), Column("WHERE", path=True), *_ID_COLUMNS,
    Column("SIZE", right=True), Column("AGE", right=True), Column("EVIDENCE", prose=True),
)  # fmt: skip


def show_audit(result: AuditResult, page: Page, verdicts: Sequence[Verdict], limit: int | None) -> None:
    """Write the page: the findings of some verdicts, and totals that always cover all.

    Without a limit it lists all of them in a pipe, and some on a terminal.
    """
    _totals(result, page)
    _fleet(result, page)
    total = sum(result.totals.get(verdict.value, 0) for verdict in verdicts)
    if limit is None and page.is_terminal:
        limit = SHOWN_ON_TERMINAL
    shown = total if limit is None else min(limit, total)
    if shown:
        _findings(result, page, verdicts, shown, total)


def next_lines(result: AuditResult, verdicts: Sequence[Verdict], call: Call, here: str | None = None) -> list[str]:
    """Say what the most urgent verdicts mean, with the next command for the first finding of each.

    Where several verdicts lead to one command, it is named once; where several commands are named, the last line names
    the one that says in which order. A command for log dirs of another host than this one comes with the host's name.

    Args:
        result: the audit.
        verdicts: what is shown of it.
        call: how the command was called.
        here: the name of this host; None: no host is named.
    """
    advised = advised_steps(result, verdicts, call)
    lines, named = [], dict[tuple[str, str], Verdict]()
    for step in advised[:STEPS_SHOWN]:
        place = _on(step.hosts, here)
        first = named.setdefault((place, step.command), step.verdict)
        then = step.command if first is step.verdict else f"the same as for {first}"
        lines.append(f"{step.verdict}: {step.advice.meaning} Next{place}: {then}")
    if len(advised) > STEPS_SHOWN:
        rest = ", ".join(step.verdict for step in advised[STEPS_SHOWN:])
        lines.append(f"--verdict and --report FOLDER say what is next for {rest}")
    only = BrokerCalls(result, call).only()
    if len(named) > 1 and only is not None:
        place = next((_on(broker.hosts, here) for broker in result.brokers if broker.node_id is not None), "")
        lines.append(f"in which order, and whether the broker starts{place}: {only.doctor().text}")
    return lines


def _on(hosts: Sequence[str], here: str | None) -> str:
    return "" if not hosts or here is None or here in hosts else f", on {' or '.join(hosts)}"


def _totals(result: AuditResult, page: Page) -> None:
    columns = [Column("VERDICT"), Column("COUNT", right=True), Column("SIZE", right=True)]
    rows = [
        [verdict.value, count(result.totals[verdict.value]), size(result.disk_bytes.get(verdict.value))]
        for verdict in URGENCY
        if verdict.value in result.totals
    ]
    if result.doubts:
        columns.insert(2, Column("IN DOUBT", right=True))
        for row in rows:
            row.insert(2, count(result.doubts[row[0]]) if row[0] in result.doubts else "")
    if not rows:
        page.line("Nothing was found at all: no replica, and nothing else.")
        return
    page.table(columns, rows, _STYLES)
    page.line()


def _fleet(result: AuditResult, page: Page) -> None:
    if not result.fleet:
        return
    columns = [Column("KIND"), Column("OF"), Column("WHAT", prose=True)]
    rows = [[each.kind, each.subject, with_doubt(each.detail, each.doubt)] for each in result.fleet]
    if len({each.cluster_id for each in result.fleet}) > 1:
        columns.insert(1, Column("CLUSTER"))
        for row, each in zip(rows, result.fleet, strict=True):
            row.insert(1, each.cluster_id or NOTHING)
    page.line("Of the fleet as a whole", "bold")
    page.table(columns, rows, {each.kind: "yellow" for each in result.fleet})
    page.line()


def _findings(result: AuditResult, page: Page, verdicts: Sequence[Verdict], shown: int, total: int) -> None:
    complete = shown == total
    title = count(total, "finding") + _others(result, verdicts)
    page.line(title if complete else f"The most urgent of {title}", "bold")
    tables = by_urgency(result, verdicts) if complete else [result.most_urgent(shown, verdicts)]
    rows = (_cells(finding, result.audited_ms) for table in tables for finding in json_objects(table))
    columns = _COLUMNS
    if not page.is_wide:
        # Where topic IDs matter, the evidence names them.
        columns = tuple(column for column in _COLUMNS if column not in _ID_COLUMNS)
        kept = [_COLUMNS.index(column) for column in columns]
        rows = (tuple(row[index] for index in kept) for row in rows)
    page.table(columns, rows, _STYLES)
    if not page.is_wide:
        page.line("A wider terminal shows the topic IDs beside each finding, and so does --format json.", "dim")
    if not complete:
        page.line(f"… and {count(total - shown, 'finding')} more: --limit N, another --format, or --report FOLDER")


def _others(result: AuditResult, verdicts: Sequence[Verdict]) -> str:
    """Say how many findings are not listed: where verdicts were chosen, there may be some to act on among them."""
    left = [verdict for verdict in URGENCY if verdict.value in result.totals and verdict not in (*verdicts, Verdict.OK)]
    if not left:
        return ""
    calm = all(verdict in BENIGN for verdict in left)
    what = "which ask nobody to act: --all lists them" if calm else "of other verdicts"
    return f"; {count(sum(result.totals[verdict.value] for verdict in left))} more, {what}"


def _cells(finding: Mapping[str, Any], now_ms: int) -> tuple[str, ...]:
    modified = finding["modified_ms"]
    return (
        finding["verdict"],
        NOTHING if finding["broker"] is None else str(finding["broker"]),
        location_of(finding),
        finding["disk_topic_id"] or NOTHING,
        finding["metadata_topic_id"] or NOTHING,
        size(finding["disk_bytes"]),
        age(None if modified is None else now_ms - modified),
        full_evidence(finding),
    )
