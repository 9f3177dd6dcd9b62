"""A live ZooKeeper as a metadata source: the same tables as its own snapshot, by the same address a broker has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from layout.ids import TopicId
from reconciler.desired import Completeness, DesiredState
from reconciler.errors import MetadataError, UsageError
from reconciler.sources import load
from reconciler.sources.zookeeper import live as zookeeper_live
from reconciler.sources.zookeeper import snapshot as zookeeper_snapshot
from reconciler.watch import WatchedMetadata
from reconciler.watch.metadata import LIVE_S
from tools.writers.zookeeper_writer import topic_nodes

pytestmark = pytest.mark.zookeeper

CLUSTER = "XB4QhweWTe-kZwMNW25y1A"
ORDERS = TopicId.from_halves(7, 9)
NODES: dict[str, bytes] = {
    "/cluster/id": json.dumps({"version": "1", "id": CLUSTER}).encode(),
    "/controller_epoch": b"27",
    **topic_nodes("orders", {0: [1, 2], 1: [2, 3]}, topic_id=ORDERS, leader_epoch=4),
    **topic_nodes("legacy", {0: [1]}),
    # KIP37-4
    **topic_nodes("org:apache:orders", {number: [3] for number in range(1200)}),
    "/brokers/topics/moving": b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{"0":[2]},'
    b'"removing_replicas":{"0":[1]}}',
    # KIP516-11, in the proposal's own form.
    "/brokers/topics/proposed": b'{"version":3,"id":"b8tRS7h4TJ2Vt43Dp85v2A","partitions":{"0":[0]}}',
    "/brokers/topics/broken": b"{",
    "/brokers/ids/1": b"{}",
    "/admin/delete_topics/legacy": b"",
}


def write(client: Any, root: str = "") -> None:
    """All nodes and those on the way to them, parents first and many at once."""
    steps = [path.split("/") for path in NODES]
    paths = {"/".join(each[:count]) for each in steps for count in range(2, len(each) + 1)}
    client.ensure_path(root or "/")
    ordered = sorted(paths, key=lambda path: (path.count("/"), path))
    for answer in [client.create_async(root + path, NODES.get(path, b"")) for path in ordered]:
        answer.get(30)


@pytest.fixture(scope="module")
def server(zookeeper: Any) -> Iterator[Any]:
    """A running server with one cluster at its root, and the same below /kafka/east."""
    with zookeeper:
        client = zookeeper.connect()
        write(client)
        write(client, "/kafka/east")
        zookeeper.client = client
        yield zookeeper
        client.stop()
        client.close()


@pytest.fixture(scope="module")
def live(server: Any) -> DesiredState:
    (state,) = load(f"zk:{server.address}")
    return state


def test_the_identity_names_the_cluster_and_how_far_it_reaches(server: Any, live: DesiredState) -> None:
    identity = live.identity
    assert (identity.source, identity.location) == ("zookeeper", f"zk:{server.address}")
    assert (identity.cluster_id, identity.epoch, identity.completeness) == (CLUSTER, 27, Completeness.FULL)
    stats = [server.client.exists(path) for path in (*NODES, "/brokers/topics", "/admin/delete_topics", "/brokers/ids")]
    assert identity.offset == max(max(stat.czxid, stat.mzxid, stat.pzxid) for stat in stats)


def test_a_chroot_gives_the_same_tables_as_the_root(server: Any, live: DesiredState) -> None:
    (below,) = load(f"zk:127.0.0.1:1,{server.address}/kafka/east/")
    assert below.topics.equals(live.topics)
    assert below.replicas.equals(live.replicas)
    assert below.identity.problems == live.identity.problems


def test_nothing_is_left_in_the_server(server: Any) -> None:
    def tree(path: str) -> list[tuple[str, int, int]]:
        children, stat = server.client.get_children(path, include_data=True)
        return [(path, stat.mzxid, stat.pzxid)] + [
            each for child in sorted(children) if child != "zookeeper" for each in tree(f"{path.rstrip('/')}/{child}")
        ]

    before = tree("/kafka")
    load(f"zk:{server.address}/kafka/east")
    assert tree("/kafka") == before
    assert (
        int(next(line for line in four_letters(server, b"wchs").splitlines() if "watches" in line).split(":")[1]) == 0
    )


def test_a_chroot_that_is_not_there_is_refused(server: Any) -> None:
    with pytest.raises(UsageError, match="ZooKeeper has no node /kafka/west"):
        load(f"zk:{server.address}/kafka/west")


def test_a_node_above_the_chroot_is_refused_with_a_hint(server: Any) -> None:
    with pytest.raises(UsageError, match="name it as zk:HOST:PORT/east"):
        load(f"zk:{server.address}/kafka")


def test_a_node_that_only_one_user_may_read_is_refused(server: Any) -> None:
    from kazoo.security import make_digest_acl

    path = "/kafka/closed/brokers/topics/secret"
    server.client.ensure_path("/kafka/closed/brokers/topics")
    server.client.create(path, b"{}", acl=[make_digest_acl("kafka", "pw", all=True)])
    with pytest.raises(MetadataError, match="/brokers/topics/secret may not be read by everybody"):
        load(f"zk:{server.address}/kafka/closed")


def test_a_cluster_whose_topics_come_and_go_is_read_as_of_one_moment_or_refused(server: Any) -> None:
    """Two topics swap their only broker in one transaction; a mixed reading would give both the same one.

    After each reading that is refused they swap half as often, so that one comes through on a slow machine too.
    """
    root = "/kafka/busy/brokers/topics"
    server.client.ensure_path(root)
    for topic, broker in (("a", 1), ("b", 2)):
        server.client.create(f"{root}/{topic}", topic_nodes(topic, {0: [broker]})[f"/brokers/topics/{topic}"])
    stopped, pause_s = threading.Event(), 0.001

    def swap() -> None:
        turn = 0
        while not stopped.is_set():
            turn += 1
            both = server.client.transaction()
            for topic, broker in (("a", 1 + turn % 2), ("b", 2 - turn % 2)):
                both.set_data(f"{root}/{topic}", topic_nodes(topic, {0: [broker]})[f"/brokers/topics/{topic}"])
            both.commit()
            stopped.wait(pause_s)

    swapping = threading.Thread(target=swap)
    swapping.start()
    read = 0
    try:
        while read < 5:
            try:
                (state,) = load(f"zk:{server.address}/kafka/busy")
            except MetadataError as error:
                assert "the cluster changed while it was read" in str(error)
                pause_s *= 2
            else:
                assert sorted(state.replicas["node_id"].to_pylist()) == [1, 2]
                read += 1
    finally:
        stopped.set()
        swapping.join()


def test_a_watched_zookeeper_is_asked_again_and_new_only_when_it_says_something_else(server: Any) -> None:
    root = "/kafka/watched/brokers/topics"
    server.client.ensure_path(root)
    spec = f"zk:{server.address}/kafka/watched"
    now = 0.0
    metadata = WatchedMetadata([spec], load(spec), pytest.fail, clock=lambda: now)
    server.client.create(f"{root}/new", topic_nodes("new", {0: [1]})["/brokers/topics/new"])
    assert not metadata.poll()
    now += LIVE_S
    assert metadata.poll()
    assert metadata.states[0].topics["topic"].to_pylist() == ["new"]
    now += LIVE_S
    assert not metadata.poll()


def test_a_server_that_goes_away_is_reported_once_and_the_known_state_holds(server: Any) -> None:
    """And the live tables are those of the snapshot that the server writes at its next start."""
    (live,) = load(f"zk:{server.address}/kafka/east")
    spec, said, now = f"zk:{server.address}/kafka/east", list[str](), 0.0
    metadata = WatchedMetadata([spec], [live], said.append, clock=lambda: now)
    server.client.stop()
    server.__exit__(None, None, None)
    short = zookeeper_live.CONNECT_TIMEOUT_S
    zookeeper_live.CONNECT_TIMEOUT_S = 0.5
    try:
        now += LIVE_S
        assert not metadata.poll()
    finally:
        zookeeper_live.CONNECT_TIMEOUT_S = short
        server.__enter__()
        server.client = server.connect()
    assert metadata.states == [live]
    assert len(said) == 1
    assert "no ZooKeeper answered" in said[0]
    now += LIVE_S
    assert metadata.poll()
    assert said[1:] == ["the metadata can be read again"]
    saved = zookeeper_snapshot.load(str(server.data))
    root = load(f"zk:{server.address}")[0]
    assert saved.topics.equals(root.topics)
    assert saved.replicas.equals(root.replicas)
    assert saved.brokers.equals(root.brokers)
    assert saved.identity.cluster_id == root.identity.cluster_id == CLUSTER


def four_letters(server: Any, word: bytes) -> str:
    """What the server says to one of its four-letter words."""
    import socket

    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()
