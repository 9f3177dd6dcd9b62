"""The journal of a run: its name, its lines, and what is no journal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from layout.errors import DamagedFileError
from layout.ours import RunJournal, encode_run_journal, is_run_journal, parse_run_journal, run_journal_name

JOURNAL = RunJournal(
    "0123456789abcdef" * 4,
    "h",
    "u",
    1_700_000_000_000,
    None,
    ({"source": "kraft"},),
    ({"name": "a\udcff", "n": 1},),
    ("/disks/1", "/disks/\udcff"),
)


@pytest.mark.parametrize("finished_ms", [None, 1_700_000_000_001])
def test_what_is_written_is_read_back(finished_ms: int | None) -> None:
    journal = replace(JOURNAL, finished_ms=finished_ms)
    assert parse_run_journal(encode_run_journal(journal)) == journal


def test_a_journal_of_an_earlier_release_says_nothing_of_log_dirs() -> None:
    data = encode_run_journal(replace(JOURNAL, log_dirs=())).replace(b', "log_dirs": []', b"")
    assert b"log_dirs" not in data
    assert parse_run_journal(data) == replace(JOURNAL, log_dirs=())


def test_every_line_is_json_and_the_first_one_is_the_run() -> None:
    first, second = map(json.loads, encode_run_journal(JOURNAL).splitlines())
    assert (first["user"], first["schema_version"], second["n"]) == ("u", 1, 1)


def test_names_sort_by_time_and_are_recognised() -> None:
    early, late = run_journal_name(5, JOURNAL.plan), run_journal_name(1_700_000_000_000, JOURNAL.plan)
    assert late == ".logstore_run.1700000000000.0123456789abcdef.ndjson"
    assert sorted([late, early]) == [early, late]
    assert is_run_journal(early)
    assert not any(map(is_run_journal, (f"{late}.tmp", ".logstore_repair.0.json", "run.ndjson")))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"[]\n", b"\xff"),
        encode_run_journal(JOURNAL) + b"{",
        encode_run_journal(JOURNAL).replace(b'"schema_version": 1', b'"schema_version": 2'),
        encode_run_journal(JOURNAL).replace(b'[{"source": "kraft"}]', b"[1]"),
        encode_run_journal(JOURNAL).replace(b'"/disks/1"', b"1"),
        encode_run_journal(JOURNAL).replace(b"1700000000000", b'"x"', 1),
    ],
)
def test_what_is_no_journal_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedFileError, match="journal of a run"):
        parse_run_journal(data)
