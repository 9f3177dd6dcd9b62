"""What Kafka keeps in ZooKeeper's nodes, as it writes them and read back (FACTS §8; KIP516-11; KIP37-4)."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.sources.zookeeper import (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    FEWER_PARTITIONS,
    MARKED,
    MIGRATION,
    NAMESPACES_FEATURE,
    TOPICS,
    TopicNode,
    decode_cluster_id,
    decode_features,
    decode_number,
    decode_state,
    decode_topic,
    migrated_to,
    path_of,
    split_topics,
    topic_of,
    znodes,
)

ID = "b8tRS7h4TJ2Vt43Dp85v2A"  # the example of KIP-516


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/brokers/topics", True),
        ("/brokers/topics/orders", True),
        ("/brokers/topics/partitions", True),
        ("/brokers/topics/orders/partitions", False),
        ("/brokers/topics/orders/partitions/0", False),
        ("/brokers/topics/orders/partitions/0/state", True),
        ("/brokers/topics/team/orders/partitions/0/state", True),
        ("/prod/kafka/brokers/topics/orders", True),
        ("/brokers/ids/1", True),
        ("/brokers/ids", False),
        ("/brokers/seqid", False),
        ("/cluster/id", True),
        ("/controller_epoch", True),
        ("/controller", False),
        ("/admin/delete_topics/orders", True),
        ("/admin/delete_topics", False),
        ("/admin/delete_topic_partitions/org:orders", True),
        ("/admin/delete_topic_partitions", False),
        ("/config/topics/orders", False),
        ("/migration", True),
        ("/zookeeper/config", False),
        ("", False),
    ],
)
def test_only_nodes_that_say_what_brokers_should_hold_are_kept(path: str, kept: bool) -> None:
    assert znodes.keep(path) is kept


@given(
    st.lists(
        st.sampled_from(["/brokers/topics", "/partitions", "/state", "/", "/1", "/22", "a", "\n", "/controller_epoch"]),
        max_size=8,
    ).map("".join)
)
def test_of_the_nodes_below_topics_those_that_only_lead_to_states_are_left_out(path: str) -> None:
    leads = re.fullmatch(r".*/brokers/topics/.+/partitions(?:/[0-9]+)?", path, re.DOTALL)
    assert znodes.keep(path) == (znodes.KEPT.fullmatch(path) is not None and leads is None)


def test_a_path_that_repeats_itself_is_judged_in_one_pass() -> None:
    # By a pattern that tried every pair of places, this would take a quarter of a minute.
    assert znodes.keep("/brokers/topics" * 20_000)


def test_a_version_1_topic_has_partitions_and_no_id() -> None:
    node = decode_topic(b'{"version":1,"partitions":{"1":[2],"0":[1,2]}}')
    assert node == TopicNode({0: (1, 2), 1: (2,)}, {}, {}, None, None)


def test_a_version_2_topic_tells_replicas_that_come_and_go() -> None:
    node = decode_topic(
        b'{"version":2,"partitions":{"0":[1,2,3]},"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]}}'
    )
    assert (node.adding, node.removing, node.problem) == ({0: (3,)}, {0: (1,)}, None)


# KIP516-11
@pytest.mark.parametrize("key", ["topic_id", "id"])
def test_a_version_3_topic_has_an_id_under_the_shipped_key_or_the_proposals(key: str) -> None:
    node = decode_topic(json.dumps({"version": 3, key: ID, "partitions": {"0": [0, 1, 3]}}).encode())
    assert (node.topic_id, node.partitions, node.problem) == (ID, {0: (0, 1, 3)}, None)


def test_the_version_number_is_ignored() -> None:
    node = decode_topic(json.dumps({"version": 99, "topic_id": ID, "partitions": {"0": [1]}}).encode())
    assert (node.topic_id, node.partitions) == (ID, {0: (1,)})


def test_a_topic_without_partitions_has_none_and_no_problem() -> None:
    assert decode_topic(b'{"version":3}') == TopicNode({}, {}, {}, None, None)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"17"])
def test_broken_json_is_a_topic_with_no_partitions_and_no_id_and_a_sentence(data: bytes) -> None:
    node = decode_topic(data)
    assert (node.partitions, node.topic_id) == ({}, None)
    assert node.problem


@pytest.mark.parametrize(
    "partitions",
    ["[]", '{"x":[1]}', '{"-1":[1]}', '{"2147483648":[1]}', '{"0":1}', '{"0":["1"]}', '{"0":[true]}', '{"0":[1.0]}',
     '{"0":[-1]}', '{"0":[2147483648]}', '{"٣":[1]}'],
)  # fmt: skip
def test_partitions_of_a_wrong_shape_are_none_with_a_sentence(partitions: str) -> None:
    node = decode_topic(f'{{"topic_id":"{ID}","partitions":{partitions}}}'.encode())
    assert node.partitions == {}
    assert node.topic_id == ID
    assert "'partitions'" in (node.problem or "")


@pytest.mark.parametrize("text", ['"AAAAAAAAAAAAAAAAAAAAAA"', '"short"', "17", "[]", '""'])
def test_a_zero_or_malformed_topic_id_is_none_with_a_sentence(text: str) -> None:
    node = decode_topic(f'{{"partitions":{{"0":[1]}},"topic_id":{text}}}'.encode())
    assert (node.topic_id, node.partitions) == (None, {0: (1,)})
    assert "topic ID" in (node.problem or "")


def test_a_state_has_leader_epoch_and_isr() -> None:
    data = b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":4,"isr":[1,2],"leader_recovery_state":1}'
    assert decode_state(data) == znodes.StateNode(-1, 4, (1, 2), 1)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"leader":1,"leader_epoch":0}', b'{"leader":"1","leader_epoch":0,"isr":[]}']
)
def test_a_state_that_cannot_be_read_is_none(data: bytes) -> None:
    assert decode_state(data) is None


def test_the_cluster_id_is_text() -> None:
    assert decode_cluster_id(b'{"version":"1","id":"XB4QhweWTe-kZwMNW25y1A"}') == "XB4QhweWTe-kZwMNW25y1A"
    assert decode_cluster_id(b'{"version":"1","id":7}') is None
    assert decode_cluster_id(b"") is None


@pytest.mark.parametrize(
    ("text", "number"), [(b"27", 27), ("0", 0), (b"", None), (b"-1", None), (b"2147483648", None), ("1_0", None)]
)
def test_a_number_is_decimal_and_int32(text: bytes | str, number: int | None) -> None:
    assert decode_number(text) == number


def test_a_migration_that_began_names_its_controller() -> None:
    assert migrated_to(b'{"version":0,"kraft_controller_id":3000,"kraft_metadata_offset":10}') == 3000
    assert migrated_to(b'{"version":0,"kraft_controller_id":-1}') is None


def test_the_places_of_clusters_are_the_prefixes_of_their_topics() -> None:
    assert znodes.chroots(["/brokers/topics", "/brokers/ids/1"]) == [""]
    assert znodes.chroots(["/b/brokers/topics", "/a/k/brokers/topics"]) == ["/a/k", "/b"]


def test_a_namespace_called_brokers_is_no_cluster() -> None:
    assert znodes.chroots(["/brokers/topics", "/brokers/topics/x/brokers/topics"]) == [""]


TOPIC = b'{"version":1,"partitions":{"0":[1]}}'


# KIP37-4
def test_topics_below_tiers_have_their_full_names() -> None:
    topics, homes = split_topics(
        {
            "flat": TOPIC,
            "org": b"",
            "org/apache": b"{}",
            "org/apache/orders": TOPIC,
            "org/orders": TOPIC,
            "org/apache/orders/partitions/0/state": b"{}",
        }
    )
    assert list(topics) == ["flat", "org:apache:orders", "org:orders"]
    assert homes == {("org:apache:orders", 0): "org/apache/orders/partitions/0/state"}


def test_a_topic_with_a_stranger_below_it_stays_a_topic() -> None:
    topics, _ = split_topics({"orders": TOPIC, "orders/stranger": TOPIC})
    assert list(topics) == ["orders"]


def test_a_topic_called_partitions_is_a_topic() -> None:
    topics, homes = split_topics({"partitions": TOPIC, "partitions/partitions/0/state": b"{}"})
    assert list(topics) == ["partitions"]
    assert homes == {("partitions", 0): "partitions/partitions/0/state"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=24),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["partitions", "adding_replicas", "removing_replicas", "topic_id", "id", "leader", "isr", "leader_epoch"]
)


@given(st.binary(max_size=60) | st.dictionaries(KEYS, JSON).map(lambda found: json.dumps(found).encode()))
def test_no_data_makes_a_decoder_fail(data: bytes) -> None:
    node = decode_topic(data)
    assert all(type(broker) is int for brokers in node.partitions.values() for broker in brokers)
    decode_state(data)
    decode_cluster_id(data)
    decode_number(data)
    migrated_to(data)


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 2**31 - 1), max_size=4), max_size=5))
def test_partitions_come_back_as_they_were_written(partitions: dict[int, list[int]]) -> None:
    node = decode_topic(znodes.encode_topic(None, partitions))
    assert node.partitions == {key: tuple(value) for key, value in partitions.items()}
    assert node.problem is None


def test_a_topic_is_written_as_version_3() -> None:  # KIP516-11, FACTS §8
    data = znodes.encode_topic(TopicId.parse(ID), {1: (2, 3), 0: (1, 2)}, {0: (2,), 1: ()}, {0: (1,)})
    assert json.loads(data) == {
        "version": 3,
        "topic_id": ID,
        "partitions": {"0": [1, 2], "1": [2, 3]},
        "adding_replicas": {"0": [2]},
        "removing_replicas": {"0": [1]},
    }
    node = znodes.decode_topic(data)
    assert (node.partitions, node.adding, node.removing) == ({0: (1, 2), 1: (2, 3)}, {0: (2,)}, {0: (1,)})
    assert znodes.topic_id_of(node) == TopicId.parse(ID)


def test_a_topic_without_an_id_has_no_key_for_it() -> None:  # KIP516-11
    data = znodes.encode_topic(None, {0: (1,)})
    assert json.loads(data) == {"version": 3, "partitions": {"0": [1]}, "adding_replicas": {}, "removing_replicas": {}}
    assert znodes.topic_id_of(znodes.decode_topic(data)) is None
    assert json.loads(znodes.encode_topic(None, {}, version=znodes.TOPIC_VERSION - 1))["version"] == 2


def test_a_state_is_written_as_kafka_writes_it() -> None:  # CREATE-4, FACTS §8
    data = znodes.encode_state(1, 4, [1, 2], 7)
    assert data == b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    assert znodes.decode_state(data) == znodes.StateNode(1, 4, (1, 2), 7)
    assert znodes.decode_state(b'{"leader":1,"leader_epoch":4,"isr":[1]}') == znodes.StateNode(1, 4, (1,), -1)
    assert znodes.decode_state(b"{") is None


def test_a_registration_names_its_end_point_and_its_rack() -> None:  # FACTS §8
    data = znodes.encode_registration("broker-2", 9092, rack="r1")
    assert json.loads(data)["endpoints"] == ["PLAINTEXT://broker-2:9092"]
    assert znodes.decode_rack(data) == "r1"
    assert znodes.decode_end_point(data) == ("broker-2", 9092)
    for bad in (b"", b"{", b"[]", b'{"host":7,"port":1}', b'{"host":"a","port":"1"}', b'{"host":"a","port":true}'):
        assert znodes.decode_end_point(bad) == ("", -1)
    assert znodes.decode_rack(znodes.encode_registration("broker-2", 9092)) is None


def test_a_registration_names_the_features_that_the_broker_supports() -> None:  # KIP37-4
    newer = znodes.encode_registration("broker-2", 9092, features=(NAMESPACES_FEATURE, "another"))
    assert json.loads(newer)["features"]["another"] == {"min_version": 1, "max_version": 1}
    assert decode_features(newer) == {NAMESPACES_FEATURE, "another"}
    for data in (znodes.encode_registration("broker-2", 9092), b"{}", b"{", b'{"features":7}'):
        assert decode_features(data) == frozenset()


def test_other_nodes_come_back_as_they_were_written() -> None:
    partitions = [TopicPartition("orders", 1), TopicPartition("org:x", 0)]
    wanted = {partitions[0]: (1, 2), partitions[1]: (3,)}
    assert znodes.decode_controller(znodes.encode_controller(3, 17)) == 3
    assert znodes.decode_config(znodes.encode_config({"b": "2", "a": "1"})) == {"a": "1", "b": "2"}
    assert znodes.decode_log_dir_event(znodes.encode_log_dir_event(4)) == 4
    assert znodes.decode_partitions(znodes.encode_partitions(partitions)) == partitions
    assert znodes.decode_reassignment(znodes.encode_reassignment(wanted)) == wanted
    assert znodes.decode_cluster_id(znodes.encode_cluster_id("abc")) == "abc"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b"{}", b'{"partitions":7,"config":[],"brokerid":"1"}'])
def test_what_cannot_be_read_is_empty_and_no_error(data: bytes) -> None:
    assert znodes.decode_controller(data) is None
    assert znodes.decode_config(data) == {}
    assert znodes.decode_log_dir_event(data) is None
    assert znodes.decode_partitions(data) == []
    assert znodes.decode_reassignment(data) == {}
    assert znodes.decode_state(data) is None


@pytest.mark.parametrize(("topic", "path"), [("orders", "orders"), ("org:apache:orders", "org/apache/orders")])
def test_the_tiers_of_a_topic_are_the_nodes_above_its_own(topic: str, path: str) -> None:
    # KIP37-4
    assert (path_of(topic), topic_of(path)) == (path, topic)


def test_every_node_that_says_what_brokers_hold_is_kept() -> None:
    below = (f"{root}/orders" for root in (TOPICS, MARKED, FEWER_PARTITIONS))
    for path in (CLUSTER_ID, CONTROLLER_EPOCH, MIGRATION, TOPICS, *below):
        assert znodes.keep(path)
        assert znodes.keep(f"/chroot{path}")
    assert not znodes.keep(CONTROLLER)
