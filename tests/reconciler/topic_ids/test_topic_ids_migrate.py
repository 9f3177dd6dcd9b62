"""Nodes of topics, encoded as Kafka's own encoder does; a node in doubt is left as it is."""

from __future__ import annotations

import json
import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.errors import RefusedError
from reconciler.sources.zookeeper import decode_topic
from reconciler.topic_ids import TopicIdState, new_ids
from reconciler.topic_ids.migrate import find_topics, with_topic_id

ID = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")
OTHER = "b8tRS7h4TJ2Vt43Dp85v2A"

REPLICAS = st.dictionaries(
    st.integers(0, 2**31 - 1).map(str), st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=4), max_size=5
)


def node(**fields: object) -> bytes:
    return json.dumps(fields).encode()


# KIP516-11, FACTS §8
def test_version_1_becomes_version_3_to_the_byte() -> None:
    assert with_topic_id(b'{"version":1,"partitions":{"0":[1,2],"1":[2,1]}}', ID) == (
        b'{"version":3,"topic_id":"cxBT72dK4si8Ied1iP4wBA","partitions":{"0":[1,2],"1":[2,1]},'
        b'"adding_replicas":{},"removing_replicas":{}}'
    )


# KIP516-11, FACTS §8
def test_version_2_keeps_what_moves_and_loses_lists_that_are_empty() -> None:
    moving = {"partitions": {"0": [1, 2, 3]}, "adding_replicas": {"0": [3], "1": []}, "removing_replicas": {"0": [1]}}
    assert json.loads(with_topic_id(node(version=2, **moving), ID)) == {
        "version": 3, "topic_id": str(ID), "partitions": {"0": [1, 2, 3]}, "adding_replicas": {"0": [3]},
        "removing_replicas": {"0": [1]},
    }  # fmt: skip


def test_keys_that_kafka_does_not_know_go_as_when_kafka_writes_the_node() -> None:
    written = json.loads(with_topic_id(node(version=1, partitions={"0": [1]}, note="mine"), ID))
    assert list(written) == ["version", "topic_id", "partitions", "adding_replicas", "removing_replicas"]


@given(REPLICAS.filter(bool), REPLICAS, REPLICAS)
def test_what_is_written_reads_back_as_what_was_there_and_the_id(
    partitions: dict, adding: dict, removing: dict
) -> None:
    before = node(version=2, partitions=partitions, adding_replicas=adding, removing_replicas=removing)
    read, written = decode_topic(before), decode_topic(with_topic_id(before, ID))
    assert (written.topic_id, written.problem, written.partitions) == (str(ID), None, read.partitions)
    assert written.adding == {number: brokers for number, brokers in read.adding.items() if brokers}
    assert written.removing == {number: brokers for number, brokers in read.removing.items() if brokers}


UNSURE = {
    "empty": b"",
    "no JSON": b"{",
    "no object": b"[]",
    "no partitions": node(version=1),
    "partitions of no numbers": node(version=1, partitions={"one": [1]}),
    "brokers that are none": node(version=1, partitions={"0": ["a"]}),
    "an ID that is none": node(version=3, topic_id="abc", partitions={"0": [1]}),
    "the zero ID": node(version=3, topic_id=str(TopicId.ZERO), partitions={"0": [1]}),
    "bytes": b"\xff\xfe",
}


@pytest.mark.parametrize("case", UNSURE)
def test_a_node_that_cannot_be_read_whole_is_never_written(case: str) -> None:
    with pytest.raises(RefusedError, match="nothing is written over that"):
        with_topic_id(UNSURE[case], ID)
    (found,) = find_topics({"orders": UNSURE[case]})
    assert (found.state, found.topic_id, found.reason != "") == (TopicIdState.LEFT_ALONE, None, True)


@pytest.mark.parametrize("key", ["topic_id", "id"])
def test_a_topic_that_has_an_id_under_either_key_keeps_it(key: str) -> None:
    data = node(version=3, partitions={"0": [1]}, **{key: OTHER})
    with pytest.raises(RefusedError, match=OTHER):
        with_topic_id(data, ID)
    assert [(each.state, each.topic_id) for each in find_topics({"orders": data})] == [(TopicIdState.HAS_ID, OTHER)]


@pytest.mark.parametrize("reserved", [TopicId.ZERO, TopicId.METADATA])
def test_a_reserved_id_is_never_given(reserved: TopicId) -> None:
    with pytest.raises(RefusedError, match="reserved"):
        with_topic_id(node(version=1, partitions={"0": [1]}), reserved)


def test_topics_in_namespaces_are_found_by_their_full_name_and_namespaces_are_no_topics() -> None:
    good = node(version=1, partitions={"0": [1]})
    below = {"org": b"", "org/apache": b"", "org/apache/orders": good, "orders": good, "org/empty": b""}
    found = {each.topic: (each.path, each.state) for each in find_topics(below)}
    assert found["org:apache:orders"] == ("org/apache/orders", TopicIdState.WITHOUT_ID)
    assert found["orders"] == ("orders", TopicIdState.WITHOUT_ID)
    assert not {"org", "org:apache"} & found.keys()
    assert found["org:empty"][1] is TopicIdState.LEFT_ALONE


def test_a_topic_that_is_being_deleted_or_has_an_impossible_name_is_left_alone() -> None:
    good = node(version=1, partitions={"0": [1]})
    found = {each.topic: each.reason for each in find_topics({"going": good, "a b": good}, {"going"})}
    assert found["going"] == "it is marked for deletion"
    assert "a b" in found["a b"]


# KIP516-1, FACTS §3
def test_new_ids_are_type_4_and_never_one_that_is_in_use() -> None:
    drawn = list(islice(new_ids(random.Random(7).randbytes, ()), 50))
    assert len(set(drawn)) == 50
    assert {each.to_bytes()[6] >> 4 for each in drawn} == {4}
    taken = {str(each) for each in drawn[:10]}
    again = list(islice(new_ids(random.Random(7).randbytes, taken), 40))
    assert again == drawn[10:]
