from __future__ import annotations

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse
from reconciler.simulator.zookeeper import CONTROLLER, partitions_path, topic_path
from reconciler.sources.zookeeper import decode_controller
from tests.reconciler.simulator.controller.cluster import ID, Cluster, at

ORDERS = at("orders")


def two(**settings: object) -> Cluster:
    cluster = Cluster(3, controllers=(1, 2), **settings)
    cluster.create_topic("orders", {0: [3, 2, 1]}, ID)
    cluster.forget()
    return cluster


def test_of_two_controllers_the_first_leads_and_the_other_follows_when_it_goes() -> None:
    cluster = two()
    assert [each.active for each in cluster.controllers.values()] == [True, False]
    cluster.kill(1)
    assert [each.active for each in cluster.controllers.values()] == [False, True]
    assert decode_controller(cluster.admin.get(CONTROLLER).data) == 2
    assert (cluster.controllers[1].epoch, cluster.controllers[2].epoch) == (0, 2)


def test_a_controller_whose_session_is_over_resigns_at_its_next_look_and_stands_again_with_a_new_one() -> None:
    cluster = two()
    old = cluster.controllers[1]
    cluster.sessions[1].expire()
    cluster.settle()
    assert old.active
    assert cluster.controllers[2].active
    assert old.delete_topics(["orders"]) == {"orders": KafkaError.NOT_CONTROLLER}
    assert not old.active
    assert cluster.exists(topic_path("orders"))
    cluster.register(1)
    old.start(cluster.sessions[1])
    cluster.settle()
    assert not old.active
    cluster.kill(2)
    assert (old.active, old.epoch) == (True, 3)


def test_of_two_that_believe_to_be_the_controller_only_the_newer_one_can_write() -> None:
    cluster = two()
    old, new = cluster.controllers[1], cluster.controllers[2]
    # The old one's node is lost though its session goes on, and it has not heard of that yet.
    cluster.admin.delete(CONTROLLER)
    new.stop()
    new.start(cluster.sessions[2])
    assert (old.active, new.active) == (True, True)
    before = cluster.zookeeper.dump()
    assert old.reassign({ORDERS: (1,)}) == {ORDERS: KafkaError.NOT_CONTROLLER}
    assert cluster.zookeeper.dump() == before
    assert (old.active, new.active) == (False, True)
    assert cluster.said_about("resigns from epoch 1: controller epoch 1 is fenced by 2")


def test_what_a_controller_had_not_sent_when_it_resigned_is_never_sent() -> None:
    cluster = two()
    cluster.brokers[3].silent = True
    cluster.controllers[1].work.core.batch.leader_and_isr([3], ORDERS)
    cluster.controllers[1].work.core.batch.send()
    cluster.settle()
    cluster.kill(1)
    cluster.brokers[3].silent = False
    cluster.timers.pass_time(60_000)
    assert {each.controller_epoch for each in cluster.brokers[3].of(LeaderAndIsrRequest)} == {2}


def test_a_request_is_sent_until_it_is_answered() -> None:
    cluster = two()
    cluster.brokers[3].silent = True
    cluster.create_topic("payments", {0: [3]}, None)
    cluster.timers.pass_time(20_000)
    assert cluster.brokers[3].received == []
    cluster.brokers[3].silent = False
    cluster.timers.pass_time(10_000)
    assert [each.topics[0].topic for each in cluster.brokers[3].of(LeaderAndIsrRequest)] == ["payments"]


def test_one_that_is_not_active_answers_so() -> None:
    cluster, answers = two(), []
    waiting = cluster.controllers[2]
    waiting.handle("broker-3", AlterIsrRequest(3, 1, ORDERS, None, 0, 0, (3,)), answers.append)
    assert answers == [AlterIsrResponse(KafkaError.NOT_CONTROLLER)]
    assert waiting.reassign({ORDERS: (1,)}) == {ORDERS: KafkaError.NOT_CONTROLLER}
    assert waiting.elect_preferred([ORDERS]) == {ORDERS: KafkaError.NOT_CONTROLLER}
    assert waiting.delete_topics(["orders"]) == {"orders": KafkaError.NOT_CONTROLLER}
    assert (waiting.work, waiting.extensions, waiting.context.assignments) == (None, [], {})


def test_a_fenced_controller_does_not_answer_a_leader() -> None:
    cluster, answers = two(), []
    old = cluster.controllers[1]
    cluster.sessions[1].expire()
    old.handle("broker-3", AlterIsrRequest(3, cluster.epoch_of(3), ORDERS, None, 0, 0, (3,)), answers.append)
    assert answers == []
    assert not old.active


def test_a_controller_that_was_stopped_does_nothing_more() -> None:
    cluster = two()
    cluster.controllers[1].stop()
    cluster.create_topic("payments", {0: [1]})
    assert not cluster.exists(partitions_path("payments"))
    cluster.controllers[2].stop()
    cluster.sessions[1].expire()
    cluster.timers.pass_time(60_000)
    assert not cluster.exists(CONTROLLER)


def test_a_crash_at_a_step_leaves_all_before_it_done_and_nothing_after() -> None:
    gone: list[str] = []
    cluster = Cluster(2, controllers=())
    cluster.start_controller(
        1,
        crash_before=lambda step: step == "send LeaderAndIsr to 2" and bool(cluster.brokers[1].of(LeaderAndIsrRequest)),
        crashed=lambda: gone.append("broker 1"),
    )
    cluster.settle()
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    assert gone == ["broker 1"]
    assert not cluster.controllers[1].active
    assert cluster.state(ORDERS).leader == 1
    assert cluster.said_about("crashes: before this step: send LeaderAndIsr to 2")
    assert all(not each.topics for each in cluster.brokers[2].of(LeaderAndIsrRequest))


def test_the_same_events_give_the_same_history() -> None:
    def history() -> tuple[list[str], dict[str, bytes], list[object]]:
        cluster = two()
        cluster.create_topic("payments", {0: [1, 2], 1: [2, 3]})
        cluster.kill(1)
        cluster.controller.reassign({at("payments"): (3, 2)})
        cluster.controller.delete_topics(["orders"])
        cluster.register(1)
        cluster.timers.pass_time(10_000)
        return cluster.said, cluster.zookeeper.dump(), [each.received for each in cluster.brokers.values()]

    assert history() == history()


def test_a_broker_that_was_restarted_is_not_elected_before_the_news_of_it_comes() -> None:
    cluster = two()
    cluster.kill(3)
    cluster.register(3)
    cluster.settle()
    cluster.alter_isr(ORDERS, [2, 1, 3])
    cluster.sessions[3].expire()
    cluster.register(3)
    assert cluster.controller.elect_preferred([ORDERS]) == {ORDERS: KafkaError.PREFERRED_LEADER_NOT_AVAILABLE}
    assert cluster.state(ORDERS).leader == 2
    assert 3 not in cluster.state(ORDERS).isr
