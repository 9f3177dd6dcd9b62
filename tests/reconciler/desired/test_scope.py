"""Which metadata speaks for which broker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.desired import (
    BrokerKey,
    Completeness,
    DesiredBuilder,
    DesiredState,
    JudgedBroker,
    MetadataIdentity,
    RegisteredLogDir,
    by_cluster,
    is_own_copy,
    registered_log_dirs,
    speaking,
)
from reconciler.errors import RefusedError


def state(cluster: str | None, *topics: str, **identity: object) -> DesiredState:
    builder = DesiredBuilder()
    for topic in topics or ("t",):
        builder.topic(topic, None)
    return builder.build(MetadataIdentity("kraft", f"/metadata/{cluster}", cluster, **identity))  # type: ignore[arg-type]


def test_a_state_speaks_for_the_cluster_it_names() -> None:
    one = state("c1")
    assert by_cluster([one], {"c1", "c2"}) == {"c1": one}


def test_a_state_without_a_cluster_speaks_for_the_only_one() -> None:
    one = state(None)
    assert by_cluster([one], {"c1", ""}) == {"c1": one}


def test_a_state_without_a_cluster_speaks_for_log_dirs_without_one() -> None:
    one = state(None)
    assert by_cluster([one], {""}) == {"": one}


def test_a_state_without_a_cluster_is_refused_where_several_could_be_meant() -> None:
    with pytest.raises(RefusedError, match="2 clusters"):
        by_cluster([state(None)], {"c1", "c2"})


def test_two_states_for_one_cluster_are_refused() -> None:
    with pytest.raises(RefusedError, match="two metadata sources"):
        by_cluster([state("c1"), state("c1")], {"c1"})


def test_metadata_of_another_cluster_is_refused_with_both_ids() -> None:
    with pytest.raises(RefusedError, match="cluster c9, the log dirs are of cluster c1"):
        by_cluster([state("c9")], {"c1"})


def test_a_full_state_speaks_completely_for_every_broker_of_its_cluster() -> None:
    brokers = [BrokerKey("c1", 2), BrokerKey("c1", 1), BrokerKey("c2", 1), BrokerKey("c1", -1), BrokerKey("", -1)]
    assert speaking({"c1": state("c1")}, brokers) == [JudgedBroker("c1", 1, True), JudgedBroker("c1", 2, True)]


def test_an_incremental_state_does_not_speak_completely() -> None:
    incremental = state("c1", completeness=Completeness.INCREMENTAL)
    assert speaking({"c1": incremental}, [BrokerKey("c1", 1)]) == [JudgedBroker("c1", 1, False)]


def test_a_scope_leaves_the_other_brokers_unjudged() -> None:
    scoped = state("c1", scope=frozenset({2}))
    assert speaking({"c1": scoped}, [BrokerKey("c1", 1), BrokerKey("c1", 2)]) == [JudgedBroker("c1", 2, True)]


def test_a_state_that_knows_no_topic_speaks_for_nobody() -> None:
    empty = DesiredBuilder().build(MetadataIdentity("zookeeper-snapshot", "/version-2", "c1"))
    assert speaking({"c1": empty}, [BrokerKey("c1", 1)]) == []


def test_registered_log_dirs_are_listed_in_order() -> None:
    builder = DesiredBuilder()
    builder.broker(2, None, False, ["b", "a"])
    builder.broker(1, None, False, [])
    found = registered_log_dirs({"c1": builder.build(MetadataIdentity("kraft", "/metadata", "c1"))})
    assert found == [RegisteredLogDir("c1", 2, "a"), RegisteredLogDir("c1", 2, "b")]


def kept_by(node: int | None, *, runs: bool = False, decides: bool = False) -> DesiredState:
    builder = DesiredBuilder()
    builder.broker(1, 7, False, [])
    builder.broker(2, 7, False, [])
    return builder.build(MetadataIdentity("kraft", "/m", "c1", keeper=node, keeper_runs=runs, keeper_decides=decides))


def test_metadata_is_the_own_copy_of_a_judged_broker_that_does_not_run() -> None:
    judged = [BrokerKey("c1", 1)]
    assert is_own_copy(kept_by(1), judged)
    assert not is_own_copy(kept_by(1, runs=True), judged)
    assert not is_own_copy(kept_by(2), judged)
    assert not is_own_copy(kept_by(None), judged)
    assert not is_own_copy(kept_by(1), [BrokerKey("c2", 1)])
    assert not is_own_copy(kept_by(1, decides=True), judged)  # the only voter: nothing was decided since
    cut = kept_by(1, decides=True)
    cut = replace(cut, identity=replace(cut.identity, ends_early=("the log is cut at offset 7",)))
    assert is_own_copy(cut, judged)  # what it decided last is not known
    assert not is_own_copy(kept_by(9), [BrokerKey("c1", 9)])  # not registered as a broker: a controller
