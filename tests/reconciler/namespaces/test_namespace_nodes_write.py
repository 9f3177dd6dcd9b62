"""Configs and ACLs of a namespace in ZooKeeper, on the simulator's; ``tests/zookeeper`` has a real server.

# KIP37-4 KIP37-5 KIP37-6
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.errors import RefusedError, UsageError
from reconciler.namespaces import NamespaceSeen, check_all_newer, read_namespace, write_acls, write_configs
from reconciler.simulator.zookeeper import (
    CONFIG_CHANGES,
    Authorizer,
    AuthorizerSettings,
    config_change,
    effective_configs,
)
from reconciler.sources.zookeeper import Acl, AclOperation, encode_registration
from tests.reconciler.namespaces.tree import SimulatedClient, Transaction, exceptions

OLDER = encode_registration("broker-2", 9092)
ANN = Acl("User:ann", AclOperation.READ)


@pytest.fixture
def client() -> SimulatedClient:
    return SimulatedClient()


def test_what_is_written_is_what_a_broker_goes_by(client: SimulatedClient) -> None:
    seen = read_namespace(client, "zk", "org")
    assert isinstance(seen, NamespaceSeen)
    assert write_configs(client, seen, {"retention.ms": "7"}) is None
    assert write_acls(client, seen, [ANN]) is None
    assert effective_configs(client.session, "org:apache:orders") == {"retention.ms": "7"}
    rules = Authorizer.of(client.session, AuthorizerSettings())
    assert rules.allows("User:ann", AclOperation.READ, "org:apache:orders")
    assert not rules.allows("User:bob", AclOperation.READ, "org:apache:orders")
    again = read_namespace(client, "zk", "org:apache")
    assert again.configs == {"org:apache": {}, "org": {"retention.ms": "7"}, "": {}}
    assert again.acls == {"org:apache": (), "org": (ANN,), "": ()}
    assert write_configs(client, again, {"retention.ms": "8"}) is None
    assert effective_configs(client.session, "org:apache:orders") == {"retention.ms": "8"}


def test_running_brokers_hear_of_new_configs_as_of_those_that_an_administrator_changed(client: SimulatedClient) -> None:
    for value in ("7", "8"):
        seen = read_namespace(client, "zk", "org:apache")
        assert write_configs(client, seen, {"retention.ms": value}) is None
    notices = [client.session.get(f"{CONFIG_CHANGES}/{name}").data for name in client.session.children(CONFIG_CHANGES)]
    assert notices == [config_change("org:apache").data] * 2
    assert write_acls(client, read_namespace(client, "zk", "org:apache"), [ANN]) is None
    assert len(client.session.children(CONFIG_CHANGES)) == 2, "of ACLs no notice is needed: brokers read them each time"


def test_only_the_namespaces_own_node_and_what_leads_to_it_is_written(client: SimulatedClient) -> None:
    before = client.zookeeper.dump()
    assert write_acls(client, read_namespace(client, "zk", "org:apache"), [ANN]) is None
    after = client.zookeeper.dump()
    assert set(after) - set(before) == {"/kafka-acl/Namespace/org", "/kafka-acl/Namespace/org/apache"}
    assert client.session.get("/kafka-acl/Namespace/org").data == b""


@pytest.mark.parametrize(
    "change",
    [
        lambda client: client.session.set("/controller_epoch", b"4"),
        lambda client: client.session.set("/config/topics/org", b"{}"),
        lambda client: client.session.delete("/brokers/topics/org", recursive=True),
        lambda client: client.session.delete("/brokers/ids/2"),
    ],
    ids=["a controller", "another writer", "the namespace is gone", "a broker is gone"],
)
def test_what_changed_meanwhile_wins(client: SimulatedClient, change: Callable[[SimulatedClient], object]) -> None:
    client.session.create("/config/topics/org", b"")
    seen = read_namespace(client, "zk", "org")
    change(client)
    before = client.session.find("/config/topics/org")
    assert "run it again" in (write_configs(client, seen, {"retention.ms": "7"}) or "")
    assert client.session.find("/config/topics/org") == before


def test_a_node_that_somebody_else_makes_meanwhile_is_not_written_over(client: SimulatedClient) -> None:
    seen = read_namespace(client, "zk", "org")
    client.session.create("/config/topics/org", b"theirs")
    assert "run it again" in (write_configs(client, seen, {"retention.ms": "7"}) or "")
    assert client.session.get("/config/topics/org").data == b"theirs"


def test_a_refusal_of_the_server_is_reported_by_its_name(
    client: SimulatedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transaction, "refused", exceptions.NoAuthError())
    seen = read_namespace(client, "zk", "org")
    assert write_configs(client, seen, {}) == "ZooKeeper refused to write it (NoAuthError)"


def test_a_broker_that_does_not_say_that_it_knows_namespaces_is_older(client: SimulatedClient) -> None:
    seen = read_namespace(client, "zk", "org")
    assert seen.brokers == {"1": True, "2": True}
    check_all_newer(seen, "zk", "--older-brokers")
    client.register(2, OLDER)
    client.register(3, b'{"version":1,"host":"broker-3","port":9092}')
    seen = read_namespace(client, "zk", "org")
    assert seen.brokers == {"1": True, "2": False, "3": False}
    with pytest.raises(RefusedError, match=r"brokers 2, 3 of 3 registered without .*\(override: --older-brokers\)"):
        check_all_newer(seen, "zk", "--older-brokers")
    nobody = replace(seen, brokers={})
    with pytest.raises(RefusedError, match=r"no broker is registered, so nothing says .*\(override: --older-brokers\)"):
        check_all_newer(nobody, "zk", "--older-brokers")


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("net", RefusedError, "net was not created, for /brokers/topics/net is not there"),
        ("orders", RefusedError, "orders is a topic"),
        ("", UsageError, "name a namespace"),
        ("a/b", UsageError, "is no namespace"),
    ],
)
def test_what_is_no_namespace_is_refused(client: SimulatedClient, name: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        read_namespace(client, "zk", name)


def test_a_cluster_that_kraft_has_taken_over_is_refused(client: SimulatedClient) -> None:
    client.session.create("/migration", b'{"kraft_controller_id":3000}')
    with pytest.raises(RefusedError, match="3000"):
        read_namespace(client, "zk", "org")
