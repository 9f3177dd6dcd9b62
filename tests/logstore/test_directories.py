from __future__ import annotations

import os
from typing import Any

import pytest

from logstore import directories
from logstore.directories import look_everywhere
from logstore.entries import list_log_dir
from logstore.pace import Pace
from logstore.replica_dir import Glance, look_at_many

GONE = "0123456789abcdef" * 2


def _rows(log_dir: Any, jobs: int = 0) -> list[dict[str, Any]]:
    batches, _ = look_everywhere(str(log_dir), None, Glance(True), jobs)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def fleet_of(log_dir: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A log dir of 90 replicas, some damaged, looked at in units of 10."""
    monkeypatch.setattr(directories, "_UNIT", 10)
    monkeypatch.setattr(directories, "_PIECE", 3)
    for number in range(90):
        metadata = [log_dir.topic_id, log_dir.other_id, b"", None][number % 4]
        log_dir.replica(f"topic-{number}", metadata, x__log=number)
    return log_dir


def test_processes_and_threads_give_the_same_rows_in_the_same_order(fleet_of: Any, monkeypatch: Any) -> None:
    alone = _rows(fleet_of)
    assert len(alone) == 90
    assert _rows(fleet_of, jobs=1) == _rows(fleet_of, jobs=2) == _rows(fleet_of, jobs=3) == alone
    lots = []
    usual = Pace.map

    def always_with_threads(self: Any, lot: Any, fewest_waits: int) -> Any:
        lots.append(fewest_waits)
        return usual(self, lot, 0)

    monkeypatch.setattr(Pace, "map", always_with_threads)
    assert _rows(fleet_of) == alone
    assert len(lots) == 9


def test_what_is_staged_beside_a_log_dir_that_was_reached_by_a_link_is_seen_by_processes_too(
    fleet_of: Any, tmp_path_factory: Any
) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "disk"
    link.symlink_to(fleet_of.path)
    staged = link.with_name("disk.deleting") / f"{fleet_of.topic_id}_5"
    staged.mkdir(parents=True)
    for jobs in (0, 1, 2):
        batches, _ = look_everywhere(str(link), None, Glance(True), jobs)
        names = [row["name"] for batch in batches for row in batch.to_pylist()]
        assert names[-1] == f"../disk.deleting/{staged.name}"
        assert len(names) == 91


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_a_directory_that_a_broker_renames_meanwhile_is_seen_under_its_new_name(
    fleet_of: Any, jobs: int, monkeypatch: Any
) -> None:
    times: list[int] = []

    def listing_then_a_rename(*arguments: Any) -> Any:
        listing = list_log_dir(*arguments)
        if not times:
            (fleet_of.path / "topic-7").rename(fleet_of.path / f"topic-7.{GONE}-delete")
            (fleet_of.path / "notes").touch()
        times.append(1)
        return listing

    monkeypatch.setattr(directories, "list_log_dir", listing_then_a_rename)
    batches, others = look_everywhere(str(fleet_of), None, Glance(True), jobs)
    names = [row["name"] for batch in batches for row in batch.to_pylist()]
    assert len(times) == 2
    assert len(names) == len(set(names)) == 90
    assert "topic-7" not in names
    assert f"topic-7.{GONE}-delete" in names
    assert [row[0] for row in others] == ["notes"]


def test_everything_may_vanish(fleet_of: Any, monkeypatch: Any) -> None:
    def gone(path: str) -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "listdir", gone)
    assert _rows(fleet_of) == []


def test_no_directories_are_no_rows(log_dir: Any) -> None:
    assert _rows(log_dir) == _rows(log_dir, jobs=2) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_look_into_everything_and_this_process_into_nothing(
    fleet_of: Any, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (f"old-0.{GONE}-delete", "lost+found", "caf\udce9-0"):
        fleet_of.replica(name, None)
    this_process = os.getpid()

    def elsewhere(*arguments: Any) -> Any:
        assert os.getpid() != this_process
        return look_at_many(*arguments)

    alone = _rows(fleet_of)
    monkeypatch.setattr(directories, "look_at_many", elsewhere)
    assert _rows(fleet_of, jobs) == alone
    assert len(alone) == 93


@pytest.mark.parametrize(("directories_each", "jobs"), [(10, 0), (90, 2), (100, None)])
def test_nothing_is_forked_without_jobs_or_for_one_unit(
    fleet_of: Any, directories_each: int, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "_UNIT", directories_each)
    monkeypatch.setattr(os, "fork", None)
    assert len(_rows(fleet_of, jobs)) == 90
