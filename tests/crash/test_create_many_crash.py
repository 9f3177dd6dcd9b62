"""Making many replicas behind one barrier, crashed and failed at every step: each is there whole, or not at all."""

from __future__ import annotations

import pytest

from layout import partition_metadata
from layout.topic import TopicPartition
from logstore import OfflineLogDirError
from logstore.store import LogStore, Replica
from tests.crash.engine_histories import (
    BY_ID,
    CLICKS_ID,
    NAMESPACED,
    ONE,
    OURS,
    SIBLING,
    TWO,
    Broker,
    Kind,
    base,
    history,
    noting,
)
from tests.crash.histories import Done, Driver, History
from tests.crash.images import Tree

COUNT = 4


def create(kind: Kind) -> History:
    """Four new replicas, two for each disk, beside an old one."""
    prefix = "org:apache:" if kind in (NAMESPACED, BY_ID) else ""
    clicks = [TopicPartition(f"{prefix}clicks", number) for number in range(COUNT)]
    old = TopicPartition(f"{prefix}orders", 0)
    broker = Broker(kind)
    if kind is NAMESPACED:
        broker.tier("org", "org/apache")
    broker.live(old)

    def act(store: LogStore, done: Done) -> None:
        refused: Exception | None = None
        for partition, made in store.create_many(dict.fromkeys(clicks, CLICKS_ID)).items():
            if isinstance(made, Replica):
                done(f"created {partition}")
            else:
                refused = made
        if refused is not None:
            raise OfflineLogDirError(str(refused)) if store.offline else refused

    def whole_or_none(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        for partition in clicks:
            lying = [path for at in (ONE, TWO) if (path := kind.path(partition, CLICKS_ID, at)) in after]
            assert len(lying) <= 1
            assert lying or f"created {partition}" not in done
            for path in lying:
                files = {base(each): what for each, what in after.items() if each.startswith(f"{path}/")}
                assert set(files) == {partition_metadata.FILE_NAME}
                assert partition_metadata.parse(files[partition_metadata.FILE_NAME]).topic_id == CLICKS_ID

    return history("create many", broker, act, whole_or_none, new=clicks, many_ends=True)


EACH = pytest.mark.parametrize("kind", [OURS, NAMESPACED, BY_ID, SIBLING], ids=str)


@EACH
def test_whenever_it_crashes_each_is_there_whole_or_not_at_all(kind: Kind, crash: Driver) -> None:
    assert crash(create(kind)).cases >= 20


@EACH
def test_whichever_step_fails_each_is_there_whole_or_not_at_all(kind: Kind, fail: Driver) -> None:
    assert fail(create(kind)).steps >= 20


@pytest.mark.parametrize("kind", [OURS, SIBLING], ids=str)
def test_when_a_failure_is_followed_by_a_crash_each_is_there_whole_or_not_at_all(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(create(kind))).cases >= 20
