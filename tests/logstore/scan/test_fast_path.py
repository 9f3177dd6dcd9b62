from __future__ import annotations

import os
from typing import Any

import pytest

from logstore.rows import VARYING
from logstore.scan import Folder, ScanOptions, scan_directories
from logstore.scan.fast_path import look_at_usual, usual_columns
from logstore.scan.listing import FolderBatch

NAMES = ["orders-3", "orders-1", "payments-2"]


@pytest.fixture
def place(log_dir: Any) -> Folder:
    """A tier with three replicas as a broker writes them, of two topics."""
    for number, name in enumerate(NAMES):
        topic_id = log_dir.other_id if name.startswith("payments") else log_dir.topic_id
        log_dir.replica(f"org/{name}", topic_id, x__log=number, x__index=10)
    return Folder("org/", f"{log_dir}/org/", namespace="org:")


def _batch(place: Folder) -> FolderBatch:
    return FolderBatch(place, NAMES, [7, 8, 9], [("orders", 3), ("orders", 1), ("payments", 2)])


@pytest.mark.parametrize("sizes", [True, False])
def test_columns_are_those_of_the_rows_that_a_look_at_each_gives(place: Folder, sizes: bool) -> None:
    points = {("org:orders", 1): 99}
    glance = ScanOptions(sizes, points)
    usual = look_at_usual(glance, place, NAMES)
    assert usual is not None
    columns = usual_columns(_batch(place), [usual], points)
    assert len(columns) == len(VARYING)
    assert list(zip(*columns, strict=True)) == scan_directories(glance, place, list(zip(NAMES, [7, 8, 9], strict=True)))


def test_looks_at_some_at_a_time_are_joined_in_their_order(place: Folder) -> None:
    glance = ScanOptions(True)
    looks = [look_at_usual(glance, place, some) for some in (NAMES[:1], NAMES[1:])]
    columns = dict(zip(VARYING, usual_columns(_batch(place), [each for each in looks if each], {}), strict=True))
    assert list(columns["name"]) == [f"org/{name}" for name in NAMES]
    assert list(columns["bytes"]) == [53, 54, 55]
    assert columns["topic_id"][0] == columns["topic_id"][1] != columns["topic_id"][2]
    assert list(columns["end_offset"]) == [None] * 3


def test_a_file_that_was_open_is_not_asked_for_again(place: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    lstat = os.lstat

    def noted(path: str) -> os.stat_result:
        asked.append(os.path.basename(path))
        return lstat(path)

    monkeypatch.setattr(os, "lstat", noted)
    look_at_usual(ScanOptions(True), place, ["orders-3"])
    assert sorted(asked) == ["x.index", "x.log"]


@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize("content", [b"", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", None, "gone"])
def test_a_directory_without_a_usual_file_is_left_to_a_look_at_each(
    log_dir: Any, place: Folder, content: Any, sizes: bool
) -> None:
    if content != "gone":
        log_dir.replica("org/odd-0", content)
    assert look_at_usual(ScanOptions(sizes), place, [*NAMES, "odd-0"]) is None


def test_leftovers_and_what_is_no_plain_file_are_weighed_the_long_way(log_dir: Any, place: Folder) -> None:
    path = log_dir.replica("org/odd-0", y__log=5, y__log__deleted=6, z__swap=1)
    (path / "below").mkdir()
    (path / "link").symlink_to("/dev/zero")
    usual = look_at_usual(ScanOptions(True), place, ["odd-0"])
    (row,) = scan_directories(ScanOptions(True), place, [("odd-0", 7)])
    assert usual is not None
    assert usual[1] == [row[VARYING.index("bytes") : VARYING.index("modified_ms") + 1]]
    assert (usual[1][0][0], usual[1][0][2:5]) == (43 + 12, (4, 2, 1))


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file or directory"), PermissionError(13, "denied")])
def test_a_directory_that_cannot_be_weighed_is_left_to_a_look_at_each(
    place: Folder, error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str) -> Any:
        raise error

    monkeypatch.setattr(os, "listdir", refusing)
    assert look_at_usual(ScanOptions(True), place, NAMES) is None
