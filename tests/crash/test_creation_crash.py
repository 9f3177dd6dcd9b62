"""Making replicas, giving them topic IDs and offsets, crashed and failed at every step: wholly or not at all."""

from __future__ import annotations

import pytest

from layout import partition_metadata
from layout.topic import TopicPartition
from logstore.store import LogStore, Replica
from tests.crash.engine_histories import (
    BY_ID,
    CLICKS_ID,
    NAMESPACED,
    ONE,
    ONE_ID,
    ORDERS_ID,
    OURS,
    RECOVERY,
    SIBLING,
    Broker,
    Kind,
    base,
    expected_offsets,
    history,
    noting,
    offsets_of,
    orders,
)
from tests.crash.histories import Done, Driver, History
from tests.crash.images import Tree

CLICKS = TopicPartition("clicks", 0)


def in_kind(kind: Kind, at: TopicPartition) -> TopicPartition:
    return TopicPartition(f"org:apache:{at.topic}", at.partition) if kind in (NAMESPACED, BY_ID) else at


def broker(kind: Kind) -> Broker:
    made = Broker(kind)
    if kind is NAMESPACED:
        made.tier("org", "org/apache")
    return made.live(in_kind(kind, orders(0)))


def create(kind: Kind) -> History:
    """A new replica, and one that gets no topic ID where the scheme allows that."""
    clicks = in_kind(kind, CLICKS)
    path = kind.path(clicks, CLICKS_ID)

    def act(store: LogStore, done: Done) -> None:
        store.create(clicks, CLICKS_ID, directory_id=ONE_ID)
        done("created")

    def whole_or_none(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        if path in after:
            files = {base(each): what for each, what in after.items() if each.startswith(f"{path}/")}
            assert set(files) == {partition_metadata.FILE_NAME}
            assert partition_metadata.parse(files[partition_metadata.FILE_NAME]).topic_id == CLICKS_ID
        assert path in after or "created" not in done

    return history("create", broker(kind), act, whole_or_none, new=[clicks])


def assign(kind: Kind) -> History:
    """A replica from before topic IDs gets one (KIP516-11)."""
    path = f"{kind.path(orders(0), None)}/{partition_metadata.FILE_NAME}"

    def act(store: LogStore, done: Done) -> None:
        store.assign_topic_id(orders(0), ORDERS_ID)
        done("assigned")

    def none_or_that(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        data = after.get(path)
        assert data is None or partition_metadata.parse(data).topic_id == ORDERS_ID
        assert data is not None or "assigned" not in done

    def with_it(before: Tree, after: Tree) -> Tree:
        return {**before, path: after[path]} if path in after else before

    return history("assign", Broker(kind).live(orders(0), None), act, none_or_that, started=with_it)


def assign_many(kind: Kind) -> History:
    """Several replicas from before topic IDs get theirs behind the same barriers (KIP516-11)."""
    numbers = range(3)
    paths = [f"{kind.path(orders(number), None)}/{partition_metadata.FILE_NAME}" for number in numbers]

    def act(store: LogStore, done: Done) -> None:
        found = store.assign_topic_ids({orders(number): ORDERS_ID for number in numbers})
        for outcome in found.values():
            if not isinstance(outcome, Replica):
                raise outcome
        done("assigned")

    def none_or_that(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        for path in paths:
            data = after.get(path)
            assert data is None or partition_metadata.parse(data).topic_id == ORDERS_ID
            assert data is not None or "assigned" not in done

    def with_them(before: Tree, after: Tree) -> Tree:
        return {**before, **{path: after[path] for path in paths if path in after}}

    broker = Broker(kind)
    for number in numbers:
        broker.live(orders(number), None)
    return history("assign many", broker, act, none_or_that, started=with_them, many_ends=True)


def offsets(kind: Kind) -> History:
    """What a broker does with its checkpoints every minute; the same offsets for one replica, others for the next."""
    clicks = in_kind(kind, CLICKS)

    def act(store: LogStore, done: Done) -> None:
        store.write_offsets(RECOVERY, {in_kind(kind, orders(0)): 5, clicks: 77})
        done("written")

    def old_or_new(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        found = offsets_of(after, ONE, clicks)
        old = expected_offsets(clicks)
        assert found == {**old, RECOVERY: 77} or (found == old and "written" not in done)

    return history("write offsets", broker(kind).live(clicks, CLICKS_ID), act, old_or_new, new=[clicks])


HISTORIES = [
    *(create(kind) for kind in (OURS, NAMESPACED, BY_ID, SIBLING)),
    *(assign(kind) for kind in (OURS, SIBLING)),
    *(assign_many(kind) for kind in (OURS, SIBLING)),
    *(offsets(kind) for kind in (OURS, SIBLING)),
]
EACH = pytest.mark.parametrize("scenario", HISTORIES, ids=lambda scenario: scenario.name)


@EACH
def test_whenever_it_crashes_all_of_it_is_there_or_nothing(scenario: History, crash: Driver) -> None:
    assert crash(scenario).cases >= 8


@EACH
def test_whichever_step_fails_all_of_it_is_there_or_nothing(scenario: History, fail: Driver) -> None:
    assert fail(scenario).steps >= 8


@EACH
def test_when_a_failure_is_followed_by_a_crash_all_of_it_is_there_or_nothing(
    scenario: History, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(scenario)).cases >= 8
