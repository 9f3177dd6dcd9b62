"""Changes of many steps over a store: cut short at every step, they end wholly done or wholly undone.

# KIP37-2 KIP37-3 KIP516-12 KIP516-13
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from layout.scheme import Scheme
from logstore.namespaces import (
    convert,
    create_namespace,
    delete_namespace,
    move_namespace,
    move_topic,
    rename_topic,
)
from logstore.store import LogStore
from tests.logstore.changes import cut_everywhere, fill_store, two_disks
from tests.logstore.engine import opened

Act = Callable[[LogStore], object]


def nothing(paths: list[Path]) -> None:
    """An empty broker."""


def a_topic(paths: list[Path]) -> None:
    with opened(*paths) as store:
        fill_store(store, "orders", "clicks")


def topics_in_namespaces(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "org:apache")
        fill_store(store, "orders", "org:clicks", "org:apache:views")


def with_an_empty_target(paths: list[Path]) -> None:
    topics_in_namespaces(paths)
    with opened(*paths) as store:
        create_namespace(store, "net")


def a_target(paths: list[Path]) -> None:
    a_topic(paths)
    with opened(*paths) as store:
        create_namespace(store, "org:apache")


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where there is such a place, for what is written a thousand times."""
    place = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=place if os.access(place, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("scheme", "build", "act"),
    [
        ("namespaced", nothing, lambda store: create_namespace(store, "org:apache")),
        ("namespaced", a_target, lambda store: move_topic(store, "orders", "org:apache")),
        ("flat", a_topic, lambda store: rename_topic(store, "orders", "purchases")),
        ("by-topic-id", a_topic, lambda store: rename_topic(store, "orders", "org:purchases")),
        ("namespaced", topics_in_namespaces, lambda store: delete_namespace(store, "org", recursive=True)),
        ("namespaced", topics_in_namespaces, lambda store: move_namespace(store, "org", "com:shop")),
        ("namespaced", with_an_empty_target, lambda store: move_namespace(store, "org", "net")),
        ("by-topic-id", a_topic, lambda store: convert(store, Scheme.FLAT)),
        ("flat", a_topic, lambda store: convert(store, Scheme.BY_TOPIC_ID)),
        ("flat", a_topic, lambda store: convert(store, Scheme.NAMESPACED)),
        ("namespaced", topics_in_namespaces, lambda store: convert(store, Scheme.BY_TOPIC_ID)),
    ],
    ids=[
        *("create", "move", "rename", "rename by ID", "delete", "move whole", "move whole to one that is there"),
        *("to flat", "to IDs", "to namespaced", "from tiers"),
    ],
)
def test_a_cut_at_any_step_leaves_it_wholly_done_or_wholly_undone(
    memory: Path, scheme: str, build: Callable[[list[Path]], None], act: Act
) -> None:
    assert cut_everywhere(memory, build, act, scheme=scheme) > 20


def test_each_change_gives_the_plan_that_it_carried_out(memory: Path) -> None:
    paths = two_disks(memory)
    with opened(*paths) as store:
        done = [
            create_namespace(store, "org"),
            fill_store(store, "orders"),
            move_topic(store, "orders", "org"),
            rename_topic(store, "org:orders", "org:purchases"),
            convert(store, Scheme.BY_TOPIC_ID),
            delete_namespace(store, "org", recursive=True),
        ]
        assert [planned.intent.operation for planned in done if planned is not None] == [
            *("create-namespace", "rename-topic", "rename-topic", "convert", "delete-namespace")
        ]
        assert (len(store), len(store.staged())) == (0, 2)


def test_the_index_is_right_without_looking_at_the_disks_again(memory: Path) -> None:
    paths = two_disks(memory, "flat")
    with opened(*paths) as store:
        fill_store(store, "orders", "clicks")
        rename_topic(store, "orders", "purchases")
        convert(store, Scheme.BY_TOPIC_ID)
        kept = sorted(map(repr, store.replicas()))
        store.reload()
        assert [re.sub("inode=[0-9]+", "", each) for each in sorted(map(repr, store.replicas()))] == [
            re.sub("inode=[0-9]+", "", each) for each in kept
        ]
