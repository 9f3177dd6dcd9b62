from __future__ import annotations

import pytest

from reconciler.simulator.controller.context import ControllerContext, LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.settings import ControllerMovedError
from reconciler.simulator.controller.store import ClusterNodes, elect, elected
from reconciler.simulator.zookeeper import (
    BROKERS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_PARTITIONS,
    DELETE_TOPICS,
    LOG_DIR_EVENTS,
    REASSIGN_PARTITIONS,
    TOPICS,
    BadVersionError,
    NoNodeError,
    Session,
    SessionExpiredError,
    ZooKeeper,
    config_path,
    delete_partitions_path,
    make_base,
    state_path,
    topic_path,
)
from reconciler.sources.zookeeper import encode_log_dir_event, encode_topic, znodes
from tests.reconciler.simulator.controller.cluster import ID, HandTimers, at

STATE = LeaderAndIsr(1, 0, (1, 2), 0, 1)


class Bench:
    """One controller's nodes, and somebody else's session."""

    def __init__(self) -> None:
        self.server = ZooKeeper(HandTimers())
        self.other = self.server.session("other")
        make_base(self.other)
        self.steps: list[str] = []
        self.session = self.server.session("broker-1")
        self.context, self.nodes = self.elected(self.session, 1)

    def elected(self, session: Session, node_id: int) -> tuple[ControllerContext, ClusterNodes]:
        won = elect(session, node_id, 0)
        assert won is not None
        context = ControllerContext(*won)
        return context, ClusterNodes(session, context, self.steps.append)

    def create(self, topic: str = "orders") -> None:
        path = topic_path(topic)
        self.other.create(path, encode_topic(ID, {0: (1, 2), 1: (2, 1)}), parents=True)
        self.context.births[topic] = self.other.get(path).czxid


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_first_controller_has_epoch_1_and_the_next_one_more(bench: Bench) -> None:
    assert bench.context.epoch == 1
    assert bench.other.get(CONTROLLER_EPOCH).data == b"1"
    assert elected(bench.other) == 1
    bench.session.expire()
    assert elected(bench.other) is None
    assert bench.elected(bench.other, 2)[0].epoch == 2


def test_nobody_is_elected_while_there_is_a_controller(bench: Bench) -> None:
    assert elect(bench.other, 2, 0) is None
    assert bench.other.get(CONTROLLER_EPOCH).data == b"1"


def test_every_write_of_a_fenced_controller_fails_and_changes_nothing(bench: Bench) -> None:
    bench.create()
    bench.nodes.create_state(at("orders"), STATE)
    bench.nodes.mark("orders")
    bench.other.create(LOG_DIR_EVENTS + "/log_dir_event_", encode_log_dir_event(1), sequence=True)
    bench.other.create(REASSIGN_PARTITIONS, znodes.encode_reassignment({}))
    bench.other.delete(CONTROLLER)
    bench.elected(bench.other, 2)
    before, nodes = bench.server.dump(), bench.nodes
    writes = [
        lambda: nodes.create_state(at("orders", 1), STATE),
        lambda: nodes.write_state(at("orders"), STATE),
        lambda: nodes.write_topic("orders", ID, {}),
        lambda: nodes.delete_topic("orders"),
        lambda: nodes.mark("payments"),
        lambda: nodes.unmark("orders"),
        nodes.take_log_dir_events,
        nodes.end_reassignment,
        lambda: nodes.write_node("/admin/x", b"1"),
        lambda: nodes.delete_node(TOPICS),
    ]
    for write in writes:
        with pytest.raises(ControllerMovedError, match="epoch 1 is fenced by 2"):
            write()
    assert bench.server.dump() == before


def test_a_session_that_is_over_is_distinguished_from_being_fenced(bench: Bench) -> None:
    bench.create()
    bench.session.expire()
    with pytest.raises(SessionExpiredError):
        bench.nodes.write_topic("orders", ID, {})


# CREATE-4
def test_a_state_is_written_with_the_epoch_of_the_controller_and_its_version_is_the_partition_epoch(
    bench: Bench,
) -> None:
    bench.create()
    assert bench.nodes.state(at("orders")) is None
    assert bench.nodes.create_state(at("orders"), STATE) == STATE
    assert bench.nodes.state(at("orders")) == STATE
    written = bench.nodes.write_state(at("orders"), STATE.next(2, (2,)))
    assert written == LeaderAndIsr(2, 1, (2,), 1, 1) == bench.nodes.state(at("orders"))


def test_a_state_that_is_there_already_is_not_created_again(bench: Bench) -> None:
    bench.create()
    bench.nodes.create_state(at("orders"), STATE)
    assert bench.nodes.create_state(at("orders"), STATE.next(2, (2,))) is None
    assert bench.nodes.state(at("orders")) == STATE


def test_a_state_of_another_version_is_not_overwritten(bench: Bench) -> None:
    bench.create()
    bench.nodes.create_state(at("orders"), STATE)
    bench.nodes.write_state(at("orders"), STATE)
    with pytest.raises(BadVersionError):
        bench.nodes.write_state(at("orders"), STATE)


def test_nothing_is_written_to_a_topic_that_was_created_again_under_the_same_name(bench: Bench) -> None:
    bench.create()
    bench.nodes.create_state(at("orders"), STATE)
    known = bench.context.births["orders"]
    bench.other.delete(topic_path("orders"), recursive=True)
    bench.create()
    bench.context.births["orders"] = known
    before = bench.server.dump()
    for write in (
        lambda: bench.nodes.create_state(at("orders"), STATE),
        lambda: bench.nodes.write_state(at("orders"), STATE),
        lambda: bench.nodes.write_topic("orders", ID, {}),
        lambda: bench.nodes.delete_topic("orders"),
    ):
        with pytest.raises(NoNodeError):
            write()
    assert bench.server.dump() == before


def test_a_write_to_a_topic_leaves_partitions_that_others_added_in_the_meantime(bench: Bench) -> None:
    bench.create()
    bench.nodes.write_topic("orders", ID, {0: ReplicaAssignment((1, 2, 3), (3,), (1,))})
    found = bench.nodes.topics()["orders"]
    assert found.assignments == {0: ReplicaAssignment((1, 2, 3), (3,), (1,)), 1: ReplicaAssignment((2, 1))}
    assert b'"version":3' in bench.other.get(topic_path("orders")).data


# KIP694-4
def test_a_partition_goes_with_its_state_in_one_step(bench: Bench) -> None:
    bench.create()
    for partition in (0, 1):
        bench.nodes.create_state(at("orders", partition), STATE)
    bench.steps.clear()
    bench.nodes.write_topic("orders", ID, {1: None})
    assert bench.steps == ["write topic orders"]
    assert list(bench.nodes.topics()["orders"].assignments) == [0]
    assert [path for path in bench.server.dump() if "orders/partitions/1" in path] == []
    assert bench.nodes.state(at("orders")) == STATE


# KIP37-4
def test_topics_and_marks_of_a_namespace_lie_below_its_tiers(bench: Bench) -> None:
    bench.create("org:apache:orders")
    bench.nodes.create_state(at("org:apache:orders"), STATE)
    assert bench.other.find("/brokers/topics/org/apache/orders/partitions/0/state") is not None
    bench.nodes.mark("org:apache:orders")
    bench.nodes.mark("org:payments")
    assert bench.nodes.marked() == ["org:apache:orders", "org:payments"]
    bench.nodes.unmark("org:apache:orders")
    assert bench.nodes.marked() == ["org:payments"]
    bench.nodes.unmark("org:payments")
    assert bench.other.children(DELETE_TOPICS) == []


def test_a_topic_goes_with_its_states_and_its_configs(bench: Bench) -> None:
    bench.create()
    bench.nodes.create_state(at("orders"), STATE)
    bench.other.create(config_path("orders"), b"{}")
    bench.nodes.delete_topic("orders")
    assert [path for path in bench.server.dump() if "orders" in path] == []


def test_reports_of_failed_log_dirs_are_taken_once(bench: Bench) -> None:
    for broker in (3, 1, 3):
        data = encode_log_dir_event(broker)
        bench.other.create(LOG_DIR_EVENTS + "/log_dir_event_", data, sequence=True)
    assert bench.nodes.take_log_dir_events() == [1, 3]
    assert bench.nodes.take_log_dir_events() == []


def test_each_write_is_announced_before_it_is_done(bench: Bench) -> None:
    bench.create()
    bench.nodes.create_state(at("orders"), STATE)
    bench.nodes.write_state(at("orders"), STATE)
    assert bench.steps == ["create state of orders-0", "write state of orders-0"]


def test_a_node_of_an_extension_is_made_changed_and_deleted(bench: Bench) -> None:
    path = delete_partitions_path("orders")
    bench.nodes.write_node(path, b"1")
    bench.nodes.write_node(path, b"2")
    assert bench.other.get(path).data == b"2"
    bench.nodes.delete_node(path)
    bench.nodes.delete_node(path)
    assert bench.other.find(path) is None


def test_the_children_and_the_data_of_an_extensions_nodes_are_read(bench: Bench) -> None:
    root = DELETE_PARTITIONS
    assert (bench.nodes.names(root), bench.nodes.names("/nowhere")) == ([], [])
    for name in ("b", "a"):
        bench.nodes.write_node(f"{root}/{name}", name.encode())
    assert bench.nodes.names(root) == ["a", "b"]
    assert (bench.nodes.node(f"{root}/a"), bench.nodes.node(f"{root}/c")) == (b"a", None)


def test_a_broker_that_registered_after_a_state_was_written_was_restarted(bench: Bench) -> None:
    bench.create()
    bench.nodes.create_state(at("orders"), STATE)
    written = bench.other.get(state_path(at("orders"))).mzxid
    brokers = {1: written + 1, 2: written - 1, 3: written + 5}
    assert bench.nodes.restarted([at("orders"), at("orders", 1)], brokers) == {1}


def test_a_tree_without_any_brokers_has_none(bench: Bench) -> None:
    bench.other.delete(BROKERS)
    assert bench.nodes.brokers() == {}
