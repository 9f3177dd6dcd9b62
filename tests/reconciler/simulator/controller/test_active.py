from __future__ import annotations

from logstore import KafkaError
from reconciler.protocol import StopReplicaRequest, StopReplicaResponse
from reconciler.simulator.controller.states import Replica, ReplicaState
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import kafka_paths
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, at


# KIP694-1
def test_modes_are_kept_until_they_are_taken_back_or_the_topic_goes() -> None:
    cluster = Cluster(1)
    cluster.create_topic("orders", {0: [1], 1: [1]}, ID)
    active = cluster.controller.work
    active.set_modes([at("orders", 0), at("orders", 1)], PartitionMode.NONE)
    active.set_modes([at("orders", 0)], PartitionMode.READ_WRITE)
    assert active.core.context.modes == {at("orders", 1): PartitionMode.NONE}
    cluster.controller.delete_topics(["orders"])
    assert active.core.context.modes == {}


# KIP516-10
def test_the_answer_for_a_topic_that_was_deleted_is_not_taken_for_one_of_the_same_name() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.brokers[2].silent = True
    cluster.controller.delete_topics(["orders"])
    cluster.create_topic("orders", {0: [1, 2], 1: [1, 2]}, OTHER_ID)
    cluster.controller.work.deletions.begin_partitions([at("orders", 0)])
    cluster.settle()
    states = cluster.controller.context.replica_states
    assert states.of(Replica(at("orders"), 2)) is ReplicaState.DELETION_STARTED
    garbage = cluster.controller.work.garbage
    assert garbage.state_of(ID, Replica(at("orders"), 2)) is ReplicaState.DELETION_STARTED
    cluster.brokers[2].silent = False
    cluster.timers.pass_time(5_000)
    assert garbage.topics() == []
    assert list(cluster.topic("orders").partitions) == [1]
    ids = [topic.topic_id for each in cluster.brokers[2].of(StopReplicaRequest) for topic in each.topics]
    assert ids == [ID, OTHER_ID]


def test_a_partition_that_an_answer_leaves_out_was_not_deleted(monkeypatch) -> None:
    cluster = Cluster(1, topic_ids=False)
    cluster.create_topic("orders", {0: [1]})
    answer = cluster.brokers[1].answer

    def forgetful(request):
        given = answer(request)
        return StopReplicaResponse(KafkaError.NONE) if isinstance(request, StopReplicaRequest) else given

    monkeypatch.setattr(cluster.brokers[1], "answer", forgetful)
    cluster.admin.create(kafka_paths.delete_path("orders"))
    cluster.settle()
    state = cluster.controller.context.replica_states.of(Replica(at("orders"), 1))
    assert state is ReplicaState.DELETION_INELIGIBLE
