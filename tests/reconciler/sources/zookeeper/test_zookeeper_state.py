"""ZooKeeper's nodes as a desired state: what stays of the given identity, and the order of problems."""

from __future__ import annotations

from reconciler.desired import MetadataIdentity
from reconciler.sources.zookeeper import Znode, assemble

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
