"""Making many replicas behind one barrier, crashed and failed at every step: each is there whole, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import pytest

from layout import partition_metadata
from layout.ids import TopicId
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


def create(kind: Kind, topic_ids: Sequence[TopicId] = (CLICKS_ID,)) -> History:
    """Four new replicas, two for each disk, beside an old one; of one topic, or of several in turn."""
    prefix = "org:apache:" if kind in (NAMESPACED, BY_ID) else ""
    wanted = {
        TopicPartition(f"{prefix}clicks{'' if topic_id == CLICKS_ID else number}", number): topic_id
        for number, topic_id in zip(range(COUNT), cycle(topic_ids), strict=False)
    }
    old = TopicPartition(f"{prefix}orders", 0)
    broker = Broker(kind)
    if kind is NAMESPACED:
        broker.tier("org", "org/apache")
    broker.live(old)

    def act(store: LogStore, done: Done) -> None:
        refused: Exception | None = None
        for partition, made in store.create_many(wanted).items():
            if isinstance(made, Replica):
                done(f"created {partition}")
            else:
                refused = made
        if refused is not None:
            raise OfflineLogDirError(str(refused)) if store.offline else refused

    def whole_or_none(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        for partition, topic_id in wanted.items():
            lying = [path for at in (ONE, TWO) if (path := kind.path(partition, topic_id, at)) in after]
            assert len(lying) <= 1
            assert lying or f"created {partition}" not in done
            for path in lying:
                files = {base(each): what for each, what in after.items() if each.startswith(f"{path}/")}
                assert set(files) == {partition_metadata.FILE_NAME}
                assert partition_metadata.parse(files[partition_metadata.FILE_NAME]).topic_id == topic_id

    return history("create many", broker, act, whole_or_none, new=list(wanted), many_ends=True)


OTHER_PREFIX = TopicId(bytes([0xEE]) * 16)
"""Under the by-topic-id scheme, its directory is made too where it is missing."""

EACH = pytest.mark.parametrize("kind", [OURS, NAMESPACED, BY_ID, SIBLING], ids=str)


@EACH
def test_whenever_it_crashes_each_is_there_whole_or_not_at_all(kind: Kind, crash: Driver) -> None:
    assert crash(create(kind)).cases >= 20


@EACH
def test_whichever_step_fails_each_is_there_whole_or_not_at_all(kind: Kind, fail: Driver) -> None:
    assert fail(create(kind)).steps >= 20


def test_replicas_below_several_prefixes_are_there_whole_or_not_at_all(crash: Driver, fail: Driver) -> None:
    assert crash(create(BY_ID, (CLICKS_ID, CLICKS_ID, OTHER_PREFIX))).cases >= 20
    assert fail(create(BY_ID, (CLICKS_ID, CLICKS_ID, OTHER_PREFIX))).steps >= 20


@pytest.mark.parametrize("kind", [OURS, SIBLING], ids=str)
def test_when_a_failure_is_followed_by_a_crash_each_is_there_whole_or_not_at_all(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(create(kind))).cases >= 20
