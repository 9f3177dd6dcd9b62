"""Read back what a real ZooKeeper server writes: topics of all three versions, states, brokers, IDs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.desired import DesiredState
from reconciler.sources import load
from reconciler.sources.zookeeper import jute
from reconciler.sources.zookeeper import snapshot as zookeeper_snapshot

pytestmark = pytest.mark.zookeeper

CLUSTER = "XB4QhweWTe-kZwMNW25y1A"
ID, PROPOSED_ID = "cxBT72dK4si8Ied1iP4wBA", "b8tRS7h4TJ2Vt43Dp85v2A"

# As brokers of three generations write them (FACTS §8); the fourth is KIP-516's own form.
NODES: dict[str, object] = {
    "/cluster/id": {"version": "1", "id": CLUSTER},
    "/controller_epoch": 27,
    "/brokers/topics/first": {"version": 1, "partitions": {"0": [1, 2], "1": [2, 1]}},
    "/brokers/topics/second": {
        "version": 2,
        "partitions": {"0": [1, 2, 3]},
        "adding_replicas": {"0": [3]},
        "removing_replicas": {"0": [1]},
    },
    "/brokers/topics/third": {
        "version": 3,
        "topic_id": ID,
        "partitions": {"0": [3]},
        "adding_replicas": {},
        "removing_replicas": {},
    },
    "/brokers/topics/fourth": {"version": 3, "id": PROPOSED_ID, "partitions": {"0": [0, 1, 3]}},
    "/brokers/topics/first/partitions/0/state": {
        "controller_epoch": 1,
        "leader": 2,
        "version": 1,
        "leader_epoch": 8,
        "isr": [2],
    },
    "/admin/delete_topics/first": "",
}
LONG_TOPIC = {"version": 1, "partitions": {str(partition): [1, 2, 3] for partition in range(3000)}}


@pytest.fixture(scope="module")
def written(zookeeper: Any) -> Iterator[Any]:
    """The server's folder after it held all the nodes, was stopped, and started again with two brokers registered."""
    with zookeeper:
        client = zookeeper.connect()
        for path, content in NODES.items():
            data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            client.create(path, data, makepath=True)
        client.create("/brokers/topics/long", json.dumps(LONG_TOPIC).encode())
        state = "/brokers/topics/first/partitions/0/state"
        for _ in range(3):
            client.set(state, json.dumps(NODES[state]).encode())
        epochs = {}
        for node_id in (1, 2):
            client.create(f"/brokers/ids/{node_id}", b"{}", ephemeral=True, makepath=True)
            epochs[node_id] = client.exists(f"/brokers/ids/{node_id}").czxid
    client.stop()
    zookeeper.epochs = epochs
    with zookeeper:
        zookeeper.connect().stop()
    yield zookeeper


@pytest.fixture(scope="module")
def state(written: Any) -> DesiredState:
    (state,) = load(str(written.data))
    return state


def test_the_identity_is_that_of_the_cluster_and_the_last_transaction(written: Any, state: DesiredState) -> None:
    newest = written.snapshots()[-1]
    assert (state.identity.cluster_id, state.identity.epoch) == (CLUSTER, 27)
    assert state.identity.offset == int(newest.name.split(".")[1], 16) >= max(written.epochs.values())


def test_topics_of_every_version_are_there_with_their_ids(state: DesiredState) -> None:
    assert {row["topic"]: (row["topic_id"], row["partitions"]) for row in state.topics.to_pylist()} == {
        "first": (None, 2),
        "second": (None, 1),
        "third": (ID, 1),
        "fourth": (PROPOSED_ID, 1),
        "long": (None, 3000),
    }


def test_replicas_are_there_with_what_moves(state: DesiredState) -> None:
    rows = {(row["topic"], row["partition"], row["node_id"]): row for row in state.replicas.to_pylist()}
    assert [key for key in rows if key[0] == "second"] == [("second", 0, 1), ("second", 0, 2), ("second", 0, 3)]
    assert [node for (topic, _, node), row in rows.items() if topic == "second" and row["adding"]] == [3]
    assert [node for (topic, _, node), row in rows.items() if topic == "second" and row["removing"]] == [1]
    assert len(rows) == 4 + 3 + 1 + 3 + 9000


def test_a_state_has_its_leader_isr_and_the_version_of_its_node(state: DesiredState) -> None:
    rows = [row for row in state.replicas.to_pylist() if (row["topic"], row["partition"]) == ("first", 0)]
    assert [(row["node_id"], row["leader"], row["in_sync"]) for row in rows] == [(1, False, False), (2, True, True)]
    # Created with version 0, then set three times.
    assert {(row["leader_epoch"], row["partition_epoch"]) for row in rows} == {(8, 3)}


def test_registered_brokers_have_the_creating_transaction_as_their_epoch(written: Any, state: DesiredState) -> None:
    assert {row["node_id"]: row["broker_epoch"] for row in state.brokers.to_pylist()} == written.epochs


def test_topics_marked_for_deletion_are_named(state: DesiredState) -> None:
    assert any(
        "1 topic is marked for deletion" in problem and "first" in problem for problem in state.identity.problems
    )


def test_every_snapshot_of_the_server_is_sound_to_its_last_byte(written: Any) -> None:
    snapshots = written.snapshots()
    assert len(snapshots) >= 2
    for path in snapshots:
        assert jute.read(path.read_bytes(), str(path), bool).problem is None


def test_a_snapshot_that_the_server_compressed_is_read(written: Any, state: DesiredState) -> None:
    written.options = ["-Dzookeeper.snapshot.compression.method=gz"]
    with written:
        client = written.connect()
        client.create("/config/changes", b"", makepath=True)
        client.stop()
    with written:
        written.connect().stop()
    newest = written.snapshots()[-1]
    assert newest.suffix == ".gz"
    packed = zookeeper_snapshot.load(str(newest))
    assert packed.topics.equals(state.topics)
    assert packed.replicas.equals(state.replicas)
