"""A live ZooKeeper: addresses, connection errors, and one consistent reading; a real server is in tests/zookeeper."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.desired import DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources import load
from reconciler.sources.zookeeper import Znode, assemble, jute, live, snapshot, split_address, znodes
from reconciler.sources.zookeeper.live import ATTEMPTS, ZooKeeperReading, read
from tests.reconciler.sources.zookeeper.zookeeper_tree import Tree
from tools.writers.zookeeper_writer import snapshot_bytes, topic_nodes


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("zk1:2181", ("zk1:2181", "")),
        ("zk1", ("zk1", "")),
        ("zk1:2181,zk2:2182/kafka", ("zk1:2181,zk2:2182", "/kafka")),
        ("zk1:2181/", ("zk1:2181", "")),
        ("[::1]:2181/a/b/", ("[::1]:2181", "/a/b")),
        ("10.0.0.1:1/brokers", ("10.0.0.1:1", "/brokers")),
    ],
)
def test_an_address_is_servers_and_a_chroot(address: str, expected: tuple[str, str]) -> None:
    assert split_address(address) == expected


@pytest.mark.parametrize(
    "address",
    [
        "",
        "/kafka",
        "a b",
        "zk1:",
        "zk1:0",
        "zk1:65536",
        "zk1:x",
        "zk1,,zk2",
        "zk1//a",
        "zk1/a//b",
        "zk1/../a",
        "zk1?a=b",
    ],
)
def test_what_is_no_address_is_refused_with_the_form_of_one(address: str) -> None:
    with pytest.raises(UsageError, match=r"zk:HOST:PORT\[,HOST:PORT…\]\[/chroot\] is expected"):
        live.load(address)


def test_without_kazoo_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    with pytest.raises(UsageError, match=r"pip install 'kazoo>=2.10'"):
        load("zk:localhost:2181")


@contextmanager
def strangers(reply: bytes) -> Iterator[str]:
    """The address of a server that says the same to everybody and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(reply)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        # A listener that somebody waits at is woken by its shutdown, and not by its end.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4what", b"\xff" * 20], ids=repr)
def test_a_server_that_is_no_zookeeper_is_one_sentence(
    reply: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("kazoo", reason="kazoo is not installed")
    monkeypatch.setattr(live, "CONNECT_TIMEOUT_S", 0.5)
    with strangers(reply) as address, pytest.raises(MetadataError, match=f"{address}: no ZooKeeper answered within"):
        load(f"zk:{address}")
    assert capfd.readouterr() == ("", "")


def test_a_port_where_nobody_listens_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kazoo", reason="kazoo is not installed")
    monkeypatch.setattr(live, "CONNECT_TIMEOUT_S", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(MetadataError, match=r"Connection refused.*check host and port"):
            load(f"zk:127.0.0.1:{port}/kafka")


def test_the_digest_is_of_the_content_and_not_of_the_order() -> None:
    nodes = {"/a": Znode(b"1", 1, 5, 0), "/b": Znode(b"2", 2, 5, 0)}
    digest = live.content_digest(nodes)
    assert live.content_digest(dict(reversed(nodes.items()))) == digest
    changed = [
        {**nodes, "/a": Znode(b"3", 1, 5, 0)},
        {**nodes, "/a": Znode(b"1", 9, 5, 0)},
        {**nodes, "/a": Znode(b"1", 1, 5, 1)},
        {**nodes, "/c": Znode(b"", 1, 5, 0)},
        {"/a": nodes["/a"]},
    ]
    assert len({digest, *map(live.content_digest, changed)}) == 6


pytest.importorskip("kazoo", reason="kazoo is not installed")

NODES = {
    "/cluster/id": b'{"version":"1","id":"XB4QhweWTe-kZwMNW25y1A"}',
    "/controller_epoch": b"12",
    "/brokers/ids/1": b"{}",
    "/brokers/ids/2": b"{}",
    **topic_nodes("orders", {0: [1, 2], 1: [2, 3]}, topic_id=TopicId.from_halves(7, 9)),
    **topic_nodes("legacy", {0: [1]}),
    # KIP37-4
    **topic_nodes("org:apache:orders", {0: [3]}, leader_epoch=6),
    "/admin/delete_topics/legacy": b"",
    "/admin/delete_topics/org/apache/orders": b"",
    # KIP694-3
    "/admin/delete_topic_partitions/orders": b'{"topic_id":null,"delete_partitions":1}',
    "/config/topics/orders": b"{}",
}
ORDERS = "/brokers/topics/orders"
STATE = f"{ORDERS}/partitions/0/state"


def once(path: str, act: Callable[[], object]) -> Callable[[str], object]:
    """Acts before the first answer about a path."""
    left = [act]
    return lambda asked: left.pop()() if asked == path and left else None


def state_of(reading: ZooKeeperReading) -> DesiredState:
    return assemble(reading.nodes, MetadataIdentity("zookeeper", "zk"))


def from_file(nodes: dict[str, bytes], folder: Path) -> DesiredState:
    path = folder / "snapshot.1"
    path.write_bytes(snapshot_bytes(nodes))
    return snapshot.load(str(path))


def test_what_a_snapshot_file_would_keep_is_read_and_no_more() -> None:
    tree = Tree(NODES)
    reading = read(tree, "zk")
    states = {path for path in tree.nodes if path.endswith("/state")}
    assert reading.nodes.keys() == {path for path in tree.nodes if znodes.keep(path)} - {"/brokers/topics"}
    assert states < reading.nodes.keys()
    assert "/config/topics/orders" not in tree.asked


def test_a_reading_has_the_greatest_zxid_of_its_nodes() -> None:
    tree = Tree(NODES)
    tree.set(STATE, tree.nodes[STATE][0])
    expected = tree.zxid
    tree.set("/config/topics/orders", b"{}")
    reading = read(tree, "zk")
    assert (reading.zxid, reading.before) == (expected, expected + 1)


def test_a_node_has_its_creating_transaction_and_its_version() -> None:
    tree = Tree(NODES)
    tree.set(STATE, b"1")
    tree.set(STATE, b"2")
    assert read(tree, "zk").nodes[STATE] == jute.Znode(b"2", tree.nodes[STATE][1].czxid, 1_700_000_000_000, 2)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/brokers/topics/legacy", lambda tree: tree.set(ORDERS, topic_nodes("orders", {0: [5]})[ORDERS])),
        (ORDERS, lambda tree: tree.delete("/brokers/topics/legacy")),
        (ORDERS, lambda tree: tree.create("/brokers/topics/new", topic_nodes("new", {0: [1]})["/brokers/topics/new"])),
        (STATE, lambda tree: tree.create("/brokers/topics/new", topic_nodes("new", {0: [1]})["/brokers/topics/new"])),
        (STATE, lambda tree: tree.set("/controller_epoch", b"13")),
        (STATE, lambda tree: tree.create("/brokers/ids/3", b"{}")),
        (STATE, lambda tree: tree.delete("/brokers/ids/2")),
        (STATE, lambda tree: tree.create("/admin/delete_topics/orders")),
        (STATE, lambda tree: tree.create("/admin/delete_topic_partitions/legacy")),
        ("/brokers/ids/1", lambda tree: tree.delete("/brokers/ids/2")),
        ("/admin/delete_topics/org/apache", lambda tree: tree.delete("/admin/delete_topics/org/apache/orders")),
        ("/brokers/topics/org/apache", lambda tree: tree.create("/brokers/topics/org/apache/more", b"{}")),
        ("/brokers/ids", lambda tree: tree.set("/cluster/id", b"{}")),
    ],
)
def test_what_changes_during_the_reading_is_read_again_with_all_the_rest(path: str, change: Any) -> None:
    tree = Tree(NODES)
    tree.before_answer = once(path, lambda: change(tree))
    reading = read(tree, "zk")
    settled = Tree(NODES)
    change(settled)
    expected = read(settled, "zk")
    assert {path: node.data for path, node in reading.nodes.items()} == {
        path: node.data for path, node in expected.nodes.items()
    }


def test_two_topics_that_change_at_once_are_never_read_half() -> None:
    tree = Tree(NODES)

    def move_both() -> None:
        for topic in ("legacy", "orders"):
            path = f"/brokers/topics/{topic}"
            tree.set(path, topic_nodes(topic, {0: [9]})[path])

    # Of these two, "legacy" is asked for first, and so it is answered before the change.
    tree.before_answer = once(ORDERS, move_both)
    rows = state_of(read(tree, "zk")).replicas.to_pylist()
    assert {row["topic"]: row["node_id"] for row in rows if row["topic"] in ("legacy", "orders")} == {
        "legacy": 9,
        "orders": 9,
    }
    assert tree.asked.count(ORDERS) == 2


def test_a_state_that_changes_is_taken_as_it_is() -> None:
    tree = Tree(NODES)
    newer = json.dumps({"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 9, "isr": [2]}).encode()
    tree.before_answer = once(STATE, lambda: tree.set(STATE, newer))
    reading = read(tree, "zk")
    assert reading.nodes[STATE].data == newer
    assert reading.zxid == tree.zxid == reading.before + 1
    assert tree.asked.count(ORDERS) == 1


def test_a_cluster_that_never_rests_is_refused() -> None:
    tree = Tree(NODES)
    tree.before_answer = lambda path: tree.set(ORDERS, NODES[ORDERS]) if path == ORDERS else None
    with pytest.raises(MetadataError, match=rf"zk: the cluster changed .* {ATTEMPTS} times running, last at {ORDERS}"):
        read(tree, "zk")
    assert tree.asked.count(ORDERS) == ATTEMPTS


def test_a_partition_without_a_state_is_known() -> None:
    tree = Tree({key: value for key, value in NODES.items() if key != STATE})
    rows = state_of(read(tree, "zk")).replicas.to_pylist()
    assert {row["isr_size"] for row in rows if (row["topic"], row["partition"]) == ("orders", 0)} == {0}


@pytest.mark.parametrize("path", [ORDERS, STATE, "/brokers/topics", "/brokers/ids/2", "/cluster/id"])
def test_a_node_that_may_not_be_read_is_refused_by_its_path(path: str) -> None:
    tree = Tree(NODES)
    tree.closed_paths.add(path)
    with pytest.raises(MetadataError, match=rf"zk: {path} may not be read by everybody"):
        read(tree, "zk")


def test_a_root_without_topics_is_refused_with_the_chroot_that_has_them() -> None:
    tree = Tree({f"/kafka{path}": data for path, data in NODES.items()} | {"/other/x": b""})
    with pytest.raises(UsageError, match=r"no /brokers/topics.*below /kafka: name it as zk:HOST:PORT/kafka"):
        read(tree, "zk")


def test_a_root_without_any_cluster_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no Kafka cluster keeps its topics here$"):
        read(Tree({"/other/x": b""}), "zk")


def test_a_cluster_without_topics_and_brokers_is_one() -> None:
    state = state_of(read(Tree({"/brokers/topics": b"", "/cluster/id": NODES["/cluster/id"]}), "zk"))
    assert (state.topics.num_rows, state.brokers.num_rows) == (0, 0)
    assert "/brokers/topics has no topics" in state.identity.problems


NAMES = st.sampled_from(["a", "b", "org", "partitions", "x.y"])
CONTENTS = st.sampled_from(
    [
        b"",
        b"{",
        b"{}",
        b'{"partitions":{"0":[1,2],"1":[2]}}',
        b'{"partitions":{"0":[1]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[1]}}',
        b'{"version":3,"partitions":{"1":[3]},"topic_id":"b8tRS7h4TJ2Vt43Dp85v2A"}',
    ]
)
TREES = st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), CONTENTS, max_size=8)


@given(TREES, st.sets(st.integers(0, 7)))
def test_any_tree_gives_the_tables_that_its_snapshot_gives(
    tmp_path_factory: pytest.TempPathFactory, topics: dict[str, bytes], with_state: set[int]
) -> None:
    nodes = {"/brokers/topics": b"", "/brokers/ids/4": b"{}", "/controller_epoch": b"3"}
    for number, (name, content) in enumerate(topics.items()):
        nodes[f"/brokers/topics/{name}"] = content
        if number in with_state:
            state = {"leader": 1, "leader_epoch": number, "isr": [1]}
            nodes[f"/brokers/topics/{name}/partitions/0/state"] = json.dumps(state).encode()
    live = state_of(read(Tree(nodes), "zk"))
    saved = from_file(nodes, tmp_path_factory.mktemp("snapshot"))
    assert live.topics.equals(saved.topics)
    assert live.replicas.equals(saved.replicas)
    assert live.brokers.column("node_id").equals(saved.brokers.column("node_id"))
    assert live.identity.epoch == saved.identity.epoch
    assert set(live.identity.problems) == {text for text in saved.identity.problems if "transaction log" not in text}
