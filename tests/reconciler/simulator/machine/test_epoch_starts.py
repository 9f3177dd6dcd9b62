"""Where leader epochs began, and what a leader says of where one ended."""

from __future__ import annotations

import pytest

from reconciler.simulator.kernel import Record
from reconciler.simulator.machine.epoch_starts import EpochStarts


def starts(*epochs: int) -> EpochStarts:
    """Of a log whose records have these epochs."""
    return EpochStarts(Record(offset, epoch, None, "v") for offset, epoch in enumerate(epochs))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (0, (0, 2)),
        (1, (0, 2)),
        (2, (2, 3)),
        (5, (5, 4)),
        (6, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, answer: tuple[int, int]) -> None:
    assert starts(0, 0, 2, 5).end_of(asked, 4) == answer


def test_an_epoch_before_all_that_are_known_ends_where_they_begin() -> None:
    assert starts(3, 3).end_of(1, 2) == (1, 0)


def test_a_log_without_records_knows_of_no_epoch() -> None:
    empty = EpochStarts()
    assert (empty.last, empty.last_start, empty.end_of(0, 0)) == (-1, -1, (-1, -1))


def test_a_leader_that_wrote_nothing_yet_knows_its_own_epoch() -> None:
    found = starts(0, 0)
    found.assign(1, 2)
    assert (found.last, found.last_start) == (1, 2)
    assert found.end_of(0, 2) == (0, 2)
    assert found.end_of(1, 2) == (1, 2)


def test_an_epoch_that_wrote_nothing_gives_way_to_the_next_one() -> None:
    found = starts(0, 0)
    found.assign(1, 2)
    found.assign(4, 2)
    assert found.end_of(2, 3) == (0, 2)


def test_an_epoch_that_is_known_is_not_moved() -> None:
    found = starts(0, 0)
    found.assign(0, 2)
    assert found.last_start == 0


def test_what_begins_behind_a_cut_is_forgotten() -> None:
    found = starts(0, 0, 2, 5)
    found.cut(2)
    assert (found.last, found.end_of(2, 2)) == (0, (-1, -1))
