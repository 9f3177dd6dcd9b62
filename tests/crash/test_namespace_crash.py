"""Namespaces and names, crashed and failed at every step on two disks: wholly changed or not at all."""

from __future__ import annotations

import pytest

from layout.topic import TopicPartition
from logstore import InvalidNamespaceError
from logstore.namespaces import (
    create_namespace,
    delete_namespace,
    list_namespaces,
    move_namespace,
    move_topic,
    rename_topic,
)
from logstore.store import LogStore
from tests.crash.engine_histories import (
    BY_ID,
    CLICKS_ID,
    HOUR_MS,
    NAMESPACED,
    NOW_MS,
    OURS,
    TWO,
    Broker,
    Kind,
    history,
    orders,
    wholly_or_not_at_all,
)
from tests.crash.histories import Done, Driver, History

BOUND = 24
"""On combinations at one moment: these histories are the longest, and each step in them is idempotent."""


def clicks(number: int) -> TopicPartition:
    return TopicPartition("org:apache:clicks", number)


def both(kind: Kind) -> Broker:
    """A topic with one partition on each disk, and one of another namespace."""
    broker = Broker(kind)
    if kind is NAMESPACED:
        broker.tier("org", "org/apache", "org/empty")
    broker.live(orders(0)).live(orders(1), log_dir=TWO)
    return broker if kind is OURS else broker.live(clicks(0), CLICKS_ID)


def create() -> History:
    def act(store: LogStore, done: Done) -> None:
        create_namespace(store, "com:example:shop")
        done("created")

    return history("create namespace", both(NAMESPACED), act)


def move() -> History:
    def act(store: LogStore, done: Done) -> None:
        move_topic(store, "orders", "org:apache")
        done("moved")

    return history("move topic", both(NAMESPACED), act)


def rename(kind: Kind) -> History:
    def act(store: LogStore, done: Done) -> None:
        rename_topic(store, "orders", "purchases")
        done("renamed")

    return history("rename topic", both(kind), act)


def delete() -> History:
    """With all that is in it: two replicas on two disks, and tiers without any."""

    def act(store: LogStore, done: Done) -> None:
        delete_namespace(store, "org", recursive=True)
        done("deleted")

    def again(store: LogStore) -> None:
        try:
            create_namespace(store, "org:apache")
        except InvalidNamespaceError:
            assert "org:apache" in list_namespaces(store)

    broker = both(NAMESPACED).live(clicks(1), CLICKS_ID, TWO).staged(clicks(2), NOW_MS + HOUR_MS, CLICKS_ID)
    return history("delete namespace", broker, act, prepare=again)


def move_whole(*, target: str) -> History:
    """With a namespace below it and its topics on two disks, to a name that is new or to one that is there, empty."""

    def act(store: LogStore, done: Done) -> None:
        move_namespace(store, "org", target)
        done("moved")

    broker = both(NAMESPACED).tier("net").live(clicks(1), CLICKS_ID, TWO)
    return history(f"move namespace to {target}", broker, act)


def move_whole_by_id() -> History:
    def act(store: LogStore, done: Done) -> None:
        move_namespace(store, "org", "com:shop")
        done("moved")

    return history("move namespace", both(BY_ID).live(clicks(1), CLICKS_ID, TWO), act)


HISTORIES = [
    wholly_or_not_at_all(scenario)
    for scenario in (
        *(create(), move(), rename(OURS), rename(BY_ID), delete()),
        *(move_whole(target="com:shop"), move_whole(target="net"), move_whole_by_id()),
    )
]
EACH = pytest.mark.parametrize("scenario", HISTORIES, ids=lambda scenario: scenario.name)


@EACH
def test_whenever_it_crashes_it_is_done_wholly_or_not_at_all(scenario: History, crash: Driver) -> None:
    assert crash(scenario, bound=BOUND).cases >= 40


@EACH
def test_whichever_step_fails_it_is_done_wholly_or_not_at_all(scenario: History, fail: Driver) -> None:
    assert fail(scenario).steps >= 30


@EACH
def test_when_a_failure_is_followed_by_a_crash_it_is_done_wholly_or_not_at_all(
    scenario: History, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(scenario, bound=BOUND).cases >= 40
