from __future__ import annotations

import os
from typing import Any

import pytest

from layout.scheme import MARKER_FILE, Scheme
from logstore.parallel import AdaptiveThreadPool
from logstore.scan import ScanOptions, list_log_dir
from logstore.scan import walk as walk_module
from logstore.scan.listing import list_in_batches
from logstore.scan.walk import walk_log_dir

GONE = "0123456789abcdef" * 2


def _rows(log_dir: Any, jobs: int = 0) -> list[dict[str, Any]]:
    batches, *_ = walk_log_dir(str(log_dir), None, ScanOptions(True), jobs)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def fleet_of(log_dir: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A log dir of 90 replicas, some damaged, looked at in units of 10."""
    monkeypatch.setattr(walk_module, "DIRECTORIES_PER_UNIT", 10)
    monkeypatch.setattr(walk_module, "DIRECTORIES_PER_PIECE", 3)
    for number in range(90):
        metadata = [log_dir.topic_id, log_dir.other_id, b"", None][number % 4]
        log_dir.replica(f"topic-{number}", metadata, x__log=number)
    return log_dir


def test_processes_and_threads_give_the_same_rows_in_the_same_order(fleet_of: Any, monkeypatch: Any) -> None:
    alone = _rows(fleet_of)
    assert len(alone) == 90
    assert _rows(fleet_of, jobs=1) == _rows(fleet_of, jobs=2) == _rows(fleet_of, jobs=3) == alone
    by_threads: list[list[str]] = []
    as_written = AdaptiveThreadPool.map

    def always_with_threads(self: Any, batch: Any, fewest_waits: int) -> Any:
        by_threads.append([name for _, _, names, _ in batch for name in names])
        return as_written(self, batch, 0)

    monkeypatch.setattr(AdaptiveThreadPool, "map", always_with_threads)
    assert _rows(fleet_of) == alone
    assert sorted(name for names in by_threads for name in names) == sorted(f"topic-{number}" for number in range(90))
    assert max(map(len, by_threads)) == 10


def test_what_is_staged_beside_a_log_dir_that_was_reached_by_a_link_is_seen_by_processes_too(
    fleet_of: Any, tmp_path_factory: Any
) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "disk"
    link.symlink_to(fleet_of.path)
    staged = link.with_name("disk.deleting") / f"{fleet_of.topic_id}_5"
    staged.mkdir(parents=True)
    for jobs in (0, 1, 2):
        batches, *_ = walk_log_dir(str(link), None, ScanOptions(True), jobs)
        names = [row["name"] for batch in batches for row in batch.to_pylist()]
        assert names[-1] == f"../disk.deleting/{staged.name}"
        assert len(names) == 91


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_a_directory_that_a_broker_renames_meanwhile_is_seen_under_its_new_name(
    fleet_of: Any, jobs: int, monkeypatch: Any
) -> None:
    listed: list[int] = []

    def listing_then_a_rename(*arguments: Any) -> Any:
        batches = list(list_in_batches(*arguments))
        (fleet_of.path / "topic-7").rename(fleet_of.path / f"topic-7.{GONE}-delete")
        (fleet_of.path / "notes").touch()
        yield from batches

    def listing_again(*arguments: Any) -> Any:
        listed.append(1)
        return list_log_dir(*arguments)

    monkeypatch.setattr(walk_module, "list_in_batches", listing_then_a_rename)
    monkeypatch.setattr(walk_module, "list_log_dir", listing_again)
    batches, others, replicas = walk_log_dir(str(fleet_of), None, ScanOptions(True), jobs)
    names = [row["name"] for batch in batches for row in batch.to_pylist()]
    assert len(listed) == 1
    assert len(names) == len(set(names)) == 90
    assert "topic-7" not in names
    assert f"topic-7.{GONE}-delete" in names
    assert [row[0] for row in others] == ["notes"]
    assert ("topic", 7) not in replicas
    assert replicas.directories == len(replicas.live) == 89


def test_everything_may_vanish(fleet_of: Any, monkeypatch: Any) -> None:
    def gone(path: str) -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "listdir", gone)
    assert _rows(fleet_of) == []


@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize("odd", ["junk", "empty-0", "fifo-0", "missing-0", f"orders-3.{GONE}-delete"])
def test_one_odd_directory_among_many_changes_nothing_for_the_others(log_dir: Any, odd: str, sizes: bool) -> None:
    for number in range(70):
        log_dir.replica(f"orders-{number}", x__log=number)
    plain = _rows(log_dir)
    log_dir.replica(odd, {"empty-0": b"", "fifo-0": None, "missing-0": None}.get(odd, log_dir.topic_id))
    if odd == "fifo-0":
        os.mkfifo(log_dir.path / odd / "partition.metadata")
    rows = _rows(log_dir)
    assert [row for row in rows if row["name"] != odd] == plain
    assert len(rows) == 71


def test_tiers_and_staged_replicas_are_looked_into_by_processes_too(fleet_of: Any) -> None:
    (fleet_of.path / "org").mkdir()
    (fleet_of.path / "org" / MARKER_FILE).touch()
    fleet_of.replica("org/orders-1", x__log=5)
    fleet_of.replica(f"deleting/{fleet_of.topic_id}_5")
    found = []
    for jobs in (0, 2):
        seen = walk_log_dir(str(fleet_of), Scheme.NAMESPACED, ScanOptions(True), jobs)
        found.append([row for batch in seen.batches for row in batch.to_pylist()])
        assert ("org:orders", 1) in seen.replicas
    assert found[0] == found[1]
    rows = {row["name"]: (row["kind"], row["topic"], row["namespace"], row["bytes"]) for row in found[0]}
    assert rows["org/orders-1"] == ("live", "org:orders", "org", 48)
    assert rows[f"deleting/{fleet_of.topic_id}_5"][0] == "staged"


def test_no_directories_are_no_rows(log_dir: Any) -> None:
    assert _rows(log_dir) == _rows(log_dir, jobs=2) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_look_into_everything_and_this_process_into_nothing(
    fleet_of: Any, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (f"old-0.{GONE}-delete", "lost+found", "caf\udce9-0"):
        fleet_of.replica(name, None)
    this_process = os.getpid()

    def elsewhere(look: Any) -> Any:
        def looking(*arguments: Any) -> Any:
            assert os.getpid() != this_process
            return look(*arguments)

        return looking

    alone = _rows(fleet_of)
    for name in ("scan_directories", "scan_fast"):
        monkeypatch.setattr(walk_module, name, elsewhere(getattr(walk_module, name)))
    assert _rows(fleet_of, jobs) == alone
    assert len(alone) == 93


@pytest.mark.parametrize(("directories_each", "jobs"), [(10, 0), (90, 2), (100, None)])
def test_nothing_is_forked_without_jobs_or_for_one_unit(
    fleet_of: Any, directories_each: int, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "DIRECTORIES_PER_UNIT", directories_each)
    monkeypatch.setattr(os, "fork", None)
    assert len(_rows(fleet_of, jobs)) == 90
