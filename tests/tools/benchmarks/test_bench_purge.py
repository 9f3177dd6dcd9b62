"""The purge benchmark: that it stages what it says, and measures purges that leave nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from logstore.log_dir import ReadOnlyLogDir
from logstore.staging import find_staged
from tools.benchmarks import purge as bench_purge
from tools.benchmarks import trees as bench_trees


def test_every_staged_directory_has_its_files_and_a_record_that_is_due(tmp_path: Path) -> None:
    path = str(tmp_path / "log-dir")
    bench_purge.build(path, 30)
    with ReadOnlyLogDir.open(path) as view:
        found = find_staged(view)
    assert len(found) == 30
    assert all(staged.is_due(bench_purge.LONG_AGO_MS) for staged in found)
    counts = {len(list(each.iterdir())) for each in (tmp_path / "log-dir.deleting").iterdir() if each.is_dir()}
    assert counts == {bench_trees.FILES}


def test_it_runs_to_its_end_and_tells_every_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert bench_purge.main(["--dirs", "20", "--runs", "1", "--folder", str(tmp_path)]) in (0, 1)
    finally:
        logging.disable(logging.NOTSET)
    printed = capsys.readouterr().out
    assert "logstore purge, 1 worker / rm -rf" in printed
    assert "logstore purge, 2 workers / rm -rf" in printed
    assert "rm -rf, 2 at once / rm -rf" in printed
    assert "logstore purge, 2 workers / rm -rf, processor time" in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [["--dirs", "0"], ["--runs", "0"], ["--folder", "/there-is-no-such-folder"]])
def test_what_cannot_be_measured_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        bench_purge.main(wrong)
    assert left.value.code == 2


def test_what_was_left_is_no_measurement(tmp_path: Path) -> None:
    bench_purge.build(str(tmp_path / "log-dir"), 1)
    with pytest.raises(SystemExit, match="1 directories were left"):
        bench_purge._check_gone(str(tmp_path / "log-dir"))
