"""What a purge has removed is in its file of metrics while it is under way, and the end of the purge replaces it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from logstore.fs import publish_file
from reconciler.cli.monitoring import PurgeProgress, purge_progress
from tests.reconciler.cli.conftest import Cluster
from tests.reconciler.cli.monitoring.test_metrics_file import read

Run = Callable[..., Result]


def test_a_purge_under_way_says_what_it_has_removed_and_its_end_replaces_that(
    cluster: Cluster, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, metrics = tmp_path / "plan.json", tmp_path / "logstore_purge.prom"
    given = [*cluster.log_dirs, "--metadata", cluster.metadata, "--max-share", "90%", "--delay", "0s", "-o", plan]
    assert run("plan", *given).exit_code == 1 and run("apply", plan).exit_code == 0
    seen = []

    def publish(path: str, text: bytes) -> None:
        publish_file(path, text)
        seen.append(read(metrics))

    monkeypatch.setattr(purge_progress, "publish_file", publish)
    monkeypatch.setattr(purge_progress, "PROGRESS_S", 0.0)
    assert run("purge", *cluster.log_dirs, "--metrics", metrics).exit_code == 0
    removed = [each["logstore_purge_removed_size_bytes"][()] for each in seen]
    assert len(removed) > 1 and removed == sorted(removed) and removed[-1] > 0
    assert seen[-1]["logstore_purge_removed_directories"][()] == 1
    assert {each["logstore_purge_running"][()] for each in seen} == {1}
    ended = read(metrics)
    assert ended["logstore_purge_running"][()] == 0
    assert "logstore_purge_removed_directories" not in ended


def test_a_file_is_not_written_again_before_its_time_nor_after_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "x.prom"
    seldom = PurgeProgress(str(path), every_s=3600)
    for _ in range(3):
        seldom(1, 100)
    assert read(path)["logstore_purge_removed_directories"][()] == 1
    nowhere = PurgeProgress(str(tmp_path / "away" / "x.prom"), every_s=0)
    nowhere(1, 100)
    os.mkdir(tmp_path / "away")
    nowhere(1, 100)
    assert not os.listdir(tmp_path / "away")


def test_what_several_workers_remove_is_added_up(tmp_path: Path) -> None:
    path = tmp_path / "x.prom"
    progress = PurgeProgress(str(path), every_s=0)
    workers = [threading.Thread(target=lambda: [progress(1, 10) for _ in range(50)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    progress(1, 10)
    assert read(path)["logstore_purge_removed_directories"][()] == 201
    assert read(path)["logstore_purge_removed_size_bytes"][()] == 2010
