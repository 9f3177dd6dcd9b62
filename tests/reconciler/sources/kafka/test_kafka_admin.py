"""A live cluster as a metadata source: its address, its state, and a real client against a broker on a socket."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from layout.ids import TopicId
from reconciler.desired import Completeness
from reconciler.errors import MetadataError, UsageError
from reconciler.sources import load
from reconciler.sources.kafka import admin
from reconciler.sources.kafka.admin import LiveCluster, LivePartition
from tests.reconciler.sources.kafka.kafka_broker import CLUSTER, FakeBroker

ORDERS = TopicId.from_halves(-5, 3)
LIVE = LiveCluster(
    CLUSTER,
    (1, 2),
    {"legacy": {0: LivePartition((3,), (), -1)}, "orders": {0: LivePartition((1, 2), (2,), 2)}},
    {"legacy": None, "orders": str(ORDERS)},
    is_whole=True,
)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    with FakeBroker({"orders": (ORDERS, [[1, 2], [2, 1]]), "legacy": (None, [[3]])}) as running:
        yield running


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("k1:9092", ("k1:9092", None)),
        ("k1:9092,[::1]:9093", ("k1:9092,[::1]:9093", None)),
        ("k1:9092?config=/etc/a?b", ("k1:9092", "/etc/a?b")),
    ],
)
def test_an_address_is_servers_and_a_file_of_properties(address: str, expected: tuple[str, str | None]) -> None:
    assert admin.split_address(address) == expected


@pytest.mark.parametrize(
    "address",
    ["", "k1", "k1:", "k1:0", "k1:65536", "a b:1", "k1:1,", "k1:1?config=", "k1:1?a=b", "k1:1/x", "?config=a"],
)
def test_what_is_no_address_is_refused_with_the_form_of_one(address: str) -> None:
    with pytest.raises(UsageError, match=r"kafka:HOST:PORT\[,HOST:PORT…\]\[\?config=FILE\] is expected"):
        admin.load(address)


def test_without_the_client_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UsageError, match=r"pip install 'confluent-kafka>=2.10'"):
        load("kafka:localhost:9092")


def test_the_state_has_what_brokers_tell_and_nulls_for_what_they_do_not() -> None:
    state = admin.state_of(LIVE, "k:1", 77, is_vouched=False)
    names = ("topic", "topic_id", "partition", "node_id", "leader", "in_sync", "isr_size")
    assert [tuple(row[name] for name in names) for row in state.replicas.to_pylist()] == [
        ("legacy", None, 0, 3, False, False, 0),
        ("orders", str(ORDERS), 0, 1, False, False, 1),
        ("orders", str(ORDERS), 0, 2, True, True, 1),
    ]
    for name in ("leader_epoch", "partition_epoch", "directory_id"):
        assert state.replicas[name].null_count == 3
    assert state.brokers.select(["node_id", "broker_epoch", "fenced"]).to_pylist() == [
        {"node_id": 1, "broker_epoch": None, "fenced": False},
        {"node_id": 2, "broker_epoch": None, "fenced": False},
    ]
    identity = state.identity
    assert (identity.source, identity.location, identity.cluster_id) == ("kafka", "k:1", CLUSTER)
    assert (identity.timestamp_ms, identity.offset, identity.epoch) == (77, None, None)
    assert "no reassignments" in identity.problems[0]
    assert "no replica is in sync of 1 partition: legacy-0; which replicas may lead" in identity.problems[1]


@pytest.mark.parametrize(
    ("is_whole", "is_vouched", "expected"),
    [(True, False, "FULL"), (False, False, "INCREMENTAL"), (False, True, "FULL"), (True, True, "FULL")],
)
def test_a_list_that_may_be_shorter_never_counts_as_complete(is_whole: bool, is_vouched: bool, expected: str) -> None:
    identity = admin.state_of(replace(LIVE, is_whole=is_whole), "k:1", 1, is_vouched=is_vouched).identity
    assert identity.completeness is Completeness(expected)
    assert any("kafka-all: vouches" in text for text in identity.problems) is (expected == "INCREMENTAL")


def test_the_digest_changes_with_the_content_alone() -> None:
    def digest(cluster: LiveCluster, now_ms: int = 1) -> str:
        return admin.state_of(cluster, "k:1", now_ms, is_vouched=False).identity.digest

    others = [
        replace(LIVE, cluster_id="other"),
        replace(LIVE, brokers=(1,)),
        replace(LIVE, topic_ids={"legacy": None, "orders": None}),
        replace(LIVE, topics={**LIVE.topics, "legacy": {0: LivePartition((4,), (), -1)}}),
    ]
    assert digest(LIVE) == digest(LIVE, 2)
    assert len({digest(LIVE), *map(digest, others)}) == 5


def test_a_real_client_reads_a_cluster_that_checks_no_rights(broker: FakeBroker) -> None:
    (state,) = load(f"kafka:{broker.address}")
    assert (state.identity.cluster_id, state.identity.completeness) == (CLUSTER, Completeness.FULL)
    assert state.topics.to_pylist() == [
        {"topic": "legacy", "topic_id": None, "partitions": 1},
        {"topic": "orders", "topic_id": str(ORDERS), "partitions": 2},
    ]
    rows = [(row["topic"], row["partition"], row["node_id"], row["leader"]) for row in state.replicas.to_pylist()]
    assert rows == [
        ("legacy", 0, 3, True),
        ("orders", 0, 1, True),
        ("orders", 0, 2, False),
        ("orders", 1, 2, True),
        ("orders", 1, 1, False),
    ]


def test_topics_that_the_user_may_not_see_are_not_judged_unless_somebody_vouches(broker: FakeBroker) -> None:
    broker.authorizer, broker.hidden = "org.apache.kafka.StandardAuthorizer", {"legacy"}
    (state,) = load(f"kafka:{broker.address}")
    assert state.topics["topic"].to_pylist() == ["orders"]
    assert state.identity.completeness is Completeness.INCREMENTAL
    assert load(f"kafka-all:{broker.address}")[0].identity.completeness is Completeness.FULL


def test_properties_come_from_a_file_and_the_address_from_the_command_line(broker: FakeBroker, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# of the operator\nclient.id = auditor\nbootstrap.servers=nowhere.invalid:1\n")
    assert load(f"kafka:{broker.address}?config={file}")[0].identity.cluster_id == CLUSTER


@pytest.mark.parametrize(
    "text", ["no.such.property=1\n", "security.protocol=NONE\n", "sasl.jaas.config=x\n", "a=\\u12\n"]
)
def test_a_property_that_is_none_is_refused_without_its_value(tmp_path: Path, text: str) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    file = tmp_path / "client.properties"
    file.write_text(text + "sasl.password=hunter2\n")
    with pytest.raises(UsageError, match=r"client\.properties") as caught:
        load(f"kafka:127.0.0.1:1?config={file}")
    assert "hunter2" not in str(caught.value)


def test_an_absent_file_of_properties_is_an_error() -> None:
    with pytest.raises(UsageError, match="/absent: no such file"):
        load("kafka:k:1?config=/absent")


def test_a_port_where_nobody_listens_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    monkeypatch.setattr(admin, "ANSWER_TIMEOUT_S", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(MetadataError, match=r"Connection refused.*Check host and port"):
            load(f"kafka:127.0.0.1:{closed.getsockname()[1]}")
    assert capfd.readouterr() == ("", "")


def test_a_server_that_is_no_broker_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    monkeypatch.setattr(admin, "ANSWER_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(MetadataError, match=f"{address}: the brokers did not answer everything that was asked"):
            load(f"kafka:{address}")
    assert capfd.readouterr() == ("", "")
