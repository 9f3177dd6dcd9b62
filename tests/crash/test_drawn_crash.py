"""Histories that a seed draws: replicas created, staged and restored in any order, also by one process after another.

A few seeds are tried each time, and the restart is not crashed in its turn. A long run does that too, and tries about
a million states::

    .venv/bin/python -m pytest -v -n 2 tests/crash/test_drawn_crash.py --crash-seeds 490 --crash-depth 2

The sum at its end says how many states were tried. ``--crash-seeds 17:18`` tries seed 17 alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random
from unittest.mock import patch

import pytest

from layout.topic import TopicPartition
from logstore.fs import Disk
from logstore.store import LogStore, Replica
from tests.crash.engine_histories import (
    BY_ID,
    CLICKS_ID,
    IN_PLACE,
    ONE,
    OURS,
    SIBLING,
    TWO,
    Broker,
    history,
    orders,
    using,
)
from tests.crash.histories import Done, Driver, History
from tests.crash.images import Tree
from tests.crash.staging_acts import restore, said_is_so, stage

KINDS = (OURS, BY_ID, SIBLING, IN_PLACE)
MOST_NEW = 12


def act_once(store: LogStore, done: Done, random: Random, new: Iterator[TopicPartition]) -> None:
    """Create, stage or restore what the seed draws from what there is."""
    live = sorted(replica.partition for replica in store.replicas() if replica.partition.topic == "orders")
    staged = sorted(each.partition for each in store.staged() if each.partition is not None)
    act = random.choice(["stage"] * bool(live) + ["restore"] * bool(staged) + ["create"])
    if act == "stage":
        partitions = random.sample(live, random.randint(1, len(live)))
        for partition in partitions:
            done(f"about to stage {partition}")
        stage(store, done, *partitions)
    elif act == "restore":
        restore(store, done, random.choice(staged))
    else:
        wanted = [next(new) for _ in range(random.randint(1, 2))]
        for partition, made in store.create_many(dict.fromkeys(wanted, CLICKS_ID)).items():
            assert isinstance(made, Replica), made
            done(f"created {partition}")


def drawn(seed: int) -> History:
    """A short history, the same for the same seed."""
    random = Random(seed)
    kind = random.choice(KINDS)
    broker = Broker(kind)
    for number in range(random.randint(2, 4)):
        broker.live(orders(number), log_dir=random.choice((ONE, TWO)))
    sessions = [random.randint(1, 3) for _ in range(random.randint(1, 3))]
    clicks = [TopicPartition("clicks", number) for number in range(MOST_NEW * len(sessions))]

    def so_it_is(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        said_is_so(before, after, done)
        for partition in clicks:
            lies = any(kind.path(partition, CLICKS_ID, log_dir) in after for log_dir in (ONE, TWO))
            assert lies or f"created {partition}" not in done, f"{partition} is not there, and was said to be"

    made = history(f"seed {seed}", broker, lambda store, done: None, so_it_is, new=clicks)

    def act(root: str, disk: Disk, done: Done) -> None:
        again, new = Random(seed), iter(clicks)
        names = (uuid.UUID(int=number) for number in count(1))
        with patch("uuid.uuid4", lambda: next(names)):
            for acts in sessions:
                with using(root, disk) as store:
                    for _ in range(acts):
                        act_once(store, done, again, new)

    return replace(made, act=act)


def test_whatever_is_done_in_whichever_order_no_crash_loses_it(
    drawn_seed: int, crash: Driver, pytestconfig: pytest.Config
) -> None:
    assert crash(drawn(drawn_seed), crashes=pytestconfig.getoption("--crash-depth")).cases >= 5
