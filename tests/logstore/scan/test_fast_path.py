from __future__ import annotations

import os
from typing import Any

import pytest

from logstore.rows import VARYING
from logstore.scan import Folder, ScanOptions, scan_directories
from logstore.scan.fast_path import fast_path_columns, scan_fast
from logstore.scan.listing import FolderBatch

NAMES = ["orders-3", "orders-1", "payments-2"]


@pytest.fixture
def folder(log_dir: Any) -> Folder:
    """A tier with three replicas as a broker writes them, of two topics."""
    for number, name in enumerate(NAMES):
        topic_id = log_dir.other_id if name.startswith("payments") else log_dir.topic_id
        log_dir.replica(f"org/{name}", topic_id, x__log=number, x__index=10)
    return Folder("org/", f"{log_dir}/org/", namespace="org:")


def _batch(folder: Folder) -> FolderBatch:
    return FolderBatch(folder, NAMES, [7, 8, 9], [("orders", 3), ("orders", 1), ("payments", 2)])


@pytest.mark.parametrize("sizes", [True, False])
def test_columns_are_those_of_the_rows_that_a_look_at_each_gives(folder: Folder, sizes: bool) -> None:
    points = {("org:orders", 1): 99}
    options = ScanOptions(sizes, points)
    fast = scan_fast(options, folder, NAMES)
    assert fast is not None
    columns = fast_path_columns(_batch(folder), [fast], points)
    assert len(columns) == len(VARYING)
    assert list(zip(*columns, strict=True)) == scan_directories(
        options, folder, list(zip(NAMES, [7, 8, 9], strict=True))
    )


def test_looks_at_some_at_a_time_are_joined_in_their_order(folder: Folder) -> None:
    options = ScanOptions(True)
    looks = [scan_fast(options, folder, some) for some in (NAMES[:1], NAMES[1:])]
    columns = dict(zip(VARYING, fast_path_columns(_batch(folder), [each for each in looks if each], {}), strict=True))
    assert list(columns["name"]) == [f"org/{name}" for name in NAMES]
    assert list(columns["bytes"]) == [53, 54, 55]
    assert columns["topic_id"][0] == columns["topic_id"][1] != columns["topic_id"][2]
    assert list(columns["end_offset"]) == [None] * 3


@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize("content", [b"", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", None, "gone"])
def test_a_directory_with_an_odd_file_is_left_to_the_slow_path(
    log_dir: Any, folder: Folder, content: Any, sizes: bool
) -> None:
    if content != "gone":
        log_dir.replica("org/odd-0", content)
    assert scan_fast(ScanOptions(sizes), folder, [*NAMES, "odd-0"]) is None


def test_leftovers_are_weighed_and_what_is_no_plain_file_is_not(log_dir: Any, folder: Folder) -> None:
    path = log_dir.replica("org/odd-0", y__log=5, y__log__deleted=6, z__swap=1)
    (path / "below").mkdir()
    (path / "link").symlink_to("/dev/zero")
    fast = scan_fast(ScanOptions(True), folder, ["odd-0"])
    (row,) = scan_directories(ScanOptions(True), folder, [("odd-0", 7)])
    assert fast is not None
    assert fast[1] == [row[VARYING.index("bytes") : VARYING.index("modified_ms") + 1]]
    assert (fast[1][0][0], fast[1][0][2:5]) == (43 + 12, (4, 2, 1))


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file or directory"), PermissionError(13, "denied")])
def test_a_directory_that_cannot_be_weighed_is_left_to_a_look_at_each(
    folder: Folder, error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str) -> Any:
        raise error

    monkeypatch.setattr(os, "listdir", refusing)
    assert scan_fast(ScanOptions(True), folder, NAMES) is None
