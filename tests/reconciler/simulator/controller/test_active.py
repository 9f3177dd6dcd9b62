"""The active controller: its modes, its extensions, its takeover after every crash, and its watches."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import (
    LeaderAndIsrRequest,
    RequestType,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from reconciler.simulator.controller.active import ActiveController, Extension
from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.kernel import AlterIsrRequest, PartitionMode
from reconciler.simulator.zookeeper import (
    DELETE_PARTITIONS,
    DELETE_TOPICS,
    LOG_DIR_EVENTS,
    delete_partitions_path,
    delete_path,
    topic_path,
)
from reconciler.sources.zookeeper import encode_log_dir_event, encode_topic
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, Notes, at, live


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
    assert states.of(AssignedReplica(at("orders"), 2)) is ReplicaState.DELETION_STARTED
    garbage = cluster.controller.work.garbage
    assert garbage.state_of(ID, AssignedReplica(at("orders"), 2)) is ReplicaState.DELETION_STARTED
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
    cluster.admin.create(delete_path("orders"))
    cluster.settle()
    state = cluster.controller.context.replica_states.of(AssignedReplica(at("orders"), 1))
    assert state is ReplicaState.DELETION_INELIGIBLE


def test_an_extension_is_made_at_each_election_and_is_called_in_order() -> None:
    made: list[Extension] = []

    class Counted(Notes):
        def __init__(self, active) -> None:
            super().__init__(active)
            made.append(self)

    cluster = Cluster(3, controllers=(1, 2), extensions=(Counted,))
    cluster.create_topic("orders", {0: [3], 1: [3]}, ID)
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.settle()
    cluster.kill(1)
    assert [each.calls for each in made] == [["loaded", "started", (at("orders", 1),)], ["loaded", "started"]]
    assert cluster.controller.extensions == made[1:]


def test_what_was_being_deleted_under_another_controller_is_deleted_when_the_extension_asks_again() -> None:
    class Again(Notes):
        def started(self) -> None:
            super().started()
            if at("orders", 1) in self.active.core.context.assignments:
                self.active.deletions.begin_partitions([at("orders", 1)])

    cluster = Cluster(3, controllers=(1, 2), extensions=(Again,))
    cluster.create_topic("orders", {0: [3], 1: [3]}, ID)
    cluster.brokers[3].silent = True
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.kill(1)
    cluster.brokers[3].silent = False
    cluster.timers.pass_time(10_000)
    assert list(cluster.topic("orders").partitions) == [0]


def test_two_extensions_take_part_in_the_order_in_which_they_were_given() -> None:
    class Other(Notes):
        pass

    cluster = Cluster(1, extensions=(Other, Notes))
    assert [type(each) for each in cluster.controller.extensions] == [Other, Notes]


def test_a_controller_has_no_extensions_unless_it_is_given_some() -> None:
    assert Cluster(1).controller.extensions == []


ORDERS = at("orders")


def led(**settings: object) -> Cluster:
    """Four brokers, and two controllers of which that of broker 4 is active."""
    cluster = Cluster(4, controllers=(4, 3), **settings)
    cluster.create_topic("orders", {0: [1, 2], 1: [2, 1]}, ID)
    cluster.forget()
    return cluster


def full_requests(cluster: Cluster, broker: int) -> list[LeaderAndIsrRequest]:
    return [each for each in cluster.brokers[broker].of(LeaderAndIsrRequest) if each.type is RequestType.FULL]


# KIP516-5
def test_the_next_controller_has_a_greater_epoch_and_sends_every_broker_one_full_request() -> None:
    cluster = led()
    cluster.kill(4)
    assert (cluster.controller.node_id, cluster.controller.epoch) == (3, 2)
    for number, partitions in ((1, 2), (2, 2), (3, 0)):
        (request,) = full_requests(cluster, number)
        assert request.controller_epoch == 2
        assert sum(len(topic.partitions) for topic in request.topics) == partitions
        assert cluster.brokers[number].of(LeaderAndIsrRequest)[0] is request
    assert cluster.state(ORDERS) == LeaderAndIsr(1, 0, (1, 2), 0, 1)
    assert cluster.controller.context.partition_states.found_in(PartitionState.ONLINE) == [ORDERS, at("orders", 1)]


# KIP516-9
def test_every_broker_gets_everything_again() -> None:
    cluster = led()
    cluster.kill(4)
    metadata = cluster.brokers[3].of(UpdateMetadataRequest)
    assert metadata[0].live_brokers == live(1, 2, 3)
    assert {
        (each.partition, each.leader) for sent in metadata for topic in sent.topics for each in topic.partitions
    } == {
        (0, 1),
        (1, 2),
    }


def test_a_leader_that_went_without_a_controller_is_replaced_and_goes_out_of_sync() -> None:
    cluster = led()
    cluster.sessions[1].expire()
    cluster.brokers[1].up = False
    cluster.kill(4)
    assert cluster.state(ORDERS).isr == (2,)
    assert cluster.state(ORDERS).leader == 2
    assert cluster.state(at("orders", 1)).isr == (2,)


def test_a_broker_that_was_restarted_without_a_controller_goes_out_of_sync() -> None:
    cluster = led()
    cluster.controllers[4].stop()
    cluster.controllers[3].stop()
    cluster.sessions[4].expire()
    cluster.sessions[1].expire()
    epoch = cluster.register(1)
    cluster.start_controller(3)
    cluster.settle()
    assert cluster.state(ORDERS) == LeaderAndIsr(2, 1, (2,), 1, 2)
    assert cluster.state(at("orders", 1)).isr == (2,)
    (request,) = full_requests(cluster, 1)
    assert request.broker_epoch == epoch
    assert cluster.alter_isr(ORDERS, [2, 1]).error is KafkaError.NONE


def test_when_all_brokers_were_restarted_the_last_ones_in_sync_lead_again() -> None:
    cluster = led()
    for number in (1, 2, 3, 4):
        cluster.sessions[number].expire()
    for number in (1, 2, 3, 4):
        cluster.controllers.pop(number, None)
        cluster.register(number)
    cluster.start_controller(2)
    cluster.settle()
    found = cluster.state(ORDERS)
    assert found.leader in (1, 2)
    assert found.leader in found.isr
    assert cluster.controller.context.partition_states.of(ORDERS) is PartitionState.ONLINE
    assert all(len(full_requests(cluster, number)) == 1 for number in (1, 2, 3, 4))


# KIP516-11
def test_topics_from_before_topic_ids_are_given_ids_that_their_brokers_get() -> None:
    cluster = led(topic_ids=False)
    cluster.create_topic("old", {0: [1, 2]})
    cluster.admin.set(topic_path("old"), b'{"version":1,"partitions":{"0":[1,2]}}')
    cluster.kill(4)
    cluster.controllers[3].stop()
    cluster.sessions[3].expire()
    cluster.forget()
    cluster.start_controller(2, topic_ids=True)
    cluster.settle()
    topic_id = cluster.controller.context.topic_ids["old"]
    assert topic_id is not None
    assert cluster.topic("old").topic_id == str(topic_id)
    assert b'"version":3' in cluster.admin.get(topic_path("old")).data
    (request,) = full_requests(cluster, 1)
    assert {topic.topic: topic.topic_id for topic in request.topics} == {"old": topic_id, "orders": ID}
    assert cluster.controller.context.topic_ids["orders"] == ID


def test_a_topic_that_cannot_be_read_makes_no_broker_delete_anything() -> None:
    cluster = led()
    cluster.create_topic("torn", {0: [1, 2]})
    cluster.admin.set(topic_path("torn"), b"{torn")
    cluster.settle()
    cluster.forget()
    cluster.kill(4)
    assert cluster.controller.node_id == 3
    types = {each.type for number in (1, 2, 3) for each in cluster.brokers[number].of(LeaderAndIsrRequest)}
    assert types == {RequestType.INCREMENTAL}
    assert cluster.brokers[1].of(StopReplicaRequest) == []
    assert cluster.said_about("the node of topic torn cannot be read")


def test_a_partition_that_never_had_a_leader_gets_one() -> None:
    cluster = led()
    cluster.controllers[4].stop()
    cluster.admin.create(topic_path("late"), encode_topic(ID, {0: [2, 1]}))
    cluster.sessions[4].expire()
    cluster.settle()
    assert cluster.state(at("late")) == LeaderAndIsr(2, 0, (2, 1), 0, 2)


def test_log_dirs_that_failed_without_a_controller_are_asked_about() -> None:
    cluster = led()
    cluster.controllers[4].stop()
    cluster.brokers[1].leader_errors[ORDERS] = KafkaError.KAFKA_STORAGE_ERROR
    path = f"{LOG_DIR_EVENTS}/log_dir_event_"
    cluster.admin.create(path, encode_log_dir_event(1), sequence=True)
    cluster.sessions[4].expire()
    cluster.settle()
    assert cluster.state(ORDERS).leader == 2
    assert cluster.admin.children(LOG_DIR_EVENTS) == []


class ReadOnly(Notes):
    """Says before anything is sent that nobody may write."""

    def loaded(self) -> None:
        super().loaded()
        self.active.core.context.modes[ORDERS] = PartitionMode.READ_ONLY


# KIP694-1
def test_an_extension_sets_modes_before_the_first_request() -> None:
    cluster = led(extensions=(ReadOnly,))
    cluster.kill(4)
    sent = [
        each
        for request in cluster.brokers[1].of(UpdateMetadataRequest)
        for topic in request.topics
        for each in topic.partitions
        if each.partition == 0
    ]
    assert {each.mode for each in sent} == {PartitionMode.READ_ONLY}
    assert cluster.controller.extensions[0].calls == ["loaded", "started"]


@pytest.mark.parametrize("topic_ids", [True, False])
def test_a_controller_that_crashes_at_any_step_leaves_a_cluster_that_the_next_one_puts_right(topic_ids: bool) -> None:
    """Every step of a small history, in turn: create, delete, re-create, reassign, with a broker that goes."""
    crashed = 0
    for stop_at in range(200):
        steps = [stop_at]

        def crash_now(step: str, steps: list[int] = steps) -> bool:
            steps[0] -= 1
            return steps[0] == -1

        cluster = Cluster(4, controllers=(), topic_ids=topic_ids)
        cluster.start_controller(4, crash_before=crash_now, topic_ids=topic_ids)
        cluster.start_controller(3)
        cluster.settle()

        def survive(cluster: Cluster = cluster) -> None:
            cluster.timers.pass_time(5_000)
            if not cluster.controllers[4].active and cluster.epoch_of(4) >= 0:
                cluster.kill(4)
            cluster.timers.pass_time(5_000)

        survive()
        cluster.create_topic("orders", {0: [1, 2]})
        survive()
        cluster.kill(1)
        survive()
        cluster.admin.create(delete_path("orders"))
        survive()
        cluster.register(1)
        survive()
        cluster.create_topic("orders", {0: [2, 3]})
        survive()
        cluster.controller.reassign({ORDERS: (1, 3)})
        survive()
        for _ in range(2):
            # A crash over a request leaves it without an answer, and the leader asks the next controller.
            state = cluster.state(ORDERS)
            wanted, epoch = (*state.isr, *({1} - {*state.isr})), cluster.epoch_of(state.leader)
            request = AlterIsrRequest(
                state.leader, epoch, ORDERS, None, state.leader_epoch, state.partition_epoch, wanted
            )
            if cluster.controller.context.assignments[ORDERS].is_being_reassigned:
                cluster.controller.handle(f"broker-{state.leader}", request, lambda answer: None)
                survive()
        if steps[0] < 0:
            crashed += 1
        check(cluster, f"crash before step {stop_at}: {cluster.said}")
        if steps[0] >= 0:
            break
    assert crashed > 30


def check(cluster: Cluster, history: str) -> None:
    """ZooKeeper, the controller and every broker believe the same."""
    found, context = cluster.topic("orders"), cluster.controller.context
    assert context.leaving_topics == set(), history
    assert context.assignments[ORDERS].replicas == found.partitions[0], history
    assert cluster.admin.children(DELETE_TOPICS) == [], history
    assert found.partitions[0] in ((2, 3), (1, 3)), history
    assert not context.assignments[ORDERS].is_being_reassigned, history
    state = cluster.state(ORDERS)
    assert state == context.leadership[ORDERS], history
    assert state.leader in found.partitions[0], history
    for broker in found.partitions[0]:
        epochs = [
            each.leader_epoch
            for request in cluster.brokers[broker].of(LeaderAndIsrRequest)
            for topic in request.topics
            if topic.topic_id == context.topic_ids["orders"]
            for each in topic.partitions
        ]
        assert epochs[-1] == state.leader_epoch, history


class Watching(Notes):
    """Watches the requests for fewer partitions."""

    def paths(self) -> list[str]:
        return [DELETE_PARTITIONS]


def count_looks(cluster: Cluster, monkeypatch) -> list[str]:
    looks: list[str] = []
    nodes, read = cluster.controller.work.core.nodes, type(cluster.controller.work.core.nodes).topics

    def counted(self):
        looks.append("topics")
        return read(self)

    monkeypatch.setattr(type(nodes), "topics", counted)
    return looks


def test_many_changes_at_once_lead_to_one_look(monkeypatch) -> None:
    cluster = Cluster(1)
    looks = count_looks(cluster, monkeypatch)
    for number in range(20):
        data = encode_topic(None, {0: [1]})
        cluster.admin.create(topic_path(f"topic-{number}"), data)
    cluster.settle()
    assert len(cluster.controller.context.assignments) == 20
    # One for the topics, one for the IDs that the controller wrote into their nodes.
    assert len(looks) <= 3


def test_what_controllers_write_into_states_leads_to_no_look(monkeypatch) -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    looks = count_looks(cluster, monkeypatch)
    cluster.alter_isr(at("orders"), [1])
    assert looks == []


# KIP694-3
def test_an_extension_is_called_for_changes_below_its_paths() -> None:
    cluster = Cluster(1, extensions=(Watching,))
    path = delete_partitions_path("orders")
    cluster.admin.create(path, b"{}")
    cluster.settle()
    assert cluster.controller.extensions[0].calls == ["loaded", "started", path]


def test_an_extension_of_a_controller_that_resigned_is_not_called() -> None:
    cluster = Cluster(1, extensions=(Watching,))
    (extension,) = cluster.controller.extensions
    cluster.controllers[1].stop()
    cluster.admin.create(delete_partitions_path("orders"), b"{}")
    cluster.settle()
    assert extension.calls == ["loaded", "started"]
    assert isinstance(extension.active, ActiveController)
