"""What shows that a replica without a readable topic ID is of the topic that the metadata wants."""

from __future__ import annotations

import pytest

from reconciler.verdicts import JoinedRow, Judged, Neighbours, Verdict, epoch_above, shown_present


def no_id(*, in_sync: bool) -> Judged:
    return Judged(Verdict.NO_ID, "", JoinedRow(), 0, {}, {"in_sync": in_sync, "leader_epoch": 3})


@pytest.mark.parametrize(("on_disk", "is_above"), [(None, False), (-1, False), (0, False), (3, False), (4, True)])
def test_only_an_epoch_that_the_metadata_has_not_reached_is_above(on_disk: int | None, is_above: bool) -> None:
    found = epoch_above(on_disk, no_id(in_sync=False).wanted)
    assert (found is not None) == is_above
    assert epoch_above(on_disk, None) is None and epoch_above(on_disk, {"leader_epoch": None}) is None


@pytest.mark.parametrize(
    ("in_sync", "holders", "on_kraft", "without_file", "shows"),
    [
        (True, 0, True, 1, "in sync"),
        (False, 0, True, 9, None),
        (False, 2, True, 1, "2 other of this broker's replicas"),
        (False, 2, False, 1, None),
        (False, 0, False, 4, None),
        (False, 0, False, 5, "5 of this broker's 10 replicas lack the file"),
    ],
)
def test_what_shows_it(in_sync: bool, holders: int, on_kraft: bool, without_file: int, shows: str | None) -> None:
    found = shown_present(no_id(in_sync=in_sync), Neighbours(holders, on_kraft, 10, without_file))
    assert found is None if shows is None else shows in str(found)
