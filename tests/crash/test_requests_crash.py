"""A FULL request, cut short at any step: what lies there is sound, and the same request again brings it to its end."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from unittest.mock import patch

import pytest

from layout.topic import TopicPartition
from logstore.fs import Disk
from reconciler import broker as handler
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState
from tests.crash.engine_histories import (
    CLICKS_ID,
    DISKS,
    ERRORS,
    HOUR_MS,
    NOW_MS,
    ORDERS_ID,
    OURS,
    SEGMENT,
    SIBLING,
    TWO,
    Broker,
    Kind,
    opened,
    recover,
)
from tests.crash.histories import Done, Driver, History
from tests.crash.images import read_tree, write_tree

STALE, GONE, BARE = TopicPartition("orders", 0), TopicPartition("gone", 0), TopicPartition("bare", 0)
BACK, NEW = TopicPartition("clicks", 0), TopicPartition("fresh", 0)
NEW_ORDERS_ID, BARE_ID, FRESH_ID = (type(ORDERS_ID)(bytes([number]) * 16) for number in (7, 8, 9))
WANTED = {STALE: NEW_ORDERS_ID, BARE: BARE_ID, BACK: CLICKS_ID, NEW: FRESH_ID}


def request() -> LeaderAndIsrRequest:
    """It stages two replicas, gives one its ID, brings one back, and has two made; nothing is said to be new."""
    topics = (
        TopicState(at.topic, topic_id, (PartitionState(at.partition, 1, 1, 0, (1,), 0, (1,)),))
        for at, topic_id in WANTED.items()
    )
    return LeaderAndIsrRequest(9, 1, tuple(topics), type=RequestType.FULL)


def full_request(kind: Kind) -> History:
    made = Broker(kind).live(STALE).live(GONE, log_dir=TWO).live(BARE, None)
    before = made.staged(BACK, NOW_MS + HOUR_MS, CLICKS_ID).done()

    def build(root: str) -> None:
        os.rmdir(root)
        write_tree(before, root)

    def act(root: str, disk: Disk, done: Done) -> None:
        with same_names(), opened(root, disk) as store:
            answers = handler.Broker(store).handle(request()).topics
            if all(error.error == 0 for each in answers for error in each.partitions):
                done("handled")

    def check(root: str, done: tuple[str, ...]) -> None:
        copy = f"{root}.again"
        write_tree(read_tree(root), copy)
        with opened(copy) as store:
            assert not store.duplicates
            if "handled" in done:
                # What the request does not name has no answer: where it could not be staged, it may be live still.
                assert {each.partition: each.topic_id for each in store.replicas()}.items() >= WANTED.items()
            answers = handler.Broker(store).handle(request()).topics
            assert [error.error for each in answers for error in each.partitions] == [0] * len(WANTED)
            assert {each.partition: each.topic_id for each in store.replicas()} == WANTED
            assert {(each.partition, each.topic_id) for each in store.staged()} == {
                (STALE, ORDERS_ID),
                (GONE, ORDERS_ID),
            }
        after = read_tree(copy)
        # Not one byte of data is gone: four replicas had a segment, and two of those wait staged.
        assert sum(path.endswith(f"/{SEGMENT}") for path in after) == 4
        with opened(copy) as store:
            handler.Broker(store).handle(request())
        assert read_tree(copy) == after
        shutil.rmtree(copy)

    return History(f"a FULL request, {kind}", build, act, check, recover, disks=DISKS, errors=ERRORS, many_ends=True)


@contextmanager
def same_names() -> Iterator[None]:
    """The same names in every run, so that states of several runs are seen to be the same."""
    names = (uuid.UUID(int=number) for number in count(1))
    with patch("uuid.uuid4", lambda: next(names)):
        yield


@pytest.mark.parametrize("kind", [OURS, SIBLING], ids=str)
def test_a_full_request_that_a_crash_cut_short_is_finished_by_the_same_request(kind: Kind, crash: Driver) -> None:
    # KIP516-5
    assert crash(full_request(kind), crashes=1).cases >= 50


def test_a_full_request_that_a_failure_cut_short_and_then_a_crash_is_finished_too(crash_after_failure: Driver) -> None:
    assert crash_after_failure(full_request(OURS)).cases >= 50
