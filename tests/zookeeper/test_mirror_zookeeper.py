"""The ZooKeeper in memory against a real server: the same operations, the same nodes, and a mirror both ways."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from reconciler.simulator.zookeeper import (
    Check,
    Create,
    Delete,
    Operation,
    Session,
    Set,
    SimulatedZooKeeperError,
    ZooKeeper,
    kafka_nodes,
    kafka_paths,
)
from reconciler.simulator.zookeeper.nodes import InvalidPathError
from reconciler.sources.zookeeper import znodes
from tests.zookeeper import mirror

pytestmark = pytest.mark.zookeeper


class NoTimer:
    def cancel(self) -> None: ...


class Later:
    """Keeps what is to happen until it is asked to."""

    def __init__(self) -> None:
        self.due: deque[Callable[[], None]] = deque()

    def now_ms(self) -> int:
        return 0

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> NoTimer:
        self.due.append(act)
        return NoTimer()

    def run(self) -> None:
        while self.due:
            self.due.popleft()()


@pytest.fixture(scope="module")
def client(zookeeper: Any) -> Iterator[Any]:
    with zookeeper:
        client = zookeeper.connect()
        yield client
        client.stop()
        client.close()


@pytest.fixture
def root(client: Any, request: pytest.FixtureRequest) -> str:
    """A place of its own for each test."""
    path = "/test" + "".join(each for each in request.node.name if each.isalnum())
    client.create(path, b"")
    return path


@pytest.fixture
def ours() -> ZooKeeper:
    return ZooKeeper(Later())


def test_a_tree_goes_across_and_comes_back(client: Any, root: str, ours: ZooKeeper) -> None:
    session = ours.session("broker-1")
    kafka_paths.make_base(session)
    session.create(kafka_paths.topic_path("orders"), znodes.encode_topic(None, {0: (1, 2)}))
    session.create(kafka_paths.broker_path(1), kafka_nodes.encode_broker(1), ephemeral=True)
    mirror.write(client, ours.dump(), root)
    assert mirror.compare(ours.dump(), mirror.read(client, root)) == []
    back = ZooKeeper(Later())
    mirror.load(back.session("reader"), mirror.read(client, root))
    assert back.dump() == ours.dump()


def test_differences_are_reported_and_set(client: Any, root: str) -> None:
    mirror.write(client, {"/same": b"1", "/other": b"1", "/gone": b"1"}, root)
    wanted = {"/same": b"1", "/other": b"2", "/new/below": b"3"}
    assert mirror.compare(wanted, mirror.read(client, root)) == [
        mirror.Difference("/gone", None, b"1"),
        mirror.Difference("/new/below", b"3", None),
        mirror.Difference("/other", b"2", b"1"),
    ]
    mirror.write(client, wanted, root)
    assert mirror.compare(wanted, mirror.read(client, root)) == [
        mirror.Difference("/gone", None, b"1"),
        mirror.Difference("/new", None, b""),
    ]
    mirror.write(client, wanted, root, others=False)
    assert mirror.read(client, root) == wanted | {"/new": b""}


def test_what_the_server_keeps_for_itself_is_not_read(client: Any) -> None:
    assert client.exists(mirror.ITS_OWN) is not None
    assert not [path for path in mirror.read(client) if path.startswith(mirror.ITS_OWN)]


def test_a_path_that_is_none_is_refused_before_anything_is_written(client: Any, root: str) -> None:
    with pytest.raises(InvalidPathError):
        mirror.write(client, {"/a": b"", "b": b""}, root)
    assert mirror.read(client, root) == {}


PATHS = ["/a", "/b", "/a/c", "/a/d", "/a/c/e", "/e", "/e/f"]


def drawn(random: Random) -> Operation:
    path, version = random.choice(PATHS), random.choice([-1, -1, 0, 1])
    kind = random.randrange(4)
    if kind == 0:
        ephemeral = path in ("/e", "/a/d") and random.random() < 0.5
        return Create(path, b"new", ephemeral=ephemeral, sequence=random.random() < 0.2)
    if kind == 1:
        return Set(path, str(random.random()).encode(), version)
    return Delete(path, version) if kind == 2 else Check(path, version)


def on_ours(session: Session, operations: list[Operation]) -> str:
    """The error's name, or nothing."""
    try:
        session.multi(operations)
    except SimulatedZooKeeperError as error:
        return type(error).__name__
    return ""


def on_theirs(client: Any, root: str, operations: list[Operation]) -> str:
    """The same of the server; in a transaction it marks what came before and after the failure in other ways."""
    from kazoo.exceptions import RolledBackError, RuntimeInconsistency

    transaction = client.transaction()
    for each in operations:
        path = root + each.path
        if isinstance(each, Create):
            transaction.create(path, each.data, ephemeral=each.ephemeral, sequence=each.sequence)
        elif isinstance(each, Set):
            transaction.set_data(path, each.data, each.version)
        elif isinstance(each, Delete):
            transaction.delete(path, each.version)
        else:
            transaction.check(path, each.version)
    failures = [found for found in transaction.commit() if isinstance(found, Exception)]
    telling = [found for found in failures if not isinstance(found, RolledBackError | RuntimeInconsistency)]
    names = {"NoChildrenForEphemeralsError": "EphemeralParentError"}
    return names.get(name := type(telling[0]).__name__, name) if telling else ""


@pytest.mark.parametrize("seed", range(4))
def test_the_same_transactions_have_the_same_effect_versions_and_errors(
    client: Any, root: str, ours: ZooKeeper, seed: int
) -> None:
    random, session = Random(seed), ours.session("broker-1")
    outcomes = set()
    for _ in range(150):
        operations = [drawn(random) for _ in range(random.randint(1, 3))]
        here, there = on_ours(session, operations), on_theirs(client, root, operations)
        assert here == there, operations
        outcomes.add(here)
        assert mirror.compare(ours.dump(), mirror.read(client, root)) == [], operations
    for path in ours.dump():
        mine, (_, status) = session.get(path), client.get(root + path)
        assert (mine.version, mine.children_version, mine.owner is not None) == (
            status.version,
            status.cversion,
            bool(status.ephemeralOwner),
        )
    assert {"", "NoNodeError", "NodeExistsError", "BadVersionError"} <= outcomes


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Delete("/full"), "NotEmptyError"),
        (Create("/short/below"), "EphemeralParentError"),
        (Create("/full"), "NodeExistsError"),
        (Create("/no/where"), "NoNodeError"),
        (Set("/full", b"", 5), "BadVersionError"),
        (Check("/nothing"), "NoNodeError"),
        (Check("/full", 1), "BadVersionError"),
    ],
)
def test_each_error_is_the_servers_too(
    client: Any, root: str, ours: ZooKeeper, operation: Operation, error: str
) -> None:
    session, before = ours.session("broker-1"), [Create("/full"), Create("/full/x"), Create("/short", ephemeral=True)]
    assert on_ours(session, [*before]) == on_theirs(client, root, [*before]) == ""
    # Together with one that can be done: it must be undone.
    assert on_ours(session, [Create("/first"), operation]) == error
    assert on_theirs(client, root, [Create("/first"), operation]) == error
    assert mirror.compare(ours.dump(), mirror.read(client, root)) == []
    assert "/first" not in ours.dump()


def test_transaction_ids_rise_in_the_same_order(client: Any, root: str, ours: ZooKeeper) -> None:
    session = ours.session("broker-1")
    for path in ("/z", "/a", "/m"):
        session.create(path)
        client.create(root + path)
    session.set("/a", b"x")
    client.set(root + "/a", b"x")
    mine = {path: session.get(path) for path in ours.dump()}
    theirs = {path: client.exists(root + path) for path in ours.dump()}
    assert sorted(mine, key=lambda path: mine[path].czxid) == sorted(theirs, key=lambda path: theirs[path].czxid)
    assert sorted(mine, key=lambda path: mine[path].mzxid) == sorted(theirs, key=lambda path: theirs[path].mzxid)
