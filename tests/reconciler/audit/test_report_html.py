"""The HTML page of an audit stands alone, tells what was found, and takes no markup from a disk."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from reconciler.audit import AuditResult, render_report, report_html
from reconciler.audit.fleet import FleetFinding
from reconciler.verdicts import Verdict

Make = Callable[..., AuditResult]
VOID = {"meta", "br", "rect"}


class Page(HTMLParser):
    """Checks that tags nest, and keeps the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone(make_result: Make, fleet_finding: FleetFinding) -> None:
    text = render_report(make_result({"verdict": "STRAY", "disk_bytes": 5}, ok=2, fleet=(fleet_finding,)))
    page = Page(text)
    assert page.open == []
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', text))
    assert not re.search(r"https?:|url\(|@import", text)


def test_the_page_tells_metadata_totals_findings_and_what_is_next(make_result: Make) -> None:
    stray = {"verdict": "STRAY", "name": "orders-0.aa-stray", "disk_bytes": 1_900_000_000_000}
    text = Page(render_report(make_result(stray, ok=2))).text
    for shown in ("cluster c1", "/meta", "42, epoch 3", "1.9 TB", "/disks/1/orders-0.aa-stray"):
        assert shown in text
    assert "60 s before the audit" in text
    assert "logstore doctor /disks/1 --metadata /meta" in text, "nothing but doctor knows what a stray without ID was"
    assert "1 finding to act on, first of all STRAY." in text


def test_a_clean_audit_says_so(make_result: Make) -> None:
    text = Page(render_report(make_result(ok=2))).text
    assert "Clean: nobody has to act" in text
    assert "There is none." in text


def test_fleet_findings_alone_are_not_clean(make_result: Make, fleet_finding: FleetFinding) -> None:
    text = Page(render_report(make_result(ok=2, fleet=(fleet_finding,)))).text
    assert "No finding of a replica, but 1 finding of the fleet as a whole." in text
    assert "If this one goes, the data is gone." in text


def test_names_from_a_disk_are_text_and_what_does_not_print_is_visible(make_result: Make) -> None:
    name = "<script>alert(1)</script>\x1b[2J\u202e-0"
    page = Page(render_report(make_result({"verdict": "FOREIGN", "name": name, "topic": "<b>"})))
    assert "script" not in page.tags
    assert "<script>alert(1)</script>\\x1b[2J\\u202e-0" in page.text
    assert "\x1b" not in page.text


def test_the_page_shows_so_many_findings_and_brokers_and_says_how_many_more(
    make_result: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_html, "FINDINGS_SHOWN", 2)
    monkeypatch.setattr(report_html, "BROKERS_SHOWN", 1)
    result = make_result(*[{"verdict": "STRAY"}] * 5)
    text = Page(render_report(replace(result, brokers=result.brokers * 3))).text
    assert "And 3 more; findings.parquet has them all." in text
    assert "And 2 brokers more; summary.json has them all." in text


def test_without_sizes_the_chart_counts(make_result: Make) -> None:
    text = render_report(make_result({"verdict": "STRAY"}, ok=2, bytes={}, disk_bytes={}))
    assert '<th class="chart">Count, without OK</th>' in text
    assert 'width="1000" height="12" rx="2"' in text


def test_bars_of_brokers_add_up_the_bytes_of_their_findings(make_result: Make) -> None:
    result = make_result({"verdict": "STALE_ID", "disk_bytes": 400}, {"verdict": "STRAY", "disk_bytes": 100}, ok=1)
    text = render_report(replace(result, brokers=(replace(result.brokers[0], disk_bytes=1000),)))
    assert '<rect class="critical" x="0" width="400" height="12"/>' in text
    assert '<rect class="attention" x="400" width="100" height="12"/>' in text
    assert '<rect class="rest" x="500" width="500" height="12"/>' in text


def test_without_metadata_the_page_says_that_nothing_was_compared(make_result: Make) -> None:
    assert "no replica was compared" in Page(render_report(make_result(ok=1, metadata=()))).text


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_its_place_on_the_page(make_result: Make, verdict: Verdict) -> None:
    assert verdict.value in Page(render_report(make_result({"verdict": verdict.value}))).text


def test_a_plain_file_that_a_broker_ignores_is_not_shown_as_what_stops_it(make_result: Make) -> None:
    ignored = {"verdict": "FOREIGN", "name": "notes.txt", "evidence": "a plain file that does not belong to a log dir"}
    stopping = {"verdict": "FOREIGN", "name": "lost+found", "evidence": "the name has no '-'"}
    text = render_report(make_result(ignored, stopping))
    assert re.search(r'<td class="verdict calm">FOREIGN</td>.*notes\.txt', text)
    assert re.search(r'<td class="verdict critical">FOREIGN</td>.*lost\+found', text)


def test_findings_are_grouped_by_verdict_and_broker_with_a_link_to_what_is_next(make_result: Make) -> None:
    rows = [{"verdict": "STRAY", "broker": broker} for broker in (1, 1, 2)]
    text = render_report(make_result(*rows, {"verdict": "STALE_ID", "broker": 2}))
    groups = re.findall(r'<tr class="group"><th colspan="7"><span class="\w+">(\w+)</span>, broker (\d): (.*?) ·', text)
    assert groups == [("STALE_ID", "2", "1 finding"), ("STRAY", "1", "2 findings"), ("STRAY", "2", "1 finding")]
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links <= set(re.findall(r'id="([^"]+)"', text)) and {"next-STRAY", "findings", "next"} <= links


def test_nothing_is_wider_than_a_phone(make_result: Make) -> None:
    text = render_report(make_result({"verdict": "STRAY"}))
    assert "minmax(min(24rem, 100%), 1fr)" in text
    assert "@media (max-width: 40rem)" in text and text.count('<table class="stack">') == 2
    # Below 76rem the widest column of a table would be off screen: its cells stand below each other, with labels.
    stacked = text.partition("@media screen and (max-width: 76rem)")[2].partition("@media")[0]
    assert "table.stack thead { display: none; }" in stacked
    assert all(f'data-label="{label}"' in text for label in ("broker", "size", "age"))
