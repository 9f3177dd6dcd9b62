"""Loading nodes into the ZooKeeper in memory, and comparing; tests with a real server are in tests/zookeeper."""

from __future__ import annotations

from reconciler.simulator.zookeeper import Session, ZooKeeper
from tests.zookeeper.mirror import Difference, compare, load


def test_nodes_are_loaded_with_those_above_them_and_the_others_stay(server: ZooKeeper, session: Session) -> None:
    session.create("/stays", b"0")
    session.create("/other", b"0")
    load(session, {"/a/b": b"2", "/other": b"1", "/a/b/c": b"3"})
    assert server.dump() == {"/a": b"", "/a/b": b"2", "/a/b/c": b"3", "/other": b"1", "/stays": b"0"}


def test_loading_twice_changes_nothing_the_second_time(server: ZooKeeper, session: Session) -> None:
    load(session, {"/a": b"1", "/a/b": b"2"})
    before = server.nodes.last_transaction
    load(session, {"/a": b"1", "/a/b": b"2"})
    assert server.nodes.last_transaction == before


def test_differences_are_listed_by_path_and_by_side() -> None:
    assert compare({"/a": b"1", "/b": b"", "/c": b"3"}, {"/c": b"4", "/a": b"1", "/d": b""}) == [
        Difference("/b", b"", None),
        Difference("/c", b"3", b"4"),
        Difference("/d", None, b""),
    ]
