"""Deleting topics: a mark, by name or by ID, answered at once."""

from __future__ import annotations

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.simulator.admin import CommandOutcome, CreateTopic
from reconciler.simulator.zookeeper import topics_to_delete
from tests.reconciler.simulator.admin.admin_bench import AdminBench


def test_a_topic_is_marked_and_stays_until_the_controller_takes_it(bench: AdminBench) -> None:  # KIP4-1, KIP516-10
    bench.admin.create_topics([CreateTopic("one", 1, 1), CreateTopic("two", 1, 1)])
    assert bench.admin.delete_topics(["one"]) == {"one": CommandOutcome()}
    assert topics_to_delete(bench.session) == ["one"]
    assert bench.admin.list_topics() == ["one", "two"]


def test_a_topic_is_marked_by_its_id(bench: AdminBench) -> None:  # KIP516-10
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    topic_id = TopicId.parse(bench.topic("one").topic_id or "")
    assert bench.admin.delete_topics([topic_id]) == {topic_id: CommandOutcome()}
    assert topics_to_delete(bench.session) == ["one"]


def test_a_mark_that_is_there_already_is_no_error(bench: AdminBench) -> None:
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    assert bench.admin.delete_topics(["one"]) == bench.admin.delete_topics(["one"]) == {"one": CommandOutcome()}


def test_what_is_unknown_is_refused_and_the_rest_is_marked(bench: AdminBench) -> None:  # KIP4-2
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    stranger = TopicId(bytes(range(16)))
    outcomes = bench.admin.delete_topics(["nothing", "one", stranger, "a/b"])
    assert [outcome.error for outcome in outcomes.values()] == [
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.NONE,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert topics_to_delete(bench.session) == ["one"]


def test_a_topic_that_is_named_twice_even_by_its_id_is_refused(bench: AdminBench) -> None:  # KIP4-2
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    topic_id = TopicId.parse(bench.topic("one").topic_id or "")
    outcomes = bench.admin.delete_topics(["one", topic_id])
    assert {outcome.error for outcome in outcomes.values()} == {KafkaError.INVALID_REQUEST}
    assert topics_to_delete(bench.session) == []


def test_a_broker_that_is_not_the_controller_marks_nothing(bench: AdminBench) -> None:
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    bench.controller.active = False
    assert bench.admin.delete_topics(["one"])["one"].error is KafkaError.NOT_CONTROLLER
    assert topics_to_delete(bench.session) == []
