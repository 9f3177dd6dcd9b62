"""Configs are inherited: topic, its tiers, the cluster; the engine's own settings too."""

from __future__ import annotations

import pytest

from logstore import DELETE_DELAY, STALE_DELAY, KafkaError, Settings
from reconciler.simulator.admin import AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.configs import check_configs
from reconciler.simulator.zookeeper import (
    CONFIG_CHANGES,
    Session,
    config_scopes,
    effective_configs,
    engine_settings,
    own_configs,
    read_configs,
)
from reconciler.sources.zookeeper import encode_config_change
from tests.reconciler.simulator.admin.admin_bench import AdminBench


def store_settings(session: Session, static: Settings | None = None) -> Settings:
    return engine_settings(read_configs(session), static)


@pytest.fixture
def apache(bench: AdminBench) -> AdminBench:
    bench.admin.create_namespace("org:apache")
    bench.admin.create_topics([CreateTopic("org:apache:orders", 1, 1), CreateTopic("orders", 1, 1)])
    return bench


def test_the_nearest_value_holds(apache: AdminBench) -> None:  # KIP37-5
    admin = apache.admin
    assert admin.alter_namespace_configs("", {"retention.ms": "1", "segment.ms": "1"}) == CommandOutcome()
    assert admin.alter_namespace_configs("org", {"retention.ms": "2", "retention.bytes": "2"}) == CommandOutcome()
    assert (
        admin.alter_namespace_configs("org:apache", {"retention.ms": "3", "max.message.bytes": "3"}) == CommandOutcome()
    )
    admin.alter_topics([AlterTopic("org:apache:orders", configs={"retention.ms": "4"})])
    assert effective_configs(apache.session, "org:apache:orders") == {
        "max.message.bytes": "3",
        "retention.bytes": "2",
        "retention.ms": "4",
        "segment.ms": "1",
    }
    assert effective_configs(apache.session, "orders") == {"retention.ms": "1", "segment.ms": "1"}
    assert own_configs(apache.session, "org:apache:orders") == {"retention.ms": "4"}


def test_a_value_that_is_deleted_is_inherited_again(apache: AdminBench) -> None:  # KIP37-5
    admin = apache.admin
    admin.alter_namespace_configs("org", {"retention.ms": "2"})
    admin.alter_namespace_configs("org:apache", {"retention.ms": "3"})
    assert admin.alter_namespace_configs("org:apache", {}, ["retention.ms"]) == CommandOutcome()
    assert effective_configs(apache.session, "org:apache:orders") == {"retention.ms": "2"}


def test_the_engines_own_settings_resolve_along_the_tiers(apache: AdminBench) -> None:  # KIP37-5, KIP516-6
    apache.admin.alter_namespace_configs("org", {STALE_DELAY: "7d"})
    apache.admin.alter_namespace_configs("", {DELETE_DELAY: "5s"})
    settings = store_settings(apache.session)
    assert settings.of("org:apache:orders", STALE_DELAY) == 7 * 86_400_000
    assert settings.of("orders", STALE_DELAY) == 4 * 3_600_000
    apache.admin.alter_topics([AlterTopic("org:apache:orders", configs={STALE_DELAY: "1000"})])
    settings = store_settings(apache.session)
    assert settings.of("org:apache:orders", STALE_DELAY) == 1000
    assert settings.of("org:apache:orders", DELETE_DELAY) == settings.of("orders", DELETE_DELAY) == 5000


def test_the_scopes_of_a_topic_are_its_own_its_tiers_and_the_clusters() -> None:
    assert config_scopes("org:apache:orders") == ["org:apache:orders", "org:apache:", "org:", ""]


def test_what_a_broker_has_in_its_properties_gives_way_scope_by_scope(apache: AdminBench) -> None:  # KIP37-5
    static = Settings({"": {STALE_DELAY: 1, DELETE_DELAY: 2}, "org:": {STALE_DELAY: 3}})
    apache.admin.alter_namespace_configs("", {STALE_DELAY: "4"})
    apache.session.set("/config/brokers/<default>", b'{"config": {"file.delete.delay.ms": "soon"}}')
    apache.admin.alter_namespace_configs("", {STALE_DELAY: "4"})
    settings = store_settings(apache.session, static)
    assert [settings.of(topic, STALE_DELAY) for topic in ("orders", "org:apache:orders")] == [4, 3]
    assert settings.of("orders", DELETE_DELAY) == 2


def test_each_change_is_told_to_brokers_in_its_own_transaction(apache: AdminBench) -> None:  # KIP37-5
    session, changes = apache.session, CONFIG_CHANGES
    before = set(session.children(changes))
    apache.admin.alter_namespace_configs("org:apache", {"retention.ms": "1"})
    apache.admin.alter_topics([AlterTopic("orders", configs={"retention.ms": "1"})])
    apache.admin.alter_namespace_configs("", {"retention.ms": "1"})
    nodes = [session.get(f"{changes}/{name}") for name in session.children(changes) if name not in before]
    assert [node.data.decode() for node in nodes] == [
        '{"version":2,"entity_path":"topics/org/apache"}',
        '{"version":2,"entity_path":"topics/orders"}',
        encode_config_change("brokers/<default>").decode(),
    ]
    written = [session.get(path).mzxid for path in ("/config/topics/org/apache", "/config/topics/orders")]
    assert written == [node.czxid for node in nodes[:2]]


def test_a_namespace_that_comes_again_has_no_configs_of_the_earlier_one(apache: AdminBench) -> None:
    apache.admin.create_namespace("net")
    apache.admin.alter_namespace_configs("net", {"retention.ms": "1"})
    apache.session.create("/config/topics/net/orders")  # left by a controller that crashed
    apache.admin.delete_namespace("net")
    apache.admin.start()
    apache.timers.run()
    assert "net" not in apache.admin.list_namespaces() and own_configs(apache.session, "net")
    apache.admin.create_namespace("net")
    assert own_configs(apache.session, "net") == {}


def test_a_namespace_that_does_not_exist_has_no_configs(apache: AdminBench) -> None:
    for name in ("net", "orders"):
        assert apache.admin.alter_namespace_configs(name, {"retention.ms": "1"}).error == 17


def test_every_reason_is_reported_at_once() -> None:
    with pytest.raises(
        CommandRefusedError, match=r"'a' is not among them.*'b' is not among them.*retention.ms is"
    ) as caught:
        check_configs({"a": "1", "retention.ms": "x"}, ["b"])
    assert caught.value.error is KafkaError.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("cleanup.policy", "compact, delete", "shred"),
        ("compression.type", "zstd", "zip"),
        ("min.insync.replicas", "1", "0"),
        ("retention.ms", "-1", "-2"),
        ("segment.bytes", "14", "13"),
        ("unclean.leader.election.enable", "true", "yes"),
        (STALE_DELAY, "4h", "4 moons"),
    ],
)
def test_values_have_their_bounds(name: str, good: str, bad: str) -> None:
    check_configs({name: good})
    with pytest.raises(CommandRefusedError, match=name):
        check_configs({name: bad})
