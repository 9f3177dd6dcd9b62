"""Shared by the histories that stage and restore: the acts, each saying what it has done, and what that promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from layout.topic import TopicPartition
from logstore.store import LogStore
from tests.crash.engine_histories import wanted
from tests.crash.histories import Done
from tests.crash.images import Tree
from tests.crash.replicas import records


def stage(store: LogStore, done: Done, *partitions: TopicPartition) -> None:
    wanted(store.stage(partitions, "STALE_ID", "the cluster has it under another ID"), store)
    for partition in partitions:
        done(f"staged {partition}")


def restore(store: LogStore, done: Done, partition: TopicPartition) -> None:
    (staged,) = [each for each in store.staged() if each.partition == partition]
    done(f"about to restore {partition}")
    store.restore(staged)
    done(f"restored {partition}")


def said_is_so(before: Tree, after: Tree, done: Sequence[str]) -> None:
    """What the engine said it had done lasts, unless it said the opposite later."""
    last = {at: verb for verb, _, at in (text.rpartition(" ") for text in done)}
    staged = Counter(str(TopicPartition(record.topic, record.partition)) for record in records(after).values())
    for at, verb in last.items():
        if verb == "staged":
            assert staged[at] == 1, f"{at} is not staged, as was said"
        if verb == "restored":
            assert not staged[at], f"{at} is staged, and was said to be back"
