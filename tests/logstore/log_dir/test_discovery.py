from __future__ import annotations

import os
from pathlib import Path

import pytest

from layout.checkpoint import OFFSET_CHECKPOINTS
from logstore.log_dir import discover


def _mark(path: Path, sign: str = "meta.properties") -> str:
    path.mkdir(parents=True)
    (path / sign).touch()
    return str(path)


@pytest.mark.parametrize("sign", ["meta.properties", *OFFSET_CHECKPOINTS])
def test_each_file_of_a_log_dir_is_a_sign(tmp_path: Path, sign: str) -> None:
    found = _mark(tmp_path / "broker" / "disk", sign)
    assert discover(str(tmp_path)) == [found]


def test_the_metadata_log_is_a_sign(tmp_path: Path) -> None:
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)
    assert discover(str(tmp_path)) == [f"{tmp_path}/data"]


def test_a_log_dir_itself_is_found_and_not_searched(tmp_path: Path) -> None:
    log_dir = _mark(tmp_path / "data")
    _mark(tmp_path / "data" / "backup")
    assert discover(log_dir) == [log_dir]


def test_log_dirs_of_different_depths_come_sorted(tmp_path: Path) -> None:
    wanted = [_mark(tmp_path / "b"), _mark(tmp_path / "a" / "x" / "y"), _mark(tmp_path / "c" / "z")]
    assert discover(str(tmp_path)) == sorted(wanted)


def test_six_levels_are_searched_and_no_more(tmp_path: Path) -> None:
    sixth = _mark(tmp_path / "1" / "2" / "3" / "4" / "5" / "6")
    _mark(tmp_path / "one" / "2" / "3" / "4" / "5" / "6" / "7")
    assert discover(str(tmp_path)) == [sixth]


def test_without_any_the_path_itself_comes_back(tmp_path: Path) -> None:
    assert discover(str(tmp_path)) == [str(tmp_path)]
    assert discover(f"{tmp_path}/none") == [f"{tmp_path}/none"]
    assert discover("nul\0") == ["nul\0"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    real = _mark(tmp_path / "real" / "data")
    (tmp_path / "real" / "again").symlink_to(real)
    (tmp_path / "real" / "loop").symlink_to(tmp_path)
    assert discover(str(tmp_path)) == [real]


def test_what_cannot_be_listed_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _mark(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if path.endswith("bad"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert discover(str(tmp_path)) == [found]
