"""Reading topics from ZooKeeper and writing IDs to it, on a tree in memory; ``tests/zookeeper`` has a real server."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from layout.ids import TopicId
from reconciler.errors import MetadataError, RefusedError, UsageError
from reconciler.topic_ids import ClusterSeen, TopicFound, TopicIdState, assign_topic_id, connect, read_cluster

exceptions = pytest.importorskip("kazoo.exceptions", reason="kazoo is not installed")

NEW = TopicId.parse("b8tRS7h4TJ2Vt43Dp85v2A")
GOOD = b'{"version":1,"partitions":{"0":[1,2]}}'


class Tree:
    """Nodes by path, with the calls of a client that this needs."""

    def __init__(self, **more: bytes) -> None:
        self.nodes: dict[str, tuple[bytes, int]] = {}
        paths = {"/controller_epoch": b"3", "/brokers/topics/orders": GOOD, "/brokers/topics/org/orders": GOOD}
        for path, data in {**paths, **{key.replace("_", "/"): value for key, value in more.items()}}.items():
            self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        parts = path.split("/")[1:]
        for length in range(1, len(parts)):
            self.nodes.setdefault("/" + "/".join(parts[:length]), (b"", 0))
        self.nodes[path] = (data, self.nodes[path][1] + 1 if path in self.nodes else 0)

    def _children(self, path: str) -> list[str]:
        return [each[len(path) + 1 :] for each in self.nodes if each.rpartition("/")[0] == path]

    def get(self, path: str) -> Any:
        if path not in self.nodes:
            raise exceptions.NoNodeError
        data, version = self.nodes[path]
        return data, SimpleNamespace(version=version, numChildren=len(self._children(path)))

    def get_children(self, path: str) -> list[str]:
        if path not in self.nodes:
            raise exceptions.NoNodeError
        return self._children(path)

    def transaction(self) -> Any:
        return Transaction(self)


class Transaction:
    """All or nothing, as ZooKeeper has it; ``refused`` makes every part fail with that error."""

    refused: Exception | None = None

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.parts: list[tuple[str, bytes | None, int]] = []

    def check(self, path: str, version: int) -> None:
        self.parts.append((path, None, version))

    def set_data(self, path: str, data: bytes, version: int) -> None:
        self.parts.append((path, data, version))

    def commit(self) -> list[Any]:
        wrong = [self._wrong(path, version) for path, _, version in self.parts]
        if any(wrong):
            return [each or exceptions.RolledBackError() for each in wrong]
        for path, data, _ in self.parts:
            if data is not None:
                self.tree.put(path, data)
        return [True] * len(self.parts)

    def _wrong(self, path: str, version: int) -> Exception | None:
        if self.refused is not None:
            return self.refused
        if path not in self.tree.nodes:
            return exceptions.NoNodeError()  # type: ignore[no-any-return]
        return None if self.tree.nodes[path][1] == version else exceptions.BadVersionError()


def test_topics_are_found_in_every_namespace_with_the_version_of_their_node() -> None:
    tree = Tree()
    tree.put("/brokers/topics/orders", GOOD)
    tree.put("/brokers/topics/orders/partitions/0/state", b"{}")
    seen = read_cluster(tree, "zk")
    assert isinstance(seen, ClusterSeen)
    assert seen.topics == (
        TopicFound("orders", "orders", TopicIdState.WITHOUT_ID, None),
        TopicFound("org:orders", "org/orders", TopicIdState.WITHOUT_ID, None),
    )
    assert (seen.nodes["orders"][1], seen.epoch_version, seen.controller, seen.cluster_id) == (1, 0, None, None)


def test_topics_that_are_being_deleted_are_left_alone_by_their_full_name() -> None:
    tree = Tree(_admin_x=b"")
    tree.put("/admin/delete_topics/org/orders", b"")
    states = {each.topic: each.state for each in read_cluster(tree, "zk").topics}
    assert states == {"orders": TopicIdState.WITHOUT_ID, "org:orders": TopicIdState.LEFT_ALONE}


# KIP516-11
def test_an_id_is_written_once_and_only_into_that_node() -> None:
    tree = Tree()
    seen = read_cluster(tree, "zk")
    others = {path: node for path, node in tree.nodes.items() if path != "/brokers/topics/org/orders"}
    (found,) = [each for each in seen.topics if each.topic == "org:orders"]
    assert assign_topic_id(tree, seen, found, NEW) is None
    assert json.loads(tree.nodes["/brokers/topics/org/orders"][0])["topic_id"] == str(NEW)
    assert {path: tree.nodes[path] for path in others} == others
    assert "run it again" in (assign_topic_id(tree, seen, found, NEW) or "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tree: tree.put("/brokers/topics/orders", GOOD), "run it again"),
        (lambda tree: tree.put("/controller_epoch", b"4"), "run it again"),
        (lambda tree: tree.nodes.pop("/brokers/topics/orders"), "gone"),
    ],
)
def test_a_topic_that_changed_meanwhile_is_not_written(change: Any, said: str) -> None:
    tree = Tree()
    seen = read_cluster(tree, "zk")
    change(tree)
    before = dict(tree.nodes)
    assert said in (assign_topic_id(tree, seen, seen.topics[0], NEW) or "")
    assert tree.nodes == before


def test_a_refusal_of_the_server_is_reported_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree()
    seen = read_cluster(tree, "zk")
    monkeypatch.setattr(Transaction, "refused", exceptions.NoAuthError())
    assert assign_topic_id(tree, seen, seen.topics[0], NEW) == "ZooKeeper refused to write it (NoAuthError)"


def test_without_an_epoch_the_nodes_own_version_is_all_there_is() -> None:
    tree = Tree()
    del tree.nodes["/controller_epoch"]
    seen = read_cluster(tree, "zk")
    assert (seen.epoch_version, assign_topic_id(tree, seen, seen.topics[0], NEW)) == (None, None)


def test_a_place_without_topics_and_one_that_kraft_has_are_refused() -> None:
    tree = Tree(_migration=b'{"kraft_controller_id":3000}')
    with pytest.raises(RefusedError, match="3000"):
        read_cluster(tree, "zk")
    tree.put("/migration", b'{"kraft_controller_id":-1}')
    assert len(read_cluster(tree, "zk").topics) == 2
    tree.nodes.clear()
    with pytest.raises(MetadataError, match="no Kafka uses this place"):
        read_cluster(tree, "zk")


@pytest.mark.parametrize("address", ["", "a b:1", "host:99999", "host:1/a//b"])
def test_what_is_no_address_is_a_usage_error(address: str) -> None:
    with pytest.raises(UsageError), connect(address):
        pass


def test_a_connection_that_fails_says_what_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    client = SimpleNamespace(
        start=lambda _: None, stop=lambda: closed.append("stopped"), close=lambda: closed.append("closed")
    )
    monkeypatch.setattr("kazoo.client.KazooClient", lambda **_: client)
    said = r"zk:1: the connection to ZooKeeper failed \(ConnectionLoss\): what was written so far stands. Run it again"
    with pytest.raises(MetadataError, match=f"^{said}$"), connect("zk:1"):
        raise exceptions.ConnectionLoss
    assert closed == ["stopped", "closed"]
