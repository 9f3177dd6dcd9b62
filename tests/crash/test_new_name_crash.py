"""A restore under the name that the topic has by now, crashed and failed at every step (KIP37-3, KIP516-13).

The replica is staged under one of its two names or live under the new one, whole, with its name and its offsets.
"""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ours import encode_header, encode_mark, encode_staged
from layout.scheme import LEDGER_FILE, partition_path
from layout.topic import TopicPartition
from logstore import ChangeFailedError
from logstore.store import LogStore
from tests.crash.engine_histories import (
    BY_ID,
    HOUR_MS,
    IN_PLACE,
    NAMESPACED,
    NOW_MS,
    ONE,
    ORDERS_ID,
    SIBLING,
    SPACE,
    Broker,
    Kind,
    history,
    noting,
    offsets_of,
    orders,
)
from tests.crash.histories import Done, Driver, History
from tests.crash.images import Tree
from tests.crash.replicas import is_staged, records, replicas

EACH = pytest.mark.parametrize("kind", [NAMESPACED, BY_ID, SIBLING, IN_PLACE], ids=str)
SOME = pytest.mark.parametrize("kind", [NAMESPACED, SIBLING], ids=str)
NAMESPACES = (NAMESPACED, BY_ID)


def new_name(kind: Kind) -> TopicPartition:
    return TopicPartition("net:orders" if kind in NAMESPACES else "purchases", 0)


def renamed(kind: Kind, before: Tree) -> Tree:
    """The start, as if the replica had been staged under its new name."""
    tree, at = dict(before), new_name(kind)
    ((path, record),) = records(before).items()
    folder, _, name = path.rpartition("/")
    known = record._replace(topic=at.topic, path=partition_path(kind.paths_by, at, ORDERS_ID))
    lines = encode_header() + encode_staged(name, known)
    tree[f"{folder}/{LEDGER_FILE}"] = lines + encode_mark(len(lines)) + bytes(SPACE)
    if kind.scheme is not None:
        told = partition_metadata.encode_json(ORDERS_ID, at.topic, at.partition)
        tree[f"{path}/{partition_metadata.FILE_NAME}"] = told
    return tree


def restored_under_new_name(kind: Kind) -> History:
    """A replica of a topic that was renamed while it was staged; its former name is another topic's by now."""
    at = new_name(kind)

    def act(store: LogStore, done: Done) -> None:
        (staged,) = store.staged()
        file = Path(staged.log_dir, staged.location, partition_metadata.FILE_NAME)
        metadata = file.read_bytes()
        done("about to restore")
        try:
            back = store.restore(staged, at, ORDERS_ID)
        except ChangeFailedError:
            assert store.staged() == [staged], "it is not as it was, and the log dir is not offline"
            assert file.read_bytes() == metadata, "it has another name, and the log dir is not offline"
            raise
        assert (back.partition, back.topic_id, back.metadata_state) == (at, ORDERS_ID, "ok")
        done("restored")

    def is_live_when_said(before: Tree, after: Tree, done: tuple[str, ...]) -> None:
        live = kind.path(at) in replicas(after)
        assert live or "restored" not in done
        if live:
            data = after[f"{kind.path(at)}/{partition_metadata.FILE_NAME}"]
            assert isinstance(data, bytes)
            assert partition_metadata.contradiction(partition_metadata.parse(data), *at_text(at)) is None
            assert offsets_of(after, ONE, at)
        assert offsets_of(after, ONE, orders(0)) == {}

    def as_it_counts(before: Tree, after: Tree) -> Tree:
        said = [record.topic for path, record in records(after).items() if is_staged(path)]
        return before if said == [orders(0).topic] else renamed(kind, before)

    broker = Broker(kind).staged(orders(0), NOW_MS + HOUR_MS)
    if kind is NAMESPACED:
        broker.tier("net")
    broker.live(orders(1))
    return history("restore under a new name", broker, act, is_live_when_said, started=as_it_counts)


def at_text(at: TopicPartition) -> tuple[str, int]:
    return at.topic, at.partition


@EACH
def test_it_is_whole_under_one_of_its_names_whenever_it_crashes(kind: Kind, crash: Driver) -> None:
    assert crash(restored_under_new_name(kind)).cases >= 15


@SOME
def test_it_is_restored_or_nothing_was_changed_whichever_step_fails(kind: Kind, fail: Driver) -> None:
    # Nothing is undone on a disk that fails, so it may end under either name; ``act`` sees to the others.
    scenario = replace(restored_under_new_name(kind), many_ends=True)
    assert fail(scenario, numbers=[errno.ENOSPC, errno.EIO, errno.EACCES]).steps >= 15


@SOME
def test_it_is_whole_under_one_of_its_names_when_a_failure_is_followed_by_a_crash(
    kind: Kind, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(noting(restored_under_new_name(kind)), bound=16).cases >= 30
