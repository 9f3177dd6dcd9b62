"""A cluster as a user drives it: topics, records, brokers that stop, crash and start."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.errors import RefusedError, UsageError
from reconciler.simulator.cluster import AnsweredError, Cluster
from reconciler.simulator.cluster.cluster import NotInTimeError
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.kernel import ANONYMOUS, LiveBroker, MetadataRequest, MetadataResponse
from reconciler.simulator.zookeeper import AuthorizerSettings, kafka_paths
from reconciler.sources.zookeeper import Acl, AclOperation, znodes
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)


# CREATE-4
def test_a_topic_that_is_created_has_leaders_znodes_and_replicas_under_its_id(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", 2, 3)
    cluster.run(for_ms=1_000)
    session = cluster.zookeeper.session("test")
    for number in (0, 1):
        partition = TopicPartition("orders", number)
        state = znodes.decode_state(session.get(kafka_paths.state_path(partition)).data)
        assert state is not None
        assert sorted(state.isr) == [1, 2, 3]
        for member in cluster.members.values():
            assert member.broker.store.get(partition).topic_id == topic_id
            hosted = member.broker.replicas.get(partition)
            assert hosted is not None
            assert hosted.leads == (member.node_id == state.leader)


# CREATE-3
def test_partitions_go_through_the_states_of_the_controller_and_end_online(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    cluster.create_topic("orders", 1, 2)
    active = cluster.active
    assert active is not None
    context = active.controller.context
    assert context.partition_states.of(ORDERS) is PartitionState.ONLINE
    replicas = [each.node_id for each in cluster.oracle.wanted()[ORDERS]]
    assert {context.replica_states.of(AssignedReplica(ORDERS, each)) for each in replicas} == {ReplicaState.ONLINE}


def test_records_are_read_as_they_were_written_under_the_topic_id_that_counts_now(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    cluster.create_topic("orders", 1, 2)
    first = cluster.produce("orders", 3)
    assert cluster.consume("orders") == first
    cluster.delete_topic("orders")
    assert not cluster.oracle.is_there("orders")
    cluster.create_topic("orders", 1, 2)
    second = cluster.produce("orders", 2)
    assert cluster.consume("orders") == second


# KIP516-9
def test_every_broker_tells_clients_of_topics_with_their_ids(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", 1, 3)
    cluster.run(for_ms=1_000)
    for member in cluster.members.values():
        answer = member.broker.metadata.answer(MetadataRequest())
        assert isinstance(answer, MetadataResponse)
        assert [(each.topic, each.topic_id) for each in answer.topics] == [("orders", topic_id)]


# KIP516-5, KIP516-6, KIP516-10
def test_a_description_has_the_lags_of_all_leaders_and_the_end_points_of_the_brokers(
    new_cluster: NewCluster,
) -> None:  # KIP4-1
    cluster = new_cluster()
    cluster.create_topic("orders", assignment={0: [1, 2], 1: [2, 3], 2: [3, 1]})
    cluster.produce("orders", 9)
    cluster.run(for_ms=5_000)
    (found,) = cluster.describe_topics(["orders"])
    assert [each.lags for each in found.partitions] == [{1: 0, 2: 0}, {2: 0, 3: 0}, {3: 0, 1: 0}]
    cluster.stop_broker(3)
    cluster.run_until("broker 3 is gone", lambda: 3 not in cluster.oracle.brokers())
    cluster.run(for_ms=1_000)
    (found,) = cluster.describe_topics()
    assert [(each.leader, each.error, sorted(each.lags)) for each in found.partitions] == [
        (1, KafkaError.NONE, [1, 2]),
        (2, KafkaError.NONE, [2, 3]),
        (1, KafkaError.NONE, [1, 3]),
    ]
    active = cluster.active
    assert active is not None
    assert active.admin.describe_brokers() == [LiveBroker(1, "broker-1", 9092), LiveBroker(2, "broker-2", 9092)]


def test_stale_state_of_a_topic_that_was_created_again_is_staged_and_purged_after_its_delay(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster()
    first = cluster.create_topic("orders", 1, 3)
    cluster.produce("orders", 2)
    cluster.stop_broker(2)
    cluster.delete_topic("orders")
    second = cluster.create_topic("orders", assignment={0: [1, 2, 3]})
    cluster.start_broker(2)
    cluster.run(for_ms=5_000)
    store = cluster.members[2].broker.store
    (staged,) = store.staged()
    assert (staged.topic_id, staged.partition) == (first, ORDERS)
    assert staged.record is not None
    assert staged.record.due_ms == staged.record.staged_ms + 300_000
    assert store.get(ORDERS).topic_id == second
    cluster.run(for_ms=240_000)
    assert store.staged() == [staged]
    cluster.run(for_ms=130_000)
    assert store.staged() == []


def test_a_broker_that_crashed_is_registered_when_its_start_is_over_though_its_old_session_lived_on(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster()
    before = cluster.members[2].broker.broker.broker_epoch
    cluster.crash_broker(2)
    assert not cluster.members[2].running
    assert 2 in cluster.oracle.brokers()
    cluster.start_broker(2)
    assert cluster.members[2].broker.broker.broker_epoch > before


def test_what_does_not_happen_in_time_is_an_error_with_the_end_of_the_history(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    with pytest.raises(NotInTimeError, match=r"(?s)waited 0\.5 s of simulated time, and not: pigs fly; .*registered"):
        cluster.run_until("pigs fly", lambda: False, 500)
    assert cluster.world.now_ms >= 500


def test_what_the_controller_refuses_is_an_error_with_its_words(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    with pytest.raises(RefusedError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.delete_topic("orders")
    with pytest.raises(RefusedError, match="INVALID_REPLICATION_FACTOR"):
        cluster.create_topic("orders", 1, 9)
    with pytest.raises(NotInTimeError, match="nothing takes a record"):
        cluster.produce("nothing")


def test_without_a_controller_a_command_waits_for_one_in_vain(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1)
    cluster.stop_broker(1)
    assert cluster.active is None
    with pytest.raises(NotInTimeError, match="there is a controller"):
        cluster.delete_topic("orders")


def test_every_event_calls_happened_in_whichever_way_it_was_run(new_cluster: NewCluster) -> None:
    cluster, called = new_cluster(), list[int]()
    cluster.happened = lambda: called.append(cluster.world.events)
    before = cluster.world.events
    done = cluster.run(for_ms=20_000)
    assert done > 0
    assert cluster.run(3) == 3
    cluster.run_until("so much time went by", lambda: cluster.world.now_ms > 1_700_000_050_000)
    assert called == list(range(before + 1, cluster.world.events + 1))


def test_time_goes_by_where_nothing_happens(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1)
    cluster.stop_broker(1)
    cluster.run()
    now_ms = cluster.world.now_ms
    assert cluster.run(for_ms=5_000) == 0
    assert cluster.world.now_ms == now_ms + 5_000


def test_a_temporary_folder_goes_with_its_cluster_and_a_given_one_stays(tmp_path: Path) -> None:
    with Cluster() as cluster:
        folder = cluster.folder
        assert sorted(os.listdir(folder)) == ["broker-1", "broker-2", "broker-3"]
    assert not os.path.exists(folder)
    with Cluster(folder=str(tmp_path / "kept")):
        pass
    assert (tmp_path / "kept" / "broker-1" / "disk-1" / "data" / "meta.properties").is_file()


@pytest.mark.parametrize("node_id", [0, 9, "2", None])
def test_a_broker_that_is_not_there_is_said_with_those_that_are(node_id: object) -> None:
    with Cluster() as cluster:
        for act in (cluster.start_broker, cluster.stop_broker, cluster.crash_broker):
            with pytest.raises(UsageError, match=f"there is no broker {node_id!r} in this cluster: 1, 2, 3 are in it"):
                act(node_id)


ANN, BOB, ROOT = "User:ann", "User:bob", "User:root"


@pytest.fixture
def guarded(new_cluster: NewCluster) -> Cluster:
    """A cluster with an authorizer, in which Ann may do everything with orders, and Bob may see it."""
    cluster = new_cluster(authorizer=AuthorizerSettings((ROOT,)))
    rights = [Acl(ANN, AclOperation.ALL), Acl(BOB, AclOperation.DESCRIBE)]
    cluster.command(lambda admin: admin.alter_acls("orders", rights, principal=ROOT))
    cluster.create_topic("orders", principal=ANN)
    return cluster


def answered(error: KafkaError, act: Callable[[], object]) -> None:
    with pytest.raises(AnsweredError) as refused:
        act()
    assert refused.value.error is error


# KIP37-6
def test_brokers_with_an_authorizer_obey_whom_the_acls_let(guarded: Cluster) -> None:
    written = guarded.produce("orders", 2, principal=ANN)
    assert guarded.consume("orders", principal=ANN) == written
    assert guarded.consume("orders", principal=ROOT) == written
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    for principal in (BOB, ANONYMOUS):
        answered(refused, lambda principal=principal: guarded.produce("orders", principal=principal))
        answered(refused, lambda principal=principal: guarded.consume("orders", principal=principal))
        answered(refused, lambda principal=principal: guarded.delete_topic("orders", principal=principal))
        answered(refused, lambda principal=principal: guarded.create_topic("more", principal=principal))
    answered(
        KafkaError.CLUSTER_AUTHORIZATION_FAILED, lambda: guarded.command(lambda each: each.create_namespace("org"))
    )
    guarded.delete_topic("orders", principal=ANN)


# KIP37-6
def test_a_topic_is_hidden_from_whom_may_not_describe_it(guarded: Cluster) -> None:
    guarded.run(for_ms=1_000)
    for principal, seen in ((ANN, ["orders"]), (BOB, ["orders"]), (ANONYMOUS, [])):
        found: list[MetadataResponse] = []
        for topics in ((), ("orders", "nothing")):
            request = MetadataRequest(topics, principal)
            guarded.world.network.call("test", "broker-1", request, found.append)
        guarded.run(for_ms=1_000)
        assert [[topic.topic for topic in answer.topics] for answer in found] == [seen, seen]
        assert (found[0].unknown, found[0].unauthorized) == ((), ())
        hidden = ("nothing",) if seen else ("orders", "nothing")
        assert (found[1].unknown, found[1].unauthorized) == ((), hidden)


def test_a_right_that_is_given_or_taken_counts_at_once(guarded: Cluster) -> None:
    guarded.produce("orders", principal=ANN)
    write = Acl(BOB, AclOperation.WRITE)
    guarded.command(lambda admin: admin.alter_acls("orders", [write], principal=ROOT))
    guarded.produce("orders", principal=BOB)
    guarded.command(lambda admin: admin.alter_acls("orders", removed=[write], principal=ROOT))
    answered(KafkaError.TOPIC_AUTHORIZATION_FAILED, lambda: guarded.produce("orders", principal=BOB))
    assert len(guarded.consume("orders", principal=ANN)) == 2
    assert len(guarded.producer.acknowledged) == 2, "what anybody wrote is looked after"
