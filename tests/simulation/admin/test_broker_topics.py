"""A broker's replicas get the name that ZooKeeper has for their topic ID, and nothing else happens to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.admin.broker_namespaces import BrokerNamespaces
from reconciler.simulator.admin.broker_topics import BrokerTopics
from reconciler.simulator.admin.commands import CreateTopic
from tests.logstore.engine import formatted, opened
from tests.simulation.admin.admin_bench import AdminBench

SOURCE, TARGET = TopicPartition("org:orders", 0), TopicPartition("org:apache:orders", 0)


class Moves:
    """A broker with a replica of org:orders, which moves to org:apache."""

    def __init__(self, bench: AdminBench, root: Path, scheme: str) -> None:
        self.bench = bench
        self.log_dir = formatted(root / "disk", scheme=scheme)
        self.store = opened(self.log_dir)
        self.said: list[str] = []
        self.let_go: list[TopicPartition] = []
        BrokerNamespaces(self.store, bench.session, self.said.append).start()
        bench.admin.create_topics([CreateTopic(SOURCE.topic, 1, 1), CreateTopic("other", 1, 1)])
        self.replica = self.store.create(SOURCE, TopicId.parse(bench.topic(SOURCE.topic).topic_id or ""))
        self.topics = BrokerTopics(self.store, bench.session, self.let_go.append, self.said.append)

    def move(self) -> None:
        assert not self.bench.admin.move_topic(SOURCE.topic, "org:apache").message
        self.bench.timers.run()


@pytest.fixture(params=["by-topic-id", "namespaced"])
def moves(apache: AdminBench, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Moves]:
    found = Moves(apache, tmp_path, request.param)
    yield found
    found.store.close()


def test_a_replica_is_renamed_after_its_role_was_let_go(moves: Moves) -> None:  # KIP37-3, KIP516-13
    moves.topics.start()
    moves.move()
    assert moves.store.find(SOURCE) is None
    found = moves.store.find(TARGET)
    assert found is not None and found.topic_id == moves.replica.topic_id
    assert moves.let_go == [SOURCE] and moves.said[-1] == "topic org:orders is org:apache:orders now"
    by_id = moves.replica.path.startswith(str(moves.replica.topic_id.hex[:2]) if moves.replica.topic_id else "?")
    assert (found.path == moves.replica.path) == by_id


def test_a_broker_that_was_down_meanwhile_renames_at_its_start(moves: Moves) -> None:  # KIP516-13
    moves.move()
    assert moves.store.find(SOURCE) is not None
    moves.topics.start()
    assert moves.store.find(TARGET) is not None and moves.store.find(SOURCE) is None


def test_a_topic_that_was_re_created_is_another_topic(moves: Moves) -> None:
    moves.topics.start()
    moves.bench.session.delete("/brokers/topics/org/orders")
    moves.bench.admin.create_topics([CreateTopic(TARGET.topic, 1, 1)])
    moves.bench.timers.run()
    assert moves.store.find(SOURCE) == moves.replica and moves.let_go == []


def test_what_the_disk_refuses_is_said_and_left(apache: AdminBench, tmp_path: Path) -> None:
    moves = Moves(apache, tmp_path, "by-topic-id")
    moves.topics.start()
    moves.store.create(TARGET, TopicId(bytes(range(16))))
    moves.move()
    assert moves.store.find(SOURCE) == moves.replica
    assert "cannot be org:apache:orders here" in moves.said[-1]
    moves.store.close()
