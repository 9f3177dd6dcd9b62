from __future__ import annotations

import os
from typing import Any

import pytest

from logstore.rows import VARYING
from logstore.scan import Glance, Place, look
from logstore.scan.entries import Lot
from logstore.scan.usual_replicas import look_at_usual, usual_columns

NAMES = ["orders-3", "orders-1", "payments-2"]


@pytest.fixture
def place(log_dir: Any) -> Place:
    """A tier with three replicas as a broker writes them, of two topics."""
    for number, name in enumerate(NAMES):
        topic_id = log_dir.other_id if name.startswith("payments") else log_dir.topic_id
        log_dir.replica(f"org/{name}", topic_id, x__log=number, x__index=10)
    return Place("org/", f"{log_dir}/org/", namespace="org:")


def _lot(place: Place) -> Lot:
    return Lot(place, NAMES, [7, 8, 9], [("orders", 3), ("orders", 1), ("payments", 2)])


@pytest.mark.parametrize("sizes", [True, False])
def test_columns_are_those_of_the_rows_that_a_look_at_each_gives(place: Place, sizes: bool) -> None:
    points = {("org:orders", 1): 99}
    glance = Glance(sizes, points)
    usual = look_at_usual(glance, place, NAMES)
    assert usual is not None
    columns = usual_columns(_lot(place), [usual], points)
    assert len(columns) == len(VARYING)
    assert list(zip(*columns, strict=True)) == look(glance, place, list(zip(NAMES, [7, 8, 9], strict=True)))


def test_looks_at_some_at_a_time_are_joined_in_their_order(place: Place) -> None:
    glance = Glance(True)
    looks = [look_at_usual(glance, place, some) for some in (NAMES[:1], NAMES[1:])]
    columns = dict(zip(VARYING, usual_columns(_lot(place), [each for each in looks if each], {}), strict=True))
    assert list(columns["name"]) == [f"org/{name}" for name in NAMES]
    assert list(columns["bytes"]) == [53, 54, 55]
    assert columns["topic_id"][0] == columns["topic_id"][1] != columns["topic_id"][2]
    assert list(columns["end_offset"]) == [None] * 3


def test_a_file_that_was_open_is_not_asked_for_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    lstat = os.lstat

    def noted(path: str) -> os.stat_result:
        asked.append(os.path.basename(path))
        return lstat(path)

    monkeypatch.setattr(os, "lstat", noted)
    look_at_usual(Glance(True), place, ["orders-3"])
    assert sorted(asked) == ["x.index", "x.log"]


@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize("content", [b"", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", None, "gone"])
def test_a_directory_without_a_usual_file_is_left_to_a_look_at_each(
    log_dir: Any, place: Place, content: Any, sizes: bool
) -> None:
    if content != "gone":
        log_dir.replica("org/odd-0", content)
    assert look_at_usual(Glance(sizes), place, [*NAMES, "odd-0"]) is None


def test_leftovers_and_what_is_no_plain_file_are_weighed_the_long_way(log_dir: Any, place: Place) -> None:
    path = log_dir.replica("org/odd-0", y__log=5, y__log__deleted=6, z__swap=1)
    (path / "below").mkdir()
    (path / "link").symlink_to("/dev/zero")
    usual = look_at_usual(Glance(True), place, ["odd-0"])
    (row,) = look(Glance(True), place, [("odd-0", 7)])
    assert usual is not None
    assert usual[1] == [row[VARYING.index("bytes") : VARYING.index("modified_ms") + 1]]
    assert (usual[1][0][0], usual[1][0][2:5]) == (43 + 12, (4, 2, 1))


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file or directory"), PermissionError(13, "denied")])
def test_a_directory_that_cannot_be_weighed_is_left_to_a_look_at_each(
    place: Place, error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str) -> Any:
        raise error

    monkeypatch.setattr(os, "listdir", refusing)
    assert look_at_usual(Glance(True), place, NAMES) is None
