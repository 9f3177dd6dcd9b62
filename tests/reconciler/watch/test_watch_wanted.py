"""The part of a desired state that is about some brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.desired import BrokerKey, Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.watch.wanted import WantedReplicas

A, B = "a" * 21 + "A", "b" * 21 + "A"
ONE = BrokerKey("c", 1)


def state(*partitions: tuple[str, str | None, int, list[int]], **more: Any) -> DesiredState:
    builder = DesiredBuilder()
    for topic, topic_id, partition, replicas in partitions:
        builder.partition(topic, topic_id, partition, replicas, **more)
    return builder.build(MetadataIdentity("kraft", "/m", "c"))


def wanted(*partitions: tuple[str, str | None, int, list[int]], **more: Any) -> WantedReplicas:
    return WantedReplicas({"c": state(*partitions, **more)}, {ONE})


def test_only_the_replicas_of_the_given_brokers_are_kept() -> None:
    both = wanted(("a", A, 0, [1, 2]), ("b", B, 3, [2]))
    assert list(both.of_broker(ONE)) == [("a", 0)]
    assert list(both.of_broker(BrokerKey("c", 2))) == list(both.of_broker(BrokerKey("other", 1))) == []
    assert list(both.of_broker(BrokerKey("", -1))) == []


def test_topics_are_picked_by_name_and_by_id() -> None:
    both = wanted(("a", A, 0, [1]), ("b", B, 0, [1]), ("old", None, 0, [1]))
    assert both.about("c", {"a"}, set())["c"].replicas["topic"].to_pylist() == ["a"]
    picked = both.about("c", {"old", "\udcff"}, {B})["c"]
    assert sorted(picked.topics["topic"].to_pylist()) == ["b", "old"]
    assert both.about("other", {"a"}, set()) == {}


def test_a_state_that_knows_topics_speaks_though_none_of_them_is_meant() -> None:
    assert wanted(("a", A, 0, [1])).about("c", {"x"}, set())["c"].topics.num_rows == 1
    assert wanted().about("c", {"x"}, set())["c"].topics.num_rows == 0


@pytest.mark.parametrize(
    ("after", "touched"),
    [
        (wanted(("b", B, 0, [1]), ("a", A, 0, [1, 2])), set()),
        (wanted(("a", A, 0, [1]), ("b", B, 0, [1]), isr=[1], leader=1, leader_epoch=7), set()),
        (wanted(("a", A, 0, [2]), ("b", B, 0, [1])), {"a", A}),
        (wanted(("a", A, 0, [1]), ("a", A, 1, [1]), ("b", B, 0, [1])), {"a", A}),
        (wanted(("a", A, 0, [1])), {"b", B}),
        (wanted(("a", A, 0, [1]), ("b", None, 0, [1])), {"b", B}),
        (wanted(("a", B, 0, [1]), ("b", A, 0, [1])), {"a", "b", A, B}),
        (wanted(("a", A, 0, [1]), ("b", B, 0, [1]), ("elsewhere", None, 0, [9])), {"elsewhere"}),
    ],
)
def test_the_topics_of_which_two_states_differ_are_found(after: WantedReplicas, touched: set[str]) -> None:
    before = wanted(("a", A, 0, [1]), ("b", B, 0, [1]))
    assert before.difference(after) == touched
    assert after.difference(before) == touched


def test_another_scope_may_change_everything() -> None:
    full = state(("a", A, 0, [1]))
    others = [
        {"c": replace(full, identity=replace(full.identity, completeness=Completeness.INCREMENTAL))},
        {"c": replace(full, identity=replace(full.identity, scope=frozenset({1})))},
        {"c": state()},
        {},
        {"d": full},
    ]
    before = WantedReplicas({"c": full}, {ONE})
    assert [before.difference(WantedReplicas(other, {ONE})) for other in others] == [None] * len(others)
