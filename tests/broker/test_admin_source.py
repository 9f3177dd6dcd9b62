"""Real brokers as a metadata source: the same replicas as their ZooKeeper or their metadata log tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reconciler.desired import Completeness, DesiredState
from reconciler.errors import MetadataError
from reconciler.sources import load
from tools.real_broker.client import until
from tools.real_broker.releases import EACH_WAY

pytestmark = pytest.mark.broker

TOPIC, ALONE = "admin-source", "admin-source-alone"
COLUMNS = ("topic", "topic_id", "partition", "node_id", "leader", "in_sync", "isr_size")
Start = Callable[..., Any]


def rows(state: DesiredState) -> list[tuple[object, ...]]:
    return sorted(tuple(row[name] for name in COLUMNS) for row in state.replicas.to_pylist() if TOPIC in row["topic"])


@pytest.mark.parametrize(("release", "mode"), EACH_WAY)
def test_brokers_tell_the_replicas_that_their_own_metadata_has(shared_cluster: Start, release: str, mode: str) -> None:
    cluster = shared_cluster(release, mode=mode, brokers=2)
    created = cluster.client.create_topic(TOPIC, assignment=[[1, 2], [2, 1]])
    cluster.client.create_topic(ALONE, assignment=[[2]])
    cluster.client.wait_until_in_sync(TOPIC)
    (live,) = load(f"kafka:{cluster.bootstrap}")
    (own,) = load(f"zk:{cluster.zookeeper}" if mode == "zk" else f"kraft:{cluster.metadata.data}")
    assert live.identity.cluster_id == own.identity.cluster_id == cluster.cluster_id
    assert len(rows(live)) == 5
    assert rows(live) == rows(own)
    assert {row[1] for row in rows(live) if row[0] == TOPIC} == {created.topic_id}
    assert sorted(live.brokers["node_id"].to_pylist()) == [1, 2]
    # These brokers have no authorizer, and say so.
    assert live.identity.completeness is Completeness.FULL


@pytest.mark.parametrize(("release", "mode"), [("3.9", "zk"), ("4.3", "kraft")])
def test_replicas_of_a_broker_that_is_down_are_still_reported(start_cluster: Start, release: str, mode: str) -> None:
    cluster = start_cluster(release, mode=mode, brokers=2)
    cluster.client.create_topic(TOPIC, assignment=[[1, 2]])
    cluster.client.create_topic(ALONE, assignment=[[2]])
    cluster.client.wait_until_in_sync(TOPIC)
    cluster.stop_broker(2)
    (state,) = load(f"kafka:{cluster.bootstrap}")
    assert [(row[0], row[3], row[4]) for row in rows(state)] == [
        (TOPIC, 1, True),
        (TOPIC, 2, False),
        (ALONE, 2, False),
    ]
    assert state.brokers["node_id"].to_pylist() == [1]


def test_where_rights_are_checked_topics_may_lack_and_nothing_is_called_unwanted(start_cluster: Start) -> None:
    from confluent_kafka import admin

    kafka: Any = admin
    authorizer = "kafka.security.authorizer.AclAuthorizer"
    rights = {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    cluster = start_cluster("3.9", mode="zk", brokers=1, settings=rights)
    for name in (TOPIC, ALONE):
        cluster.client.create_topic(name, assignment=[[1]])
    denied = kafka.AclBinding(
        *(kafka.ResourceType.TOPIC, ALONE, kafka.ResourcePatternType.LITERAL, "User:ANONYMOUS", "*"),
        *(kafka.AclOperation.DESCRIBE, kafka.AclPermissionType.DENY),
    )
    # Held on to, because what was asked ends with the client.
    client = cluster.client.admin
    for answer in client.create_acls([denied]).values():
        answer.result(30)

    def shorter() -> DesiredState | None:
        (state,) = load(f"kafka:{cluster.bootstrap}")
        return state if state.topics["topic"].to_pylist() == [TOPIC] else None

    state = until("the broker to leave the topic out", shorter, 30)
    assert state.identity.completeness is Completeness.INCREMENTAL
    assert any("kafka-all:" in problem for problem in state.identity.problems)


def test_brokers_that_are_gone_are_one_sentence(start_cluster: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = start_cluster("3.9", brokers=1)
    cluster.stop()
    monkeypatch.setattr("reconciler.sources.kafka.admin.ANSWER_TIMEOUT_S", 1.0)
    with pytest.raises(MetadataError, match="the brokers did not answer everything that was asked"):
        load(f"kafka:{cluster.bootstrap}")
