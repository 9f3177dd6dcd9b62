"""The charts of the page: what can be reclaimed and where, and how hot each broker is."""

from __future__ import annotations

import pytest

from reconciler.audit.report import charts
from reconciler.audit.report.charts import BrokerNames, heat_map, reclaimable
from reconciler.audit.report.tallies import Cell
from reconciler.verdicts import Severity, Verdict, severity

NAMES = BrokerNames([])


def cell(node: int | None, verdict: Verdict, rows: int = 1, disk_bytes: int = 0, reclaim: bool = True) -> Cell:
    return Cell(("c1", node), verdict, severity(verdict), reclaim, rows, disk_bytes)


def test_a_bar_has_a_part_for_each_verdict_and_the_longest_fills_the_chart() -> None:
    cells = [
        cell(1, Verdict.STRAY, disk_bytes=250),
        cell(2, Verdict.STRAY, disk_bytes=250),
        cell(2, Verdict.STALE_ID, disk_bytes=750),
        cell(3, Verdict.DAMAGED, disk_bytes=9000, reclaim=False),
    ]
    chart = reclaimable(cells, NAMES)
    assert (chart["total"], chart["brokers"], chart["rest"]) == ("1.2 kB", 2, {})
    first, second = chart["bars"]
    assert first["says"] == "broker 2: STALE_ID 750 B, STRAY 250 B"
    assert [(part["x"], part["width"]) for part in first["parts"]] == [(0, 750), (750, 250)]
    assert [(part["x"], part["width"]) for part in second["parts"]] == [(0, 250)]
    assert [each["verdict"] for each in chart["key"]] == ["STALE_ID", "STRAY"]


def test_more_brokers_than_bars_share_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "BARS_SHOWN", 2)
    chart = reclaimable([cell(node, Verdict.STRAY, disk_bytes=node * 10) for node in range(1, 6)], NAMES)
    assert [bar["name"] for bar in chart["bars"]] == ["broker 5", "broker 4"]
    assert chart["rest"] == {"number": 3, "size": "60 B"}


def test_without_space_to_reclaim_there_is_no_chart() -> None:
    assert reclaimable([cell(1, Verdict.MISSING, reclaim=False), cell(1, Verdict.STRAY)], NAMES) == {}


def test_the_heat_of_a_cell_grows_with_its_findings_and_its_colour_is_the_gravest() -> None:
    ignored = Cell(("c1", 1), Verdict.FOREIGN, Severity.CALM, False, 3, 0)
    stopping = Cell(("c1", 2), Verdict.FOREIGN, Severity.CRITICAL, False, 1, 0)
    heat = heat_map([ignored, stopping, ignored._replace(broker=("c1", 2)), cell(2, Verdict.STRAY, 4000)], NAMES)
    assert [(each["name"], each["severity"], each["rows"]) for each in heat["verdicts"]] == [
        ("FOREIGN", "critical", "7"),
        ("STRAY", "attention", "4,000"),
    ]
    first, second = heat["rows"]
    assert (first["broker"], first["cells"]) == ("1", [{"rows": "3", "severity": "calm", "level": 1}, {}])
    assert [(each["severity"], each["level"]) for each in second["cells"]] == [("critical", 1), ("attention", 5)]


def test_of_too_many_brokers_the_heat_map_shows_those_with_the_gravest_findings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(charts, "BROKERS_SHOWN", 2)
    cells = [cell(1, Verdict.STRAY, 5), cell(2, Verdict.STALE_ID), cell(3, Verdict.STRAY), cell(None, Verdict.STRAY, 6)]
    heat = heat_map(cells, NAMES)
    assert [row["broker"] for row in heat["rows"]] == ["–", "2"]
    assert heat["more"] == 2


def test_a_broker_is_named_with_its_cluster_where_another_has_its_number() -> None:
    names = BrokerNames([("c1", 7), ("c2", 7), ("c1", 8)])
    assert (names.short(("c1", 7)), names.long(("c2", 7))) == ("7 of c1", "broker 7 of c2")
    assert (names.short(("c1", 8)), names.long((None, None))) == ("8", "no broker")
