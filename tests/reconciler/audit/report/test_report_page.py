"""The HTML page of an audit stands alone, tells what was found, and takes no markup from a disk."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from reconciler.audit import AuditResult, EarlierRun, render_report
from reconciler.audit.fleet import FleetFinding, HeldTopicId
from reconciler.audit.report import findings_table, page
from reconciler.verdicts import Verdict

Make = Callable[..., AuditResult]
VOID = {"meta", "br", "input"}


class Page(HTMLParser):
    """Checks that tags nest, and keeps the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.scripts: list[object] = []
        self.text = ""
        self.feed(text)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data


def test_the_page_stands_alone(make_result: Make, fleet_finding: FleetFinding) -> None:
    text = render_report(make_result({"verdict": "STRAY", "disk_bytes": 5}, ok=2, fleet=(fleet_finding,)))
    shown = Page(text)
    assert shown.open == []
    assert not shown.tags & {"link", "img", "iframe"}
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', text))
    assert not re.search(r"https?:|url\(|@import|src=|fetch\(|XMLHttp", text)


def test_a_browser_runs_no_script_and_takes_no_style_but_those_of_the_page(make_result: Make) -> None:
    text = render_report(make_result({"verdict": "STRAY"}))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    for kind in ("script", "style"):
        (written,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(written.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in unescape(policy[1])
    assert "default-src 'none'" in unescape(policy[1])
    assert not re.search(r'\sstyle="|\son\w+="', text)


def test_the_page_tells_metadata_totals_findings_and_what_is_next(make_result: Make) -> None:
    stray = {"verdict": "STRAY", "name": "orders-0.aa-stray", "disk_bytes": 1_900_000_000_000}
    text = Page(render_report(make_result(stray, ok=2))).text
    for shown in ("cluster c1", "/meta", "42, epoch 3", "1.9 TB", "/disks/1/orders-0.aa-stray"):
        assert shown in text
    assert "60 s before the audit" in text
    assert "Compared with kraft metadata whose newest record is of 60 s before." in text
    assert "logstore doctor /disks/1 --metadata /meta" in text, "nothing but doctor knows what a stray without ID was"
    assert "1 finding to act on, first of all STRAY on broker 1." in text


def test_a_clean_audit_says_so(make_result: Make) -> None:
    text = Page(render_report(make_result(ok=2))).text
    assert "Clean: nobody has to act" in text
    assert "There is none." in text


def test_fleet_findings_alone_are_not_clean(make_result: Make, fleet_finding: FleetFinding) -> None:
    text = Page(render_report(make_result(ok=2, fleet=(fleet_finding,)))).text
    assert "No finding of a replica, but 1 finding of the fleet as a whole." in text
    assert "If this one goes, the data is gone." in text


def test_names_from_a_disk_are_text_and_what_does_not_print_is_visible(make_result: Make) -> None:
    name = "</script><script>alert('1')</script>\x1b[2J\u202e\"><i>-0"
    text = render_report(make_result({"verdict": "FOREIGN", "name": name, "topic": "</td><b>'\""}))
    shown = Page(text)
    assert shown.open == []
    assert shown.scripts == [[("type", "application/json"), ("id", "data")], []]
    assert "b" not in shown.tags
    assert "</script><script>alert('1')</script>\\x1b[2J\\u202e\"><i>-0" in shown.text
    assert "\x1b" not in text


def test_the_page_shows_so_many_findings_and_brokers_and_says_how_many_more(
    make_result: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings_table, "SEARCHED", 3)
    monkeypatch.setattr(page, "FINDINGS_SHOWN", 2)
    monkeypatch.setattr(page, "BROKERS_SHOWN", 1)
    result = make_result(*[{"verdict": "STRAY"}] * 5)
    text = Page(render_report(replace(result, brokers=result.brokers * 3))).text
    assert "These are the first 2 of 3: with JavaScript" in text
    assert "And 2 more; findings.parquet has them all." in text
    assert "And 2 brokers more; summary.json has them all." in text


def test_without_sizes_the_chart_counts(make_result: Make) -> None:
    text = render_report(make_result({"verdict": "STRAY"}, ok=2, bytes={}, disk_bytes={}))
    assert '<th scope="col" class="chart">Count, without OK</th>' in text
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
    groups = re.findall(
        r'<tr class="group"><th colspan="7" scope="rowgroup"><span class="\w+">(\w+)</span>, broker (\d): (.*?) ·', text
    )
    assert groups == [("STALE_ID", "2", "1 finding"), ("STRAY", "1", "2 findings"), ("STRAY", "2", "1 finding")]
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links <= set(re.findall(r'id="([^"]+)"', text)) and {"next-STRAY", "findings", "next"} <= links


def test_the_first_command_is_that_of_the_gravest_finding(make_result: Make) -> None:
    ignored = {"verdict": "FOREIGN", "name": "notes.txt", "evidence": "a plain file that does not belong to a log dir"}
    stale = {"verdict": "STALE_ID", "broker": 2, "log_dir": "/disks/2", "disk_topic_id": "A" * 22}
    text = render_report(make_result(ignored, stale))
    assert '"headline critical">2 findings to act on, 1 of them urgent, first of all STALE_ID on broker 2.' in text
    assert "The replica belongs to a topic that was deleted" in text
    alone = render_report(make_result(ignored))
    assert '"headline calm">1 finding to act on, first of all FOREIGN on broker 1.' in alone
    assert 'class="verdict critical"' not in alone


def test_several_commands_for_one_broker_begin_with_the_one_that_says_in_which_order(make_result: Make) -> None:
    text = render_report(make_result({"verdict": "STALE_ID"}, {"verdict": "DAMAGED"}))
    first = text.partition("Run this next")[2]
    assert first.index("logstore doctor /disks/1 --metadata /meta") < first.index("logstore repair /disks/1")


def test_what_a_reader_has_to_fill_in_is_named(make_result: Make) -> None:
    text = Page(render_report(make_result({"verdict": "ABSENT", "log_dir": None}))).text
    assert "put in what is known to you alone: OTHER_LOG_DIR" in text


def test_topics_under_several_ids_name_who_holds_which(make_result: Make) -> None:
    old = {"verdict": "STALE_ID", "kind": "live", "topic": "orders", "disk_topic_id": "old"}
    held = (
        HeldTopicId("new", True, 33, 1, 12, (1, 5, 12)),
        HeldTopicId("newer", True, 9, 1, 12),
        HeldTopicId("old", False, 3, 2, 7),
        HeldTopicId("odd", False, 1, 4, 4),
    )
    finding = FleetFinding("TOPIC_UNDER_SEVERAL_IDS", "c1", "orders", "seen", held=held)
    rows = [old | {"broker": broker} for broker in (7, 2, 7)]
    text = render_report(make_result(*rows, fleet=(finding,)))
    shown = text.partition("who holds which")[2].partition("</table>")[0]
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", shown)]
    assert [cells[start : start + 4] for start in range(0, len(cells), 4)] == [
        ["new", "known", "33", "1, 5, 12"],
        ["newer", "known", "9", "1 to 12"],
        ["old", "not known", "3", "2, 7"],
        ["odd", "not known", "1", "4"],
    ]


def test_the_trend_shows_earlier_runs_below_this_one(make_result: Make) -> None:
    earlier = EarlierRun("run-1", 1_600_000_000_000, {"MISSING": 7, "OK": 1}, {}, None)
    text = render_report(make_result({"verdict": "STRAY"}), earlier=[earlier])
    table = text.partition('id="trend"')[2].partition("</table>")[0]
    runs = [re.findall(r'class="figure">([^<]*)<', row)[1:] for row in table.split("<tr>")[2:]]
    assert runs == [["0", "1", "0 B", "0"], ["7", "0", "–", "–"]]
    assert table.index("this run") < table.index("run-1")
