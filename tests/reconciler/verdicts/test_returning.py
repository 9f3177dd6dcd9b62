"""Which staged replicas are wanted again, and which metadata may be asked about that."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.desired import BrokerKey, Completeness
from reconciler.verdicts import Row, reasons_for_distrust, wanted_again
from reconciler.verdicts.returning import OLDEST_MS
from tests.reconciler.verdicts.test_join import A, B, live, row, state

NOW_MS = 1_700_000_000_000
BROKER = BrokerKey("c1", 1)
PLACE = ("/b1", f"../b1.deleting/{A}_0")


def staged(topic_id: str | None = A, **columns: Any) -> Row:
    return row("staged", name=PLACE[1], topic="orders", partition=0, topic_id=topic_id, due_ms=0) | columns


def test_what_is_wanted_here_under_its_own_id_is_wanted_again() -> None:
    found = wanted_again({"c1": state(("orders", A, [1, 2]))}, [row(), staged()], NOW_MS)
    assert found == {PLACE: f"the metadata wants orders-0 with topic ID {A} here again"}


@pytest.mark.parametrize(
    "topic", [("orders", B, [1, 2]), ("orders", A, [2, 3]), ("payments", B, [1])], ids=["re-created", "moved", "gone"]
)
def test_what_is_still_not_wanted_here_may_go(topic: tuple[str, str, list[int]]) -> None:
    assert wanted_again({"c1": state(topic)}, [row(), staged()], NOW_MS) == {}


def test_a_live_replica_takes_its_place_unless_it_is_unwanted_itself() -> None:
    states = {"c1": state(("orders", A, [1, 2]))}
    assert wanted_again(states, [row(), staged(), live("orders", A)], NOW_MS) == {}
    assert PLACE in wanted_again(states, [row(), staged(), live("orders", B)], NOW_MS), "a stale one is in its way"
    assert PLACE in wanted_again(states, [row(), staged(), live("payments", B)], NOW_MS)


def test_metadata_of_now_that_tells_all_of_the_broker_can_be_asked() -> None:
    remarks = ("2 records of an unknown type are passed over",)
    asked = {"c1": state(("orders", A, [1, 2]), timestamp_ms=NOW_MS, problems=remarks)}
    assert list(reasons_for_distrust(asked, {BROKER}, NOW_MS)) == []


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        ({"timestamp_ms": None}, "does not say as of when it speaks"),
        ({"timestamp_ms": 0}, "does not say as of when it speaks"),
        ({"timestamp_ms": NOW_MS - OLDEST_MS - 1}, "old, and 24 h is the most"),
        ({"timestamp_ms": NOW_MS + 3_600_000}, "which has not come yet: a clock is wrong"),
        ({"timestamp_ms": NOW_MS, "ends_early": ("a batch is cut",)}, "/m is not whole: a batch is cut"),
        ({"timestamp_ms": NOW_MS, "scope": frozenset({2})}, "does not tell all that broker 1 of cluster c1"),
        ({"timestamp_ms": NOW_MS, "completeness": Completeness.INCREMENTAL}, "does not tell all that broker 1"),
    ],
)
def test_metadata_that_cannot_be_trusted_is_not_asked(identity: dict[str, Any], reason: str) -> None:
    asked = {"c1": state(("orders", A, [1, 2]), **identity)}
    assert [reason in each for each in reasons_for_distrust(asked, {BROKER}, NOW_MS)] == [True]


def test_neither_is_metadata_that_is_empty_or_of_another_broker_or_cluster() -> None:
    empty = {"c1": state(timestamp_ms=NOW_MS)}
    assert "knows no topic" in next(reasons_for_distrust(empty, {BROKER}, NOW_MS))
    of_others = {"c1": state(("orders", A, [2, 3]), timestamp_ms=NOW_MS)}
    assert [*reasons_for_distrust(of_others, {BrokerKey("c2", 1)}, NOW_MS)] == [
        "no metadata of its cluster was given for broker 1 of cluster c2"
    ]
