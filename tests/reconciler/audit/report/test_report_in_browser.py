"""The page of an audit in a real browser: what a reader sees, types, copies and reaches, in every width and scheme.

One browser with one open page serves all tests; whatever the browser complains of fails the test that caused it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from reconciler.audit import EarlierRun, render_report
from reconciler.audit.fleet import FleetFinding, HeldTopicId
from reconciler.audit.report import page as report_page
from reconciler.audit.result import BrokerSummary
from reconciler.desired import MetadataIdentity
from reconciler.next_steps import Call
from tests.reconciler.audit.conftest import NOW_MS, result_in
from tools.machine import chromium_command, why_no_chromium

pytestmark = pytest.mark.browser

WIDTHS, SCHEMES = (390, 768, 1280, 1920), ("light", "dark")
STRAYS, AS_ROWS = 230, 50
CLUSTER = "a-cluster-id-of-22-let"
TOPIC = "quotes\"'<b>&amp;.of-a-topic-whose-name-is-about-as-long-as-kafka-lets-a-topic-be-named-in-a-cluster"
PATIENCE_MS = 60_000


def findings() -> list[dict[str, Any]]:
    """More than two pages of strays, and one of each kind that the page has a place for."""
    strays = [
        {
            "verdict": "STRAY", "broker": number % 3 + 1,
            "log_dir": f"/disks/{number % 3 + 1}", "topic": f"t{number % 7}",
            "name": f"t{number % 7}-{number}", "disk_bytes": None if number == 7 else number * 1000, "kind": "stray",
            "modified_ms": NOW_MS - number * 3_600_000, "disk_topic_id": f"{number:022d}",
        }
        for number in range(STRAYS)
    ]  # fmt: skip
    stale = {"verdict": "STALE_ID", "topic": TOPIC, "name": f"{TOPIC}-0", "kind": "live", "disk_topic_id": "o" * 22,
             "metadata_topic_id": "n" * 22, "disk_bytes": 5_000_000}  # fmt: skip
    ignored = {"verdict": "FOREIGN", "name": "notes.txt", "evidence": "a plain file of somebody", "topic": None}
    absent = {"verdict": "ABSENT", "log_dir": None, "broker": 2, "topic": "t1"}
    staged = {"verdict": "STAGED", "disk_bytes": 9}
    return [each | {"cluster_id": CLUSTER} for each in (*strays, stale, ignored, absent, staged)]


def page_of(folder: Path) -> str:
    paths = [f"/disks/{node}/a-mount-point-with-a-long-name/and-a-longer-one/kafka-data" for node in (1, 2, 3)]
    brokers = tuple(
        BrokerSummary(
            CLUSTER, node, (f"h{node}",),
            ({"log_dir": path, "directory_id": "d", "state": "ok", "problem": "odd" if node == 2 else None},),
            100, 10**7, 10**7,
        )
        for node, path in enumerate(paths, 1)
    )  # fmt: skip
    identity = MetadataIdentity(
        "kraft", f"{paths[0]}/__cluster_metadata-0", CLUSTER, offset=42, epoch=3,
        timestamp_ms=NOW_MS - 60_000, tail_uncommitted=True, digest="0123456789abcdef" * 4,
    )  # fmt: skip
    held = (HeldTopicId("n" * 22, True, 3, 1, 3), HeldTopicId("o" * 22, False, 1, 1, 1))
    fleet = (FleetFinding("TOPIC_UNDER_SEVERAL_IDS", CLUSTER, TOPIC, "seen", held=held),)
    result = result_in(folder)(
        *findings(), ok=2000, brokers=brokers, metadata=(identity,), fleet=fleet, notes=("a note",)
    )
    earlier = [EarlierRun(f"20231113T0{hour}0000.000Z-0123abcd", NOW_MS, {"MISSING": 7}, {}, None) for hour in range(9)]
    return render_report(result, Call(), earlier)


class Tab:
    """The open page, and what the browser complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def shown(self) -> str:
        return self.page.inner_text("#shown")

    def cells(self, column: int) -> list[str]:
        return self.page.locator(f"#findings-table tbody tr > :nth-child({column})").all_inner_texts()

    def announces(self, beginning: str) -> None:
        """Wait for what the page says to a screen reader, without a script: the page's policy forbids ``eval``."""
        expect(self.page.locator("#announced")).to_have_text(
            re.compile(f"^{re.escape(beginning)}"), timeout=PATIENCE_MS
        )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if reason := why_no_chromium():
        pytest.skip(reason)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium_command(), timeout=PATIENCE_MS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(report_page, "FINDINGS_SHOWN", AS_ROWS)
        (folder / "report.html").write_text(page_of(folder), "utf-8")
    yield folder / "report.html"


@pytest.fixture(scope="module")
def opened(browser: Browser, file: Path) -> Iterator[Tab]:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    tab = Tab(context.new_page())
    tab.page.goto(file.as_uri(), timeout=PATIENCE_MS)
    yield tab
    assert tab.requests == [file.as_uri()], "the page asks for nothing but itself"


@pytest.fixture
def tab(opened: Tab) -> Iterator[Tab]:
    """The open page, wide and light, with nothing searched for."""
    opened.page.emulate_media(color_scheme="light", media="screen")
    opened.page.set_viewport_size({"width": 1280, "height": 900})
    opened.page.click("#clear")
    opened.page.select_option("#order", "urgency")
    yield opened
    assert opened.problems == []


CUT = """() => {
  const wide = document.documentElement.clientWidth, found = [];
  for (const each of document.querySelectorAll("body *")) {
    const box = each.getBoundingClientRect(), scrolls = each.closest(".scroll");
    if (!box.width || each.closest(".skip")) continue;
    if (!scrolls && (box.right > wide + 1 || box.left < -1)) found.push(`${each.tagName} ${each.className} is off`);
    if (each.matches(".panel, dd, p, li, code, td, th") && !each.closest("table.heat, #trend ~ .scroll")
        && each.scrollWidth > each.clientWidth + 1) found.push(`${each.tagName} ${each.textContent} is cut`);
  }
  if (document.documentElement.scrollWidth > wide) found.push("the page scrolls sideways");
  return found;
}"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_is_cut_and_everybody_can_read_it_in_every_width_and_scheme(tab: Tab, width: int, scheme: Any) -> None:
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.page.emulate_media(color_scheme=scheme)
    tab.page.fill("#words", "t3-3")
    assert tab.page.evaluate(CUT) == []
    if (width, scheme) in ((390, "dark"), (1280, "light")):
        found = Axe().run(tab.page)
        assert found.violations_count == 0, found.generate_report()


def test_a_search_takes_every_word_from_any_column_and_the_choices_narrow_it(tab: Tab) -> None:
    assert tab.shown() == f"{STRAYS + 3} findings; shown: 1 to 100"
    tab.page.fill("#words", "T3 stray")
    assert tab.shown() == f"33 of {STRAYS + 3} findings; shown: 1 to 33"
    tab.page.select_option("#of-broker", "2")
    assert set(tab.cells(2)) == {"2"}
    tab.page.select_option("#of-verdict", "ABSENT")
    assert tab.shown() == f"0 of {STRAYS + 3} findings: nothing matches"
    tab.page.click("#clear")
    assert tab.shown() == f"{STRAYS + 3} findings; shown: 1 to 100"
    assert tab.page.evaluate("document.activeElement.id") == "words"


def test_a_heading_sorts_its_column_both_ways_and_what_is_not_known_comes_last(tab: Tab) -> None:
    heading = tab.page.get_by_role("button", name="Size", exact=True)
    heading.click()
    assert tab.cells(5)[:2] == ["5.0 MB", "229 kB"]
    assert tab.page.get_attribute("th[data-order=size]", "aria-sort") == "descending"
    heading.click()
    assert tab.cells(5)[:2] == ["0 B", "1.0 kB"]
    tab.page.select_option("#of-verdict", "STRAY")
    tab.page.click("#following")
    tab.page.click("#following")
    assert tab.cells(5)[-1] == "–"
    tab.page.select_option("#order", "where")
    assert tab.page.get_attribute("th[data-order=size]", "aria-sort") is None
    assert tab.cells(3)[:2] == ["/disks/1/t0-0", "/disks/1/t0-21"], "numbers in names are in the order of numbers"
    tab.page.select_option("#order", "age")
    assert tab.cells(6)[0] == "9 d"


def test_pages_show_a_hundred_each_and_end_where_the_findings_do(tab: Tab) -> None:
    assert tab.page.is_disabled("#previous")
    tab.page.click("#following")
    tab.page.click("#following")
    assert tab.shown() == f"{STRAYS + 3} findings; shown: 201 to {STRAYS + 3}"
    assert tab.page.is_disabled("#following")
    tab.page.fill("#words", "t3-")
    assert not tab.page.is_visible("#pages")


def test_the_first_command_and_that_of_a_finding_are_copied_as_they_stand(tab: Tab) -> None:
    for place in (".first", "#findings-table tbody tr:first-child"):
        if place != ".first":
            tab.page.click(f"{place} summary")
        button = tab.page.locator(f"{place} button.copy")
        button.click()
        command = tab.page.locator(f"{place} code").text_content()
        assert command is not None and command.startswith("logstore doctor /disks/")
        tab.announces("Copied: ")
        assert tab.page.evaluate("navigator.clipboard.readText()") == command
        tab.page.evaluate("navigator.clipboard.writeText('')")
        tab.page.evaluate("document.getElementById('announced').textContent = ''")


def test_where_the_clipboard_is_closed_the_command_is_selected(tab: Tab) -> None:
    tab.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('closed')); }")
    tab.page.click(".first button.copy")
    tab.announces("Selected: ")
    assert tab.page.evaluate("getSelection().toString()") == tab.page.locator(".first code").text_content()
    tab.page.evaluate("delete navigator.clipboard.writeText")


def test_a_name_in_a_chart_or_a_topic_leads_to_its_findings(tab: Tab) -> None:
    tab.page.click(".heat thead a[data-verdict=FOREIGN]")
    assert tab.cells(3) == ["/disks/1/notes.txt"]
    assert tab.page.locator("#findings-table .critical").count() == 0, "a broker ignores it"
    tab.page.click(".heat tbody a[data-broker='2']")
    assert set(tab.cells(2)) == {"2"}
    tab.page.locator("#ids ~ .scroll a.find").click()
    assert tab.cells(1) == ["STALE_ID"]
    assert TOPIC in tab.cells(3)[0]


def test_the_keyboard_reaches_everything_and_shows_where_it_is(tab: Tab) -> None:
    tab.page.fill("#words", "t3-3")
    usable = "a[href], button:enabled, input, select, summary, [tabindex='0']"
    number = tab.page.evaluate(
        f"""[...document.querySelectorAll("{usable}")]
            .filter((each) => each.checkVisibility()).map((each, place) => {{ each.dataset.place = place; }}).length"""
    )
    tab.page.focus(".skip")
    reached, unseen = ["0"], []
    for _ in range(number - 1):
        tab.page.keyboard.press("Tab")
        place, outline = tab.page.evaluate(
            "[document.activeElement.dataset.place, getComputedStyle(document.activeElement).outlineStyle]"
        )
        reached.append(place)
        unseen += [place] if outline == "none" else []
    assert (reached, unseen) == ([str(place) for place in range(number)], [])
    tab.page.focus("th[data-order=age] button")
    tab.page.keyboard.press("Enter")
    assert tab.page.get_attribute("th[data-order=age]", "aria-sort") == "descending"


def test_on_paper_there_are_more_rows_and_nothing_to_press(tab: Tab) -> None:
    tab.page.emulate_media(media="print")
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(tab.cells(1)) == STRAYS + 3
    pressed = "[...document.querySelectorAll('button:not(th button), input, select')]"
    assert not tab.page.evaluate(f"{pressed}.some((each) => each.checkVisibility())")
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(tab.cells(1)) == 100


def test_without_javascript_the_first_findings_stand_there(browser: Browser, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = Tab(context.new_page())
    tab.page.goto(file.as_uri(), timeout=PATIENCE_MS)
    assert tab.page.locator("#findings-table tbody tr:not(.group)").count() == AS_ROWS
    assert f"These are the first {AS_ROWS} of {STRAYS + 3}" in tab.page.inner_text("#by-hand")
    assert tab.page.is_visible(".first code")
    assert not any(tab.page.is_visible(each) for each in ("#controls", "#pages", ".first button"))
    context.close()


def test_directories_whose_names_are_markup_are_text(browser: Browser, tmp_path: Path) -> None:
    log_dir = tmp_path / 'it\'s a "disk"<'
    taken = "script><img src=x onerror=document.title='taken'><script>document.title='taken'<"
    (log_dir / taken / "script>").mkdir(parents=True)
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=<b>\"c'\n")
    command = [str(Path(sys.executable).parent / "logstore"), "audit", str(log_dir), "--report", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    tab = Tab(browser.new_page())
    tab.page.goto((tmp_path / "out" / "report.html").as_uri(), timeout=PATIENCE_MS)
    assert tab.page.title() == "Audit of cluster <b>\"c'"
    assert tab.page.locator("img, b").count() == 0
    assert tab.cells(3) == [f"{log_dir}/{taken}"]
    assert f"{log_dir}/{taken}" in tab.page.locator(".first code").inner_text().replace("'\"'\"'", "'")
    assert (tab.problems, len(tab.requests)) == ([], 1)
    tab.page.close()
