"""The place of a report in a store: what is replaced there, and what never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.rows import list_uri, put
from reconciler.audit.report import PAGE_FILE, HeldAtUri, check_replaceable, held_at, put_report
from reconciler.audit.report.at_uri import QUIET_MS
from reconciler.errors import UsageError
from tests.object_store import BUCKET, ObjectStore

REPORT = f"s3://{BUCKET}/report/"
NOW_MS = 10 * QUIET_MS


def held(*names: str, modified_ms: int | None = NOW_MS - QUIET_MS) -> HeldAtUri:
    return HeldAtUri(tuple((name, modified_ms) for name in names), ())


def test_a_report_that_was_cut_short_is_replaced_when_nothing_was_put_there_lately() -> None:
    parts = ("findings.parquet", "findings.parquet/part-0.parquet", PAGE_FILE, "topics.parquet")
    said = f"{REPORT} holds 4 files of a report that was cut short, which this one replaces"
    assert check_replaceable(REPORT, held(*parts), NOW_MS) == said
    assert check_replaceable(REPORT, held(), NOW_MS) is None
    for modified_ms in (NOW_MS - QUIET_MS + 1, NOW_MS + 1, None):
        with pytest.raises(UsageError, match=r"of a report that is not finished.* 10 min after its last file"):
            check_replaceable(REPORT, held(*parts, modified_ms=modified_ms), NOW_MS)


@pytest.mark.parametrize("name", ["summary.json", "notes.txt", "topics.parquet.bak", "a/topics.parquet"])
def test_a_report_that_is_whole_and_files_of_others_are_never_replaced(name: str) -> None:
    with pytest.raises(UsageError, match=r"holds files already, findings.parquet for example: name a new folder"):
        check_replaceable(REPORT, held("findings.parquet", name), NOW_MS)


def test_a_report_takes_the_place_of_what_was_seen_there_and_of_nothing_else(tmp_path: Path, s3: ObjectStore) -> None:
    names = ["findings.parquet", PAGE_FILE, "summary.json", "topics.parquet"]
    for name in names:
        (tmp_path / name).write_text(name)
    put(str(tmp_path / PAGE_FILE), f"{REPORT}findings.parquet/part-0.parquet")
    put(str(tmp_path / PAGE_FILE), f"{REPORT}_exchange-0a/1-rows.parquet")
    seen = held_at(REPORT)
    assert ([name for name, _ in seen.files], seen.exchanges) == (
        ["findings.parquet/part-0.parquet"],
        ("_exchange-0a",),
    )
    failure = put_report(str(tmp_path), names, REPORT, held())
    assert failure == (
        f"the report is nowhere: {REPORT} holds files by now, findings.parquet/part-0.parquet for example: name a new "
        "folder"
    )
    assert held_at(REPORT) == seen
    assert put_report(str(tmp_path), names, REPORT, seen) is None
    assert [name for name, _ in held_at(REPORT).files] == names
    assert "_exchange-0a/1-rows.parquet" in {each.name for each in list_uri(REPORT) or ()}


def test_a_report_that_is_refused_half_way_leaves_nothing(tmp_path: Path, s3: ObjectStore) -> None:
    for name in (PAGE_FILE, "topics.parquet"):
        (tmp_path / name).write_text(name)
    s3.refusing = lambda method, path: method in ("PUT", "POST") and "topics" in path
    failure = put_report(str(tmp_path), [PAGE_FILE, "topics.parquet"], REPORT, held())
    assert failure is not None
    assert failure.startswith(f"the report is incomplete: {REPORT}topics.parquet: access is denied")
    assert held_at(REPORT).files == ()
