"""A broker's log dirs have the tiers that ZooKeeper has, and lose no data over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.namespaces import create_namespace, delete_namespace, list_namespaces
from logstore.store import LogStore
from reconciler.simulator.admin import BrokerNamespaces, CreateTopic
from tests.logstore.engine import formatted, opened
from tests.reconciler.simulator.admin.admin_bench import AdminBench, Crank, take_away

ID = TopicId(bytes(range(16)))


class OnBroker:
    """A store of two log dirs that follows the namespaces of a cluster."""

    def __init__(self, bench: AdminBench, root: Path, scheme: str) -> None:
        self.paths = [formatted(root / f"disk{number}", number, scheme=scheme) for number in (1, 2)]
        self.store: LogStore = opened(*self.paths)
        self.said: list[str] = []
        self.bench = bench
        self.later = Crank()
        self.namespaces = BrokerNamespaces(self.store, bench.session, self.later, self.said.append)

    def tiers(self) -> list[str]:
        return list_namespaces(self.store)


@pytest.fixture
def broker(apache: AdminBench, tmp_path: Path) -> Iterator[OnBroker]:
    found = OnBroker(apache, tmp_path, "namespaced")
    found.namespaces.start()
    yield found
    found.store.close()


def test_a_broker_that_starts_gets_the_tiers_that_there_are_on_every_disk(broker: OnBroker) -> None:  # KIP37-2
    assert broker.tiers() == ["org", "org:apache", "org:apache:kafka"]
    assert all((path / "org" / "apache" / "kafka").is_dir() for path in broker.paths)
    broker.store.create(TopicPartition("org:apache:orders", 0), ID)
    assert [path for path in broker.paths if (path / "org" / "apache" / "orders-0").is_dir()]


def test_a_namespace_that_comes_or_goes_does_so_on_the_disks(broker: OnBroker) -> None:  # KIP37-3
    broker.bench.admin.create_namespace("net")
    broker.bench.timers.run()
    assert "net" in broker.tiers()
    broker.bench.admin.delete_namespace("org", recursive=True)
    broker.bench.timers.run()
    assert broker.tiers() == ["net"]
    assert not [path for path in broker.paths if (path / "org").exists()]


def test_a_tier_that_still_holds_a_replica_stays_until_it_is_empty(broker: OnBroker) -> None:  # KIP37-3
    orders = TopicPartition("org:apache:orders", 0)
    broker.bench.admin.create_topics([CreateTopic(orders.topic, 1, 1)])
    replica = broker.store.create(orders, ID)
    broker.bench.admin.delete_namespace("org", recursive=True)
    take_away(broker.bench)
    assert broker.tiers() == ["org", "org:apache"]
    assert broker.store.find(orders) == replica
    said, (look,) = list(broker.said), broker.later.due
    look()
    assert broker.said == said and len(broker.later.due) == 2  # it says nothing twice, and goes on looking
    broker.store.stage([orders], "STALE_ID", "")
    broker.later.run()
    assert broker.tiers() == [] and broker.said[-2:] == [
        "has namespace org:apache no more",
        "has namespace org no more",
    ]


def test_after_the_end_of_its_session_nothing_is_looked_at_again(broker: OnBroker) -> None:
    broker.store.create(TopicPartition("org:apache:orders", 0), ID)
    broker.bench.admin.delete_namespace("org", recursive=True)
    broker.bench.timers.run()
    broker.bench.session.expire()
    broker.later.run()
    assert broker.tiers() == ["org", "org:apache"]


def test_a_disk_that_has_none_gets_them_at_the_next_change(broker: OnBroker) -> None:
    delete_namespace(broker.store, "org", recursive=True)
    broker.bench.admin.create_namespace("net")
    broker.bench.timers.run()
    assert broker.tiers() == ["net", "org", "org:apache", "org:apache:kafka"]


def test_a_namespace_whose_directory_is_a_replicas_keeps_no_other_from_being_made(broker: OnBroker) -> None:  # KIP37-2
    replica = TopicPartition("a", 1)
    broker.store.create(replica, ID)
    for namespace in ("a-1", "b"):
        broker.bench.admin.create_namespace(namespace)
    broker.bench.timers.run()
    assert {"b", "org"} <= set(broker.tiers()) and "a-1" not in broker.tiers()
    assert any("a-1: " in said and "would be one directory, a-1" in said for said in broker.said)
    broker.store.stage([replica], "STALE_ID", "")
    broker.bench.admin.create_namespace("c")
    broker.bench.timers.run()
    assert {"a-1", "c"} <= set(broker.tiers())


@pytest.mark.parametrize("scheme", ["flat", "by-topic-id"])
def test_where_log_dirs_have_no_tiers_nothing_is_done(apache: AdminBench, tmp_path: Path, scheme: str) -> None:
    broker = OnBroker(apache, tmp_path, scheme)
    broker.namespaces.start()
    apache.admin.create_namespace("net")
    apache.timers.run()
    assert broker.said == []
    assert not [path for path in broker.paths if (path / "org").exists()]
    broker.store.close()


def test_topics_and_their_states_are_no_reason_to_look(broker: OnBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(broker.namespaces, "follow", lambda: looks.append("look"))
    broker.bench.admin.create_topics([CreateTopic("org:orders", 1, 1)])
    broker.bench.lead(TopicPartition("org:orders", 0), 1, [1])
    broker.bench.timers.run()
    assert looks == []


def test_tiers_that_zookeeper_has_not_go_at_the_start_the_inner_ones_first(apache: AdminBench, tmp_path: Path) -> None:
    broker = OnBroker(apache, tmp_path, "namespaced")
    create_namespace(broker.store, "net:old:older")
    broker.namespaces.start()
    assert broker.tiers() == ["org", "org:apache", "org:apache:kafka"]
    broker.store.close()
