"""Journals of runs: written into log dirs, read back, and summarized for a plan."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from layout.ours import RunJournal, run_journal
from logstore.log_dir import LogDir
from logstore.repair import RepairStatus
from reconciler.plan import UNDER_WAY, end_journals, read_history
from reconciler.plan.gate_inputs import Sighting, UsedMetadata
from reconciler.plan.history import MOST_READ, journal_paths, write_journal
from tests.logstore.engine import NOW_MS, DiskThat
from tests.reconciler.plan.plan_broker import CLUSTER, PlanBroker

SOURCE = {
    **{"source": "kraft", "cluster_id": CLUSTER, "topics": "10", "replicas": "30"},
    **{"epoch": "3", "offset": "400", "timestamp_ms": str(NOW_MS - 9)},
}
SEEN = {"kind": "stage", "inode": 7, "topic_id": "t", "status": "done"}
JOURNAL = RunJournal("a" * 64, "h", "u", NOW_MS, NOW_MS + 5, (SOURCE,), (SEEN,))


@pytest.fixture
def log_dir(tmp_path: Path) -> str:
    return PlanBroker(tmp_path).paths[0]


def put(log_dir: str, journal: RunJournal) -> None:
    name = run_journal.run_journal_name(journal.started_ms, journal.plan)
    Path(log_dir, name).write_bytes(run_journal.encode_run_journal(journal))


def test_what_was_written_is_read(log_dir: str) -> None:
    with LogDir.open(log_dir) as opened:
        assert write_journal(opened, JOURNAL) is None
    assert read_history([log_dir]).journals == [(log_dir, JOURNAL)]
    assert [Path(path).exists() for path in journal_paths([log_dir], NOW_MS, JOURNAL.plan)] == [True]


def test_a_journal_that_cannot_be_written_is_a_sentence(log_dir: str) -> None:
    with LogDir.open(log_dir, disk=DiskThat(errno.ENOSPC, {"write"})) as opened:
        problem = write_journal(opened, JOURNAL)
    assert problem == f"{log_dir}: the journal of this run cannot be written: No space left on device"
    assert read_history([log_dir]).journals == []


def test_an_end_changes_only_lines_under_way_whose_result_is_known_and_no_disk_that_is_offline(log_dir: str) -> None:
    lines = tuple({"kind": kind, "status": status} for kind in "ab" for status in (UNDER_WAY, "done"))
    begun = replace(JOURNAL, finished_ms=None, lines=lines)
    known = {"a": (RepairStatus.FAILED, "why")}
    with LogDir.open(log_dir) as opened:
        assert write_journal(opened, begun) is None
        assert end_journals([opened], [(log_dir, begun)], NOW_MS + 9, lambda _, line: known.get(line["kind"])) == []
        ended = replace(
            begun, finished_ms=NOW_MS + 9, lines=({"kind": "a", "status": "failed", "detail": "why"}, *lines[1:])
        )
        assert read_history([log_dir]).journals == [(log_dir, ended)]
        opened.go_offline("it failed")
        assert end_journals([opened], [(log_dir, begun)], NOW_MS + 11, lambda _, line: known.get(line["kind"])) == []
    assert read_history([log_dir]).journals == [(log_dir, ended)]


def test_an_end_that_cannot_be_written_is_a_sentence(log_dir: str) -> None:
    put(log_dir, begun := replace(JOURNAL, finished_ms=None))
    with LogDir.open(log_dir, disk=DiskThat(errno.ENOSPC, {"write"})) as opened:
        (problem,) = end_journals([opened], [(log_dir, begun)], NOW_MS, lambda *_: None)
    assert problem.endswith("No space left on device; the journal of the run before has no end")


def test_the_metadata_of_the_newest_run_is_remembered(log_dir: str) -> None:
    put(log_dir, replace(JOURNAL, started_ms=2, metadata=({**SOURCE, "topics": "12"},)))
    put(log_dir, replace(JOURNAL, started_ms=1))
    assert read_history([log_dir]).memory().metadata == {CLUSTER: (12, 30)}


def test_sightings_are_counted_by_plan_and_not_by_run(log_dir: str) -> None:
    put(log_dir, JOURNAL)
    put(log_dir, replace(JOURNAL, started_ms=NOW_MS + 1))
    assert read_history([log_dir]).memory().sightings == {(log_dir, 7, "t"): (Sighting(NOW_MS - 9, NOW_MS),)}
    put(log_dir, replace(JOURNAL, plan="b" * 64, lines=({**SEEN, "kind": "note_sighting"},)))
    history = read_history([log_dir])
    assert history.memory().sightings == {(log_dir, 7, "t"): (Sighting(NOW_MS - 9, NOW_MS),) * 2}
    assert history.noted("b" * 64) == {(log_dir, 7, "t")}
    assert history.noted("a" * 64) == set()


def test_what_every_plan_was_made_from_and_when_a_run_last_wrote_is_remembered(log_dir: str) -> None:
    put(log_dir, JOURNAL)
    put(log_dir, replace(JOURNAL, started_ms=NOW_MS + 7, finished_ms=None, metadata=({"source": "describe"},)))
    memory = read_history([log_dir]).memory()
    assert memory.used == {
        CLUSTER: (UsedMetadata("kraft", 3, 400, NOW_MS - 9, NOW_MS),),
        "": (UsedMetadata("describe", None, None, None, NOW_MS + 7),),
    }
    assert memory.written == {log_dir: NOW_MS + 7}


def test_a_restore_is_no_sighting(log_dir: str) -> None:
    put(log_dir, replace(JOURNAL, lines=({**SEEN, "kind": "restore"},)))
    assert read_history([log_dir]).memory().sightings == {}


def test_a_damaged_journal_is_skipped_and_reported(log_dir: str) -> None:
    put(log_dir, JOURNAL)
    Path(log_dir, run_journal.run_journal_name(1, "c" * 64)).write_bytes(b"{")
    Path(log_dir, run_journal.run_journal_name(2, "c" * 64)).mkdir()
    history = read_history([log_dir, "/absent"])
    assert (len(history.journals), len(history.unreadable)) == (1, 2)
    assert all("is passed over" in sentence for sentence in history.unreadable)


def test_no_more_than_the_newest_are_read(log_dir: str) -> None:
    for number in range(MOST_READ + 5):
        put(log_dir, replace(JOURNAL, started_ms=number))
    journals = read_history([log_dir]).journals
    assert (len(journals), journals[0][1].started_ms) == (MOST_READ, 5)


def test_cut_short_are_the_runs_of_the_same_plan_that_have_no_end(log_dir: str) -> None:
    cut = replace(JOURNAL, started_ms=1, finished_ms=None)
    for journal in (cut, replace(JOURNAL, started_ms=2), replace(cut, plan="b" * 64)):
        put(log_dir, journal)
    assert read_history([log_dir]).cut_short(JOURNAL.plan) == [(log_dir, cut)]


def test_a_run_of_repairs_alone_condemned_nothing_and_one_without_a_line_says_what_it_knew(log_dir: str) -> None:
    put(log_dir, replace(JOURNAL, lines=({**SEEN, "kind": "rebuild_checkpoint"},)))
    assert read_history([log_dir]).memory().metadata == {}
    put(log_dir, replace(JOURNAL, started_ms=NOW_MS + 1, lines=()))
    memory = read_history([log_dir]).memory()
    assert (memory.metadata, memory.written) == ({CLUSTER: (10, 30)}, {log_dir: NOW_MS + 5})


def test_a_sighting_is_as_old_as_the_oldest_of_its_metadata(log_dir: str) -> None:
    put(log_dir, replace(JOURNAL, metadata=(SOURCE, {**SOURCE, "timestamp_ms": str(NOW_MS - 70)})))
    assert read_history([log_dir]).memory().sightings == {(log_dir, 7, "t"): (Sighting(NOW_MS - 70, NOW_MS),)}


def test_a_disk_that_fails_under_a_journal_goes_offline(log_dir: str) -> None:
    with LogDir.open(log_dir, disk=DiskThat(errno.EIO, {"write"})) as opened:
        assert "offline" in str(write_journal(opened, JOURNAL))
        assert opened.offline is not None
        opened.abandon()
