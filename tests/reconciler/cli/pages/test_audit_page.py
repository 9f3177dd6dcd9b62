"""The page of an audit: totals, fleet findings, findings, and next steps."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.audit import FINDING_SCHEMA, AuditResult
from reconciler.audit.fleet import FleetFinding
from reconciler.audit.result import BrokerSummary
from reconciler.cli.frame.output import PlainPage
from reconciler.cli.pages import audit_page as audit_table
from reconciler.cli.pages import next_lines, show_audit
from reconciler.next_steps import Call
from reconciler.verdicts import BENIGN, URGENCY, Verdict

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def audited(folder: Path, *verdicts: str, fleet: tuple[FleetFinding, ...] = ()) -> AuditResult:
    plain = dict.fromkeys(FINDING_SCHEMA.names) | {"broker": 3, "log_dir": "/disks/1", "topic": "t", "evidence": "seen"}
    rows = [
        plain
        | {
            "verdict": verdict,
            "name": f"t-{number}",
            "partition": number,
            "bytes": 9000,
            "disk_bytes": 2000,
            "modified_ms": NOW_MS - 3 * DAY_MS,
        }
        for number, verdict in enumerate(verdicts)
    ]
    path = folder / "findings.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=FINDING_SCHEMA), path)
    totals = {verdict: verdicts.count(verdict) for verdict in verdicts}
    return AuditResult(
        "embedded", NOW_MS, (), (), totals, {name: 9000 * number for name, number in totals.items()},
        {name: 2000 * number for name, number in totals.items()}, fleet, str(path),
    )  # fmt: skip


def shown(result: AuditResult, limit: int | None = None, terminal: bool = False, verdicts=URGENCY) -> list[str]:
    out = io.BytesIO()
    page = PlainPage(out)
    page.is_terminal = terminal
    show_audit(result, page, verdicts, limit)
    return out.getvalue().decode().splitlines()


def test_totals_come_first_the_most_urgent_on_top(tmp_path: Path) -> None:
    lines = shown(audited(tmp_path, "STRAY", "STALE_ID", "STRAY"))
    assert [line.split() for line in lines[:3]] == [
        ["VERDICT", "COUNT", "SIZE"],
        ["STALE_ID", "1", "2.0", "kB"],
        ["STRAY", "2", "4.0", "kB"],
    ]


def test_a_finding_is_reported_with_its_place_size_age_and_evidence(tmp_path: Path) -> None:
    line = shown(audited(tmp_path, "STALE_ID"))[-1]
    assert line.split() == ["STALE_ID", "3", "/disks/1/t-0", "–", "–", "2.0", "kB", "3", "d", "seen"]


def test_a_narrow_terminal_does_without_the_topic_ids(tmp_path: Path) -> None:
    out = io.BytesIO()
    page = PlainPage(out)
    page.is_wide = False
    show_audit(audited(tmp_path, "STALE_ID"), page, URGENCY, None)
    *_, line, said = out.getvalue().decode().splitlines()
    assert line.split() == ["STALE_ID", "3", "/disks/1/t-0", "2.0", "kB", "3", "d", "seen"]
    assert said == "A wider terminal shows the topic IDs beside each finding, and so does --format json."


def test_fleet_findings_stand_before_those_of_replicas(tmp_path: Path) -> None:
    fleet = (
        FleetFinding("ONLY_KNOWN_COPY", "c1", "t-0", "nowhere else"),
        FleetFinding("OTHER_CLUSTER", "c2", "c2", "x"),
    )
    lines = shown(audited(tmp_path, "STRAY", fleet=fleet))
    start = lines.index("Of the fleet as a whole")
    assert lines[start + 2].split() == ["ONLY_KNOWN_COPY", "c1", "t-0", "nowhere", "else"]
    assert start < lines.index("1 finding")


def test_the_cluster_is_reported_only_where_there_are_several(tmp_path: Path) -> None:
    lines = shown(audited(tmp_path, fleet=(FleetFinding("ONLY_KNOWN_COPY", "c1", "t-0", "nowhere else"),)))
    assert not any("c1" in line for line in lines)


def test_a_limit_says_how_many_it_leaves_out(tmp_path: Path) -> None:
    lines = shown(audited(tmp_path, *["STRAY"] * 5), limit=2)
    assert "The most urgent of 5 findings" in lines
    assert lines[-1].startswith("… and 3 findings more")
    assert sum("/disks/1" in line for line in lines) == 2


def test_a_terminal_has_a_limit_of_its_own_and_a_pipe_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_table, "SHOWN_ON_TERMINAL", 2)
    result = audited(tmp_path, *["STRAY"] * 5)
    assert sum("/disks/1" in line for line in shown(result, terminal=True)) == 2
    assert sum("/disks/1" in line for line in shown(result)) == 5


def test_a_limit_of_zero_leaves_the_totals(tmp_path: Path) -> None:
    assert not any("/disks/1" in line for line in shown(audited(tmp_path, "STRAY"), limit=0))


def test_an_audit_of_nothing_says_so(tmp_path: Path) -> None:
    assert shown(audited(tmp_path)) == ["Nothing was found at all: no replica, and nothing else."]


def test_the_next_steps_are_few_the_most_urgent_first_and_never_of_what_is_benign(tmp_path: Path) -> None:
    result = audited(tmp_path, "STRAY", "STALE_ID", "IN_FLIGHT", "DAMAGED", "NO_ID", "MISSING", "LEFTOVER")
    steps = next_lines(result, URGENCY, Call(metadata=("/meta",)))
    assert [step.split(":")[0] for step in steps[:5]] == ["DAMAGED", "STALE_ID", "NO_ID", "MISSING", "STRAY"]
    assert steps[5] == "--verdict and --report FOLDER say what is next for LEFTOVER"
    assert steps[0].endswith("Next: logstore repair /disks/1 --metadata /meta -o repair.json")
    assert steps[1].endswith("Next: logstore plan /disks/1 --metadata /meta -o plan.json")
    assert steps[2].endswith("Next: the same as for DAMAGED")


def test_a_step_for_the_disks_of_another_host_names_the_host(tmp_path: Path) -> None:
    result = audited(tmp_path, "STALE_ID", "MISSING")
    disks = ({"log_dir": "/disks/1", "state": "ok"},)
    result = replace(result, brokers=tuple(BrokerSummary(None, node, (f"h{node}",), disks, 1, 0, 0) for node in (3, 4)))
    for here, told in (("audits", "Next, on h3: logstore "), ("h3", "Next: logstore "), (None, "Next: logstore ")):
        steps = next_lines(result, URGENCY, Call(metadata=("/meta",)), here)
        assert [told in step for step in steps] == [True, True], steps
    order = next_lines(replace(result, brokers=result.brokers[:1]), URGENCY, Call(), "audits")[-1]
    assert "whether the broker starts, on h3: logstore doctor /disks/1" in order


def test_a_step_on_another_host_is_not_the_same_though_the_words_are(tmp_path: Path) -> None:
    result = audited(tmp_path, "STALE_ID", "NOT_ASSIGNED", "UNKNOWN_TOPIC")
    rows = pq.read_table(result.findings_path).to_pylist()
    rows = [row | {"host": host} for row, host in zip(rows, ("one", "two", "one"), strict=True)]
    pq.write_table(pa.Table.from_pylist(rows, schema=FINDING_SCHEMA), result.findings_path)
    plan = "logstore plan /disks/1 --metadata /meta -o plan.json"
    ends = [step.partition(" Next")[2] for step in next_lines(result, URGENCY, Call(metadata=("/meta",)), "audits")]
    assert ends == [f", on one: {plan}", f", on two: {plan}", ", on one: the same as for STALE_ID"]


def test_the_steps_follow_the_verdicts_that_are_shown(tmp_path: Path) -> None:
    result = audited(tmp_path, "STRAY", "STALE_ID")
    assert [step.split(":")[0] for step in next_lines(result, [Verdict.STRAY], Call())] == ["STRAY"]


def test_what_is_not_listed_asks_nobody_to_act_only_where_that_is_so(tmp_path: Path) -> None:
    result = audited(tmp_path, "MISSING", "STAGED", "STAGED", "OK")
    to_act = [verdict for verdict in URGENCY if verdict not in BENIGN]
    assert "1 finding; 2 more, which ask nobody to act: --all lists them" in shown(result, verdicts=to_act)
    assert "2 findings; 1 more, of other verdicts" in shown(result, verdicts=[Verdict.STAGED])
    assert "3 findings" in shown(result, verdicts=[Verdict.MISSING, Verdict.STAGED])
