"""``logstore diff``: tells what changed from one audit to another."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from reconciler.cli.frame import (
    Exit,
    Format,
    Page,
    check_output,
    destination,
    fit_address_space,
    of_this_machine,
    open_page,
    warn,
)
from reconciler.history import DIFF_VERSION, Difference, compare_results, describe_runs_to_come, open_result
from reconciler.text import NOTHING, Column, count, listed, size
from reconciler.verdicts import Severity, Verdict, location_of, severity, with_doubt

SHOWN_ON_TERMINAL = 50


def run(*, old: str, new: str, history: str | None, form: str, output: str | None, limit: int | None) -> Exit:
    """Tell what changed from one audit to another."""
    check_output(Format(form), output, ())
    fit_address_space()
    history, now_ms = of_this_machine(history), time.time_ns() // 1_000_000
    first, second = (open_result(of_this_machine(each) or each, history, now_ms) for each in (old, new))
    if history is not None and (left_out := describe_runs_to_come(history, now_ms)):
        warn(left_out)
    difference = compare_results(first, second)
    if difference.is_of_other_clusters:
        one, other = (listed(sorted(each)) for each in (difference.old_clusters, difference.new_clusters))
        warn(
            f"{difference.old} is of cluster {one}, and {difference.new} of cluster {other}: what the one has is gone, "
            "and what the other has is new"
        )
    if Format(form) is Format.JSON:
        _write_json(difference, output)
    else:
        with open_page(output) as opened:
            _show(opened, difference, SHOWN_ON_TERMINAL if limit is None and opened.is_terminal else limit)
    return Exit.CLEAN if difference.is_clean else Exit.FINDINGS


def _write_json(difference: Difference, output: str | None) -> None:
    import orjson

    from reconciler.text import write_array

    head = {
        "schema_version": DIFF_VERSION,
        "old": difference.old,
        "new": difference.new,
        "totals": difference.totals,
        "topics": difference.topics,
        "fleet": difference.fleet,
    }
    with destination(output) as out:
        out.write(orjson.dumps(head)[:-1] + b',"findings":')
        write_array([difference.findings], out)
        out.write(b"}\n")


def _show(opened: Page, difference: Difference, most: int | None) -> None:
    opened.line(f"from {difference.old} to {difference.new}", "bold")
    for change, totals in difference.totals.items():
        parts = (f"{count(number)} {verdict}" for verdict, number in totals.items())
        opened.line(f"{change}: {', '.join(parts) or 'nothing'}")
    topics = difference.topics
    opened.line(
        f"topics whose ID changed: {'not known' if topics is None else count(len(topics)) if topics else 'none'}"
    )
    _show_fleet(opened, difference, most)
    if difference.findings.num_rows:
        from reconciler.text import json_objects

        opened.line()
        shown = difference.findings.slice(0, most)
        columns = (
            Column("VERDICT"), Column("CHANGE"), Column("BROKER", right=True), Column("WAS", right=True),
            Column("IS", right=True), Column("WHERE", path=True), Column("EVIDENCE", prose=True),
        )  # fmt: skip
        colours = {Severity.CRITICAL: "red", Severity.ATTENTION: "yellow"}
        styles = {each.value: colours.get(severity(each), "") for each in Verdict}
        opened.table(columns, map(_cells, json_objects(shown)), styles)
        if shown.num_rows < difference.findings.num_rows:
            more = difference.findings.num_rows - shown.num_rows
            opened.line(f"… and {count(more, 'finding')} more: --limit N, or --format json")
    if topics:
        opened.line()
        ids = (Column("TOPIC", path=True), Column("ID WAS"), Column("ID IS"))
        opened.table(ids, ((each["topic"], each["old_topic_id"], each["new_topic_id"]) for each in topics[:most]), {})


def _show_fleet(opened: Page, difference: Difference, most: int | None) -> None:
    """Show what came and went of the fleet as a whole."""
    if not difference.fleet:
        opened.line(f"of the fleet as a whole: {'not known' if difference.fleet is None else 'no change'}")
        return
    changes = Counter(each["change"] for each in difference.fleet)
    parts = ", ".join(f"{count(number)} {change}" for change, number in changes.items())
    opened.line(f"of the fleet as a whole: {parts}")
    opened.line()
    columns = (Column("KIND"), Column("CHANGE"), Column("OF"), Column("WHAT", prose=True))
    rows = (
        (each["kind"], each["change"], each["subject"], with_doubt(each["detail"], each["doubt"]))
        for each in difference.fleet[:most]
    )
    opened.table(columns, rows, {each["kind"]: "yellow" for each in difference.fleet})
    if most is not None and len(difference.fleet) > most:
        more = len(difference.fleet) - most
        opened.line(f"… and {count(more, 'finding')} of the fleet more: --limit N, or --format json")


def _cells(finding: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        finding["verdict"],
        finding["change"],
        NOTHING if finding["broker"] is None else str(finding["broker"]),
        size(finding["old_disk_bytes"]),
        size(finding["new_disk_bytes"]),
        location_of(finding),
        finding["evidence"] or NOTHING,
    )
