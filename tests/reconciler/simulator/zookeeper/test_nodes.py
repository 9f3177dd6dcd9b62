"""The tree of nodes: versions, numbers, and transactions that leave nothing behind when they fail."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.simulator.zookeeper import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Set,
    SimulatedZooKeeperError,
)
from reconciler.simulator.zookeeper.nodes import EphemeralParentError, InvalidPathError, Nodes, NotEmptyError


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def test_a_version_counts_the_changes_of_the_data(nodes: Nodes) -> None:
    nodes.commit([Create("/a")], 1)
    nodes.commit([Set("/a", b"x", 0)], 1)
    nodes.commit([Set("/a", b"y")], 1)
    assert nodes.get("/a").version == 2
    with pytest.raises(BadVersionError, match="version 2, not 1"):
        nodes.commit([Set("/a", b"z", 1)], 1)
    with pytest.raises(BadVersionError):
        nodes.commit([Delete("/a", 0)], 1)
    nodes.commit([Delete("/a", 2)], 1)
    nodes.commit([Create("/a")], 1)
    assert nodes.get("/a").version == 0


def test_transactions_are_numbered_and_a_node_knows_its_first_and_its_last(nodes: Nodes) -> None:
    nodes.commit([Create("/a"), Create("/b")], 1)
    nodes.commit([Set("/a", b"x")], 1)
    assert (nodes.get("/a").czxid, nodes.get("/a").mzxid, nodes.get("/b").mzxid) == (1, 2, 1)
    with pytest.raises(NoNodeError):
        nodes.commit([Set("/c", b"x")], 1)
    assert nodes.last_transaction == 2


def test_a_sequential_node_is_numbered_by_the_children_there_ever_were(nodes: Nodes) -> None:
    nodes.commit([Create("/s")], 1)
    assert nodes.commit([Create("/s/n_", sequence=True)], 1) == ["/s/n_0000000000"]
    nodes.commit([Create("/s/other")], 1)
    nodes.commit([Delete("/s/n_0000000000")], 1)
    assert nodes.commit([Create("/s/n_", sequence=True), Create("/s/", sequence=True)], 1) == [
        "/s/n_0000000002",
        "/s/0000000003",
    ]
    # Four came and one went.
    assert nodes.get("/s").children_version == 5


def test_what_cannot_be_done_is_refused(nodes: Nodes) -> None:
    nodes.commit([Create("/a"), Create("/a/b"), Create("/e", ephemeral=True)], 7)
    assert nodes.get("/e").owner == 7 and nodes.owned_by(7) == ["/e"] and nodes.owned_by(8) == []
    for operation, error in (
        (Create("/a"), NodeExistsError),
        (Create("/x/y"), NoNodeError),
        (Create("/e/x"), EphemeralParentError),
        (Delete("/a"), NotEmptyError),
        (Delete("/"), InvalidPathError),
        (Delete("/x"), NoNodeError),
        (Check("/x"), NoNodeError),
        (Check("/a", 3), BadVersionError),
    ):
        with pytest.raises(error):
            nodes.commit([operation], 7)
    assert nodes.paths() == ["/a", "/a/b", "/e"]


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a/../b", "/a/./b", "/a//b"])
def test_an_invalid_path_is_refused(nodes: Nodes, path: str) -> None:
    with pytest.raises(InvalidPathError):
        nodes.get(path)
    with pytest.raises(SimulatedZooKeeperError):
        nodes.commit([Create(path)], 1)


PATHS = ["/a", "/b", "/a/c", "/a/d", "/a/c/e"]


def drawn(random: Random) -> Operation:
    path, version = random.choice(PATHS), random.choice([-1, -1, 0, 1])
    return random.choice(
        [
            Create(path, b"new", ephemeral=random.random() < 0.3, sequence=random.random() < 0.3),
            Set(path, b"set", version),
            Delete(path, version),
            Check(path, version),
        ]
    )


def everything(nodes: Nodes) -> dict[str, object]:
    return {path: (nodes.get(path), nodes.children(path)) for path in ["/", *nodes.paths()]}


@given(seed=st.integers(0, 10_000))
def test_a_transaction_is_done_whole_or_not_at_all(seed: int) -> None:
    random = Random(seed)
    nodes, one_by_one = Nodes(), Nodes()
    for _ in range(12):
        operations = [drawn(random) for _ in range(random.randint(1, 4))]
        before = everything(nodes)
        try:
            nodes.commit(operations, 1)
        except SimulatedZooKeeperError:
            assert everything(nodes) == before
        else:
            for operation in operations:
                one_by_one.commit([operation], 1)
            assert nodes.paths() == one_by_one.paths()
            assert [nodes.get(path)[:2] for path in nodes.paths()] == [
                one_by_one.get(path)[:2] for path in nodes.paths()
            ]
