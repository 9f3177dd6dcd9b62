"""Configs and ACLs of namespaces in a real ZooKeeper: shown, written whole, refused while a broker is older.

# KIP37-4 KIP37-5 KIP37-6
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconciler.cli import logstore
from reconciler.namespaces import read_namespace, write_acls, write_configs
from reconciler.sources.zookeeper import (
    CONFIG_CHANGES,
    NAMESPACES_FEATURE,
    Acl,
    AclOperation,
    decode_acls,
    decode_config,
    encode_config_change,
    encode_registration,
    node_at,
)
from reconciler.topic_ids import connect
from tests.zookeeper.conftest import below_chroot

pytestmark = pytest.mark.zookeeper

NEWER, OLDER = encode_registration("a", 9092, features=(NAMESPACES_FEATURE,)), encode_registration("a", 9092)
NODES: dict[str, bytes] = {
    "/controller_epoch": b"27",
    "/brokers/ids/1": NEWER,
    "/brokers/ids/2": NEWER,
    "/brokers/topics/org/apache/orders": b'{"version":1,"partitions":{"0":[1]}}',
    "/config/topics/org": b'{"version":1,"config":{"retention.ms":"5","segment.ms":"9"}}',
    "/config/brokers/<default>": b'{"version":1,"config":{"min.insync.replicas":"2","segment.ms":"1"}}',
}
ANN = Acl("User:ann", AclOperation.ALL)
CONFIG, ACLS = "/config/topics/org/apache", "/kafka-acl/Namespace/org/apache"


@pytest.fixture
def client(server: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client below a chroot of this test's own, which holds the nodes of a cluster."""
    yield from below_chroot(server, request, NODES)


@pytest.fixture
def run(server: Any, client: Any) -> Callable[..., Result]:
    def asked(what: str, *words: str) -> Result:
        address = f"zk:{server.address}{client.chroot}"
        return CliRunner().invoke(logstore, ["namespace", what, address, "org:apache", *words])

    return asked


def rows(result: Result, what: str) -> list[tuple[str, ...]]:
    assert result.exit_code == 0, result.stderr
    return [tuple(each.values()) for each in json.loads(result.stdout)[what]]


def test_configs_are_shown_with_their_tier_set_and_removed(client: Any, run: Callable[..., Result]) -> None:
    inherited = [("min.insync.replicas", "2", "(cluster)"), ("retention.ms", "5", "org"), ("segment.ms", "9", "org")]
    assert rows(run("configs", "--format", "json"), "configs") == inherited
    assert client.exists(CONFIG) is None, "a look writes nothing"
    assert run("configs", "--set", "retention.ms=7").exit_code == 0
    assert decode_config(client.get(CONFIG)[0]) == {"retention.ms": "7"}
    assert rows(run("configs", "--format", "json"), "configs")[1] == ("retention.ms", "7", "org:apache")
    assert run("configs", "--remove", "retention.ms").exit_code == 0
    assert rows(run("configs", "--format", "json"), "configs") == inherited


def test_acls_are_added_shown_and_removed(client: Any, run: Callable[..., Result]) -> None:
    assert rows(run("acls", "--format", "json"), "acls") == []
    added = run("acls", "--allow", "User:ann", "All", "--deny", "User:*", "Delete")
    assert added.exit_code == 0, added.stderr
    assert decode_acls(client.get(ACLS)[0]) == (Acl("User:*", AclOperation.DELETE, allow=False), ANN)
    assert rows(run("acls", "--format", "json"), "acls") == [
        ("User:*", "Deny", "Delete", "org:apache", "yes"),
        ("User:ann", "Allow", "All", "org:apache", "yes"),
    ]
    assert run("acls", "--remove-allow", "User:ann", "All", "--remove-deny", "User:*", "Delete").exit_code == 0
    assert decode_acls(client.get(ACLS)[0]) == ()


def test_nothing_is_written_while_a_broker_is_older_unless_that_is_asked_for(
    client: Any, run: Callable[..., Result]
) -> None:
    client.set("/brokers/ids/2", OLDER)
    refused = run("configs", "--set", "retention.ms=7")
    assert (refused.exit_code, "broker 2 of 2 registered without" in refused.stderr) == (3, True)
    assert run("acls", "--allow", "User:ann", "All").exit_code == 3
    assert client.exists(CONFIG) is client.exists(ACLS) is None
    assert run("configs", "--set", "retention.ms=7", "--older-brokers").exit_code == 0
    assert decode_config(client.get(CONFIG)[0]) == {"retention.ms": "7"}


@pytest.mark.parametrize(
    "change",
    [
        lambda client: client.set("/controller_epoch", b"28"),
        lambda client: client.set("/brokers/ids/1", OLDER),
        lambda client: client.delete("/brokers/topics/org/apache", recursive=True),
        lambda client: client.create(CONFIG, b"theirs", makepath=True),
    ],
    ids=["a controller", "an older broker", "the namespace is gone", "another writer"],
)
def test_what_changed_since_it_was_read_wins(server: Any, client: Any, change: Callable[[Any], object]) -> None:
    address = f"{server.address}{client.chroot}"
    with connect(address) as writing:
        seen = read_namespace(writing, address, "org:apache")
        change(client)
        before = node_at(client, CONFIG)
        assert "run it again" in (write_configs(writing, seen, {"retention.ms": "7"}) or "")
        assert node_at(client, CONFIG) == before


def test_both_are_written_from_one_reading(server: Any, client: Any) -> None:
    address = f"{server.address}{client.chroot}"
    with connect(address) as writing:
        seen = read_namespace(writing, address, "org:apache")
        assert write_configs(writing, seen, {"retention.ms": "7"}) is None
        assert write_acls(writing, seen, [ANN]) is None
        assert write_acls(writing, seen, []) is not None, "the second time it is somebody else's node"
    (notice,) = client.get_children(CONFIG_CHANGES)
    assert notice.startswith("config_change_0")
    assert client.get(f"{CONFIG_CHANGES}/{notice}")[0] == encode_config_change("topics/org/apache")
    assert decode_acls(client.get(ACLS)[0]) == (ANN,)
