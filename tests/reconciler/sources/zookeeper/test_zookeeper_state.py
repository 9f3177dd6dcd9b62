"""ZooKeeper's nodes as a desired state: what stays of the given identity, and the order of problems."""

from __future__ import annotations

import orjson
import pytest

from layout.ids import TopicId
from reconciler.desired import MetadataIdentity
from reconciler.sources.zookeeper import Znode, assemble, encode_topic

ID = TopicId(bytes(range(16)))

IDENTITY = MetadataIdentity("zookeeper", "here", offset=7, timestamp_ms=8, digest="ab", problems=("first",))


def node(data: bytes, czxid: int = 1, version: int = 0) -> Znode:
    return Znode(data, czxid, 0, version)


def test_the_nodes_add_the_cluster_and_the_controller_epoch_to_what_is_known() -> None:
    nodes = {"/cluster/id": node(b'{"id":"C"}'), "/controller_epoch": node(b"5"), "/brokers/topics/t": node(b"{}")}
    identity = assemble(nodes, IDENTITY).identity
    assert (identity.cluster_id, identity.epoch) == ("C", 5)
    assert (identity.source, identity.location, identity.offset, identity.timestamp_ms, identity.digest) == (
        "zookeeper",
        "here",
        7,
        8,
        "ab",
    )


def test_problems_come_in_the_order_known_before_found_limits() -> None:
    nodes = {"/brokers/topics/t": node(b"{"), "/brokers/ids/x": node(b"")}
    problems = assemble(nodes, IDENTITY, ["last"]).identity.problems
    assert [problem.split(":")[0] for problem in problems] == [
        "first",
        "topic t",
        "/brokers/ids has names that are no broker ids; they are passed over",
        "last",
    ]


def test_epochs_come_from_the_stats_of_nodes() -> None:
    nodes = {
        "/brokers/topics/t": node(b'{"partitions":{"0":[1]}}'),
        "/brokers/topics/t/partitions/0/state": node(b'{"leader":1,"leader_epoch":4,"isr":[1]}', version=6),
        "/brokers/ids/1": node(b"{}", czxid=99),
    }
    state = assemble(nodes, IDENTITY)
    assert state.replicas.select(["leader_epoch", "partition_epoch"]).to_pylist() == [
        {"leader_epoch": 4, "partition_epoch": 6}
    ]
    assert state.brokers["broker_epoch"].to_pylist() == [99]


def request(topic_id: str | None, total: object) -> Znode:
    return node(orjson.dumps({"version": 1, "topic_id": topic_id, "delete_partitions": total, "mode": 1}))


def test_partitions_that_a_topic_is_to_lose_are_being_removed_from_all_their_brokers() -> None:  # KIP694-3
    nodes = {f"/brokers/topics/{name}": node(encode_topic(ID, {0: [1], 1: [1, 2], 2: [2]})) for name in ("t", "org/t")}
    nodes |= {f"/admin/delete_topic_partitions/{name}": request(str(ID), 1) for name in ("t", "org:t")}
    nodes["/brokers/topics/org"] = node(b"")
    nodes["/brokers/topics/u"] = node(encode_topic(None, {0: [1], 1: [1]}))
    nodes["/admin/delete_topic_partitions/u"] = request(None, 1)
    state = assemble(nodes, IDENTITY)
    going = {(row["topic"], row["partition"]) for row in state.replicas.to_pylist() if row["removing"]}
    assert going == {("t", 1), ("t", 2), ("org:t", 1), ("org:t", 2), ("u", 1)}
    assert all(row["removing"] for row in state.replicas.to_pylist() if (row["topic"], row["partition"]) == ("t", 1))


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        (request("AtgGav8yQjiaJ3rTXE7VCA", 1), 0),
        (request(str(ID), 0), 1),
        (request(str(ID), "1"), 1),
        (node(b"t 1,2"), 1),
    ],
)
def test_a_request_of_an_earlier_topic_or_one_that_cannot_be_read_takes_nothing_away(
    data: Znode, problems: int
) -> None:  # KIP694-3
    nodes = {"/brokers/topics/t": node(encode_topic(ID, {0: [1], 1: [1]})), "/admin/delete_topic_partitions/t": data}
    state = assemble(nodes, IDENTITY)
    assert not any(row["removing"] for row in state.replicas.to_pylist())
    found = state.identity.problems[1:]
    why = "the request for fewer partitions of 1 topic cannot be read, so all of theirs count as wanted: t"
    assert list(found) == [why] * problems
