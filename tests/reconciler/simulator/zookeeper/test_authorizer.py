"""Who may do what: the namespace is asked before the topic, tiers inherit, a Deny counts everywhere. KIP37-6."""

from __future__ import annotations

import pytest

from reconciler.simulator.zookeeper import Authorizer, AuthorizerSettings
from reconciler.sources.zookeeper import EVERYBODY, Acl, AclOperation
from tests.reconciler.simulator.admin.admin_bench import AdminBench, set_acls

ALICE, BOB = "User:alice", "User:bob"
READ, WRITE, ALL, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL, AclOperation.DESCRIBE
CREATE, ALTER = AclOperation.CREATE, AclOperation.ALTER
TOPIC = "org:apache:orders"


@pytest.fixture
def bench() -> AdminBench:
    """Its session is all that an authorizer needs."""
    return AdminBench()


@pytest.fixture
def rules(bench: AdminBench) -> Authorizer:
    return Authorizer(bench.session)


def test_where_nothing_is_said_the_default_counts(bench: AdminBench, rules: Authorizer) -> None:
    assert rules.allows(ALICE, READ, TOPIC)
    assert not Authorizer(bench.session, allow_when_nothing_is_said=False).allows(ALICE, READ, TOPIC)


def test_what_a_tier_allows_its_topics_inherit(bench: AdminBench, rules: Authorizer) -> None:  # KIP37-6
    set_acls(bench.session, [Acl(ALICE, READ)], namespace="org")
    assert rules.allows(ALICE, READ, TOPIC)
    assert not rules.allows(BOB, READ, TOPIC)
    assert not rules.allows(ALICE, WRITE, TOPIC)
    assert rules.allows(BOB, READ, "orders")


def test_the_namespace_is_asked_before_the_topics_own(bench: AdminBench, rules: Authorizer) -> None:  # KIP37-6
    set_acls(bench.session, [Acl(ALICE, READ)], namespace="org:apache")
    set_acls(bench.session, [Acl(BOB, READ)], topic=TOPIC)
    assert not rules.allows(BOB, READ, TOPIC)
    assert not rules.allows(ALICE, READ, TOPIC)
    set_acls(bench.session, [Acl(BOB, READ), Acl(ALICE, READ)], topic=TOPIC)
    assert rules.allows(ALICE, READ, TOPIC)


def test_an_inner_tier_with_acls_overrides_what_an_outer_one_allows(
    bench: AdminBench, rules: Authorizer
) -> None:  # KIP37-6
    set_acls(bench.session, [Acl(ALICE, ALL)], namespace="org")
    set_acls(bench.session, [Acl(BOB, ALL)], namespace="org:apache")
    assert (rules.allows(ALICE, READ, TOPIC), rules.allows(BOB, READ, TOPIC)) == (False, True)
    assert (rules.allows(ALICE, READ, "org:x"), rules.allows(BOB, READ, "org:x")) == (True, False)


def test_a_deny_counts_at_every_tier(bench: AdminBench, rules: Authorizer) -> None:  # KIP37-6
    set_acls(bench.session, [Acl(EVERYBODY, ALL), Acl(BOB, WRITE, allow=False)], namespace="org")
    set_acls(bench.session, [Acl(EVERYBODY, ALL)], namespace="org:apache")
    assert not rules.allows(BOB, WRITE, TOPIC)
    assert rules.allows(BOB, READ, TOPIC) and rules.allows(ALICE, WRITE, TOPIC)


def test_who_may_alter_configs_may_describe_them_and_not_the_topic(bench: AdminBench, rules: Authorizer) -> None:
    set_acls(bench.session, [Acl(ALICE, AclOperation.ALTER_CONFIGS), Acl(BOB, READ)], topic="orders")
    assert rules.allows(ALICE, AclOperation.DESCRIBE_CONFIGS, "orders")
    assert not rules.allows(ALICE, DESCRIBE, "orders")
    assert not rules.allows(BOB, AclOperation.DESCRIBE_CONFIGS, "orders")


def test_a_deny_on_the_topic_counts(bench: AdminBench, rules: Authorizer) -> None:
    set_acls(bench.session, [Acl(EVERYBODY, ALL), Acl(BOB, ALL, allow=False)], topic=TOPIC)
    assert (rules.allows(ALICE, READ, TOPIC), rules.allows(BOB, READ, TOPIC)) == (True, False)


def test_who_may_read_may_describe_and_a_denied_reading_denies_nothing_else(
    bench: AdminBench, rules: Authorizer
) -> None:
    set_acls(bench.session, [Acl(ALICE, READ)], topic=TOPIC)
    assert rules.allows(ALICE, DESCRIBE, TOPIC) and not rules.allows(BOB, DESCRIBE, TOPIC)
    set_acls(bench.session, [Acl(ALICE, READ, allow=False), Acl(ALICE, DESCRIBE)], topic=TOPIC)
    assert rules.allows(ALICE, DESCRIBE, TOPIC)


def test_super_users_may_do_everything(bench: AdminBench) -> None:
    set_acls(bench.session, [Acl(EVERYBODY, ALL, allow=False)], namespace="org")
    rules = Authorizer(bench.session, super_users=[ALICE])
    assert rules.allows(ALICE, WRITE, TOPIC) and rules.in_namespace(ALICE, WRITE, "org")
    assert not rules.allows(BOB, WRITE, TOPIC)


def test_in_a_namespace_of_which_nothing_is_said_the_clusters_own_acls_count(bench: AdminBench) -> None:
    rules = Authorizer.of(bench.session, AuthorizerSettings())
    assert not rules.allows_in(ALICE, ALTER, "org") and not rules.allows_in(ALICE, ALTER, "")
    set_acls(bench.session, [Acl(ALICE, ALTER)], cluster=True)
    assert rules.allows_in(ALICE, ALTER, "org:apache") and rules.allows_in(ALICE, ALTER, "")
    assert not rules.allows_in(ALICE, CREATE, "org")
    set_acls(bench.session, [Acl(BOB, ALTER)], namespace="org")
    assert (rules.allows_in(ALICE, ALTER, "org:apache"), rules.allows_in(BOB, ALTER, "org:apache")) == (False, True)


def test_who_may_create_in_the_cluster_may_create_what_no_namespace_refuses(bench: AdminBench) -> None:
    rules = Authorizer.of(bench.session, AuthorizerSettings())
    assert not rules.allows(ALICE, CREATE, "orders")
    set_acls(bench.session, [Acl(ALICE, CREATE)], cluster=True)
    assert rules.allows(ALICE, CREATE, "orders") and rules.allows(ALICE, CREATE, TOPIC)
    assert not rules.allows(ALICE, WRITE, "orders")
    set_acls(bench.session, [Acl(BOB, ALL)], namespace="org")
    assert not rules.allows(ALICE, CREATE, TOPIC)
    set_acls(bench.session, [Acl(ALICE, CREATE, allow=False)], topic="orders")
    assert not rules.allows(ALICE, CREATE, "orders")


def test_without_a_session_only_super_users_may_do_anything(bench: AdminBench) -> None:
    settings = AuthorizerSettings((BOB,), allow_everyone_if_no_acl_found=True)
    rules = Authorizer.of(bench.session, settings)
    assert rules.allows(ALICE, READ, TOPIC) and rules.allows_in(ALICE, READ, "org")
    bench.session.expire()
    assert not rules.allows(ALICE, READ, TOPIC) and not rules.allows_in(ALICE, READ, "org")
    assert rules.allows(BOB, READ, TOPIC) and rules.allows_in(BOB, ALTER, "")


def test_acls_stand_where_the_tiers_put_them(bench: AdminBench) -> None:  # KIP37-4
    set_acls(bench.session, [Acl(ALICE, READ)], topic=TOPIC)
    set_acls(bench.session, [Acl(ALICE, READ)], namespace="org:apache")
    assert {"/kafka-acl/Topic/org/apache/orders", "/kafka-acl/Namespace/org/apache"} <= set(bench.zookeeper.dump())
