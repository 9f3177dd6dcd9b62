"""Sessions, ephemeral nodes and watches of the ZooKeeper in memory."""

from __future__ import annotations

import pytest

from reconciler.simulator.zookeeper import (
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Session,
    SessionExpiredError,
    Set,
    ZooKeeper,
)
from tests.reconciler.simulator.admin.admin_bench import Crank


def test_a_node_can_be_created_read_set_and_deleted(session: Session) -> None:
    assert session.create("/a", b"one") == "/a"
    assert session.get("/a").data == b"one"
    assert session.set("/a", b"two") == 1
    assert session.get("/a") == session.find("/a")
    assert (session.get("/a").data, session.get("/a").version) == (b"two", 1)
    session.delete("/a")
    assert session.find("/a") is None
    with pytest.raises(NoNodeError, match="/a"):
        session.get("/a")


def test_parents_are_created_empty_and_lasting_each_with_its_own_transaction(session: Session) -> None:
    session.create("/a/b/c", b"x", ephemeral=True, parents=True)
    births = [session.get(path).czxid for path in ("/a", "/a/b", "/a/b/c")]
    assert births == sorted(set(births))
    assert [session.get(path).owner for path in ("/a", "/a/b", "/a/b/c")] == [None, None, session.number]
    with pytest.raises(NoNodeError):
        session.create("/x/y")


def test_a_tree_is_deleted_at_once_from_below(session: Session, server: ZooKeeper, crank: Crank) -> None:
    for path in ("/a/b/c", "/a/b/d", "/a/e", "/other"):
        session.create(path, parents=True)
    crank.run()
    changed: list[str] = []
    session.watch("/", changed.append)
    before = server.nodes.last_transaction
    session.delete("/a", recursive=True)
    crank.run()
    assert list(server.dump()) == ["/other"]
    assert server.nodes.last_transaction == before + 1
    assert sorted(changed) == ["/a", "/a/b", "/a/b/c", "/a/b/d", "/a/e"]
    assert all(changed.index(path) < changed.index(path.rpartition("/")[0]) for path in changed if path != "/a")


def test_a_dump_has_every_node_but_the_root_sorted(session: Session, server: ZooKeeper) -> None:
    for path in ("/b", "/a", "/a/z", "/a-b"):
        session.create(path, path.encode())
    assert list(server.dump().items()) == [(path, path.encode()) for path in ("/a", "/a-b", "/a/z", "/b")]


def test_a_watch_tells_of_every_change_at_or_below_later_and_in_order(session: Session, crank: Crank) -> None:
    changed: list[str] = []
    session.watch("/a", changed.append)
    session.create("/a")
    session.create("/a/b")
    session.create("/ab")
    session.set("/a/b", b"x")
    session.delete("/a/b")
    session.delete("/a")
    assert changed == []
    crank.run()
    assert changed == ["/a", "/a/b", "/a/b", "/a/b", "/a"]
    session.create("/a")
    crank.run()
    assert changed[5:] == ["/a"]


def test_a_session_learns_of_changes_in_their_order_even_when_events_do_not_come_in_order(
    session: Session, crank: Crank
) -> None:
    changed: list[str] = []
    session.watch("/", changed.append)
    for path in ("/a", "/b", "/c"):
        session.create(path)
    crank.due.reverse()
    crank.run()
    assert changed == ["/a", "/b", "/c"]


def test_one_session_sees_the_changes_of_another(server: ZooKeeper, session: Session, crank: Crank) -> None:
    changed: list[str] = []
    server.session("other").watch("/a", changed.append)
    session.create("/a/b", parents=True)
    crank.run()
    assert changed == ["/a", "/a/b"]


def test_when_a_session_expires_its_nodes_go_and_watches_fire(
    server: ZooKeeper, session: Session, crank: Crank
) -> None:
    other = server.session("other")
    session.create("/ids", parents=True)
    session.create("/ids/1", ephemeral=True)
    session.create("/ids/2")
    changed: list[str] = []
    mine: list[str] = []
    other.watch("/ids", changed.append)
    session.watch("/ids", mine.append)
    session.expire()
    assert list(server.dump()) == ["/ids", "/ids/2"]
    crank.run()
    assert (changed, mine) == (["/ids/1"], [])
    session.expire()
    assert session.expired and not other.expired


def test_every_call_of_a_session_that_is_over_fails(session: Session) -> None:
    session.create("/a")
    session.close()
    for call in (
        lambda: session.create("/b"),
        lambda: session.get("/a"),
        lambda: session.find("/a"),
        lambda: session.children("/"),
        lambda: session.set("/a", b""),
        lambda: session.delete("/a"),
        lambda: session.delete("/a", recursive=True),
        lambda: session.multi([]),
        lambda: session.watch("/a", print),
    ):
        with pytest.raises(SessionExpiredError, match="broker-1"):
            call()


def test_an_abandoned_session_gets_no_notifications_but_its_nodes_stay_until_it_expires(
    server: ZooKeeper, session: Session, crank: Crank
) -> None:
    changed: list[str] = []
    session.watch("/a", changed.append)
    session.create("/a", ephemeral=True)
    session.abandon()
    server.session("other").set("/a", b"x")
    crank.run()
    assert changed == [] and list(server.dump()) == ["/a"]
    session.expire()
    assert list(server.dump()) == []


def test_sessions_have_numbers_that_never_come_back(server: ZooKeeper) -> None:
    numbers = []
    for _ in range(3):
        session = server.session("broker-1")
        numbers.append(session.number)
        session.close()
    assert len(set(numbers)) == 3


def test_a_transaction_is_done_whole_before_its_watches_fire(session: Session, crank: Crank) -> None:
    changed: list[str] = []
    session.watch("/", changed.append)
    session.create("/old", b"1")
    session.multi([Check("/old", 0), Create("/new"), Set("/old", b"2", 0), Create("/new/x"), Delete("/new/x")])
    assert session.get("/old").data == b"2"
    assert session.get("/new").czxid == session.get("/old").mzxid
    crank.run()
    assert changed == ["/old", "/new", "/old", "/new/x", "/new/x"]


def test_a_transaction_that_fails_tells_nobody(session: Session, crank: Crank) -> None:
    changed: list[str] = []
    session.create("/old")
    crank.run()
    session.watch("/", changed.append)
    with pytest.raises(NodeExistsError):
        session.multi([Create("/new"), Create("/old")])
    crank.run()
    assert changed == [] and session.children("/") == ["old"]
