"""A move between two disks, crashed and failed at every step: the replica is live on one of them, whole."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from logstore.store import LogStore
from tests.crash.engine_histories import (
    BY_ID,
    OURS,
    SIBLING,
    TWO,
    TWO_ID,
    Broker,
    Kind,
    history,
    noting,
    orders,
    staged_of,
)
from tests.crash.histories import NUMBERS, Done, Driver, History
from tests.crash.images import Tree

OTHERS = [number for number in NUMBERS if number != errno.ENOSPC]
KINDS = pytest.mark.parametrize("kind", [OURS, BY_ID, SIBLING], ids=str)


def move(kind: Kind) -> History:
    there = kind.path(orders(0), log_dir=TWO)

    def act(store: LogStore, done: Done) -> None:
        store.move(orders(0), TWO_ID)
        done("moved")

    def lies_there(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        assert there in after or "moved" not in done
        assert (there in after) == bool(staged_of(after, orders(0))), "moved or not, and then the original is staged"

    def taken(after: Tree) -> list[str]:
        return staged_of(after, orders(0)) if there in after else []

    return history("move", Broker(kind).live(orders(0)).live(orders(1)), act, lies_there, taken=taken)


@KINDS
def test_whenever_it_crashes_it_lies_on_one_of_the_two_disks(kind: Kind, crash: Driver) -> None:
    assert crash(move(kind)).cases >= 40


@KINDS
def test_whichever_step_fails_it_lies_on_one_of_the_two_disks(kind: Kind, fail: Driver) -> None:
    # Where a broker's disk has no room for a staging root beside the log dir, the original is staged in place.
    assert fail(replace(move(kind), many_ends=kind is SIBLING), numbers=[errno.ENOSPC]).steps >= 30
    assert fail(move(kind), numbers=OTHERS).steps >= 30


@KINDS
def test_when_a_failure_is_followed_by_a_crash_it_lies_on_one_of_the_two_disks(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(move(kind))).cases >= 100
