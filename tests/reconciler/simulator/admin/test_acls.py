"""Who may do what: the namespace is asked before the topic, tiers inherit, a Deny counts everywhere."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.simulator.admin import AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.admin.acls import EVERYBODY, Acl, AclOperation, Authorizer, decode_acls
from tests.reconciler.simulator.admin.admin_bench import AdminBench, encode_acls, set_acls

ALICE, BOB = "User:alice", "User:bob"
READ, WRITE, ALL, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL, AclOperation.DESCRIBE
TOPIC = "org:apache:orders"


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


def test_acls_come_back_as_they_were_written_and_what_cannot_be_read_denies() -> None:
    acls = (Acl(ALICE, READ), Acl(EVERYBODY, ALL, allow=False))
    assert decode_acls(encode_acls(acls)) == tuple(sorted(acls))
    assert decode_acls(b"") == decode_acls(b"{}") == ()
    nobody = (Acl(EVERYBODY, ALL, allow=False),)
    for broken in (b"{", b"[]", b'{"acls":7}', b'{"acls":[{"principal":"User:a"}]}', encode_acls([]) + b"x"):
        assert decode_acls(broken) == nobody


def test_acls_stand_where_the_tiers_put_them(bench: AdminBench) -> None:  # KIP37-4
    set_acls(bench.session, [Acl(ALICE, READ)], topic=TOPIC)
    set_acls(bench.session, [Acl(ALICE, READ)], namespace="org:apache")
    assert {"/kafka-acl/Topic/org/apache/orders", "/kafka-acl/Namespace/org/apache"} <= set(bench.zookeeper.dump())


def test_commands_are_refused_to_whom_the_namespace_does_not_allow_them(bench: AdminBench) -> None:  # KIP37-6
    bench.admin.create_namespace("org:apache")
    bench.admin.create_topics([CreateTopic("org:old", 1, 1), CreateTopic("old", 1, 1)])
    set_acls(bench.session, [Acl(ALICE, ALL)], namespace="org")
    bench.authorize(Authorizer(bench.session))
    admin, refused = bench.admin, KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert admin.create_topics([CreateTopic(TOPIC, 1, 1)], BOB)[TOPIC].error is refused
    assert admin.create_topics([CreateTopic(TOPIC, 1, 1)], ALICE)[TOPIC] == CommandOutcome()
    assert admin.alter_topics([AlterTopic(TOPIC, 2)], BOB)[TOPIC].error is refused
    assert admin.delete_topics([TOPIC], BOB)[TOPIC].error is refused
    assert admin.delete_namespace("org:apache", principal=BOB).error is KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert admin.move_topic("old", "org:apache", BOB).error is KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert admin.alter_namespace_configs("org", {}, principal=BOB).error is KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert admin.create_namespace("org:x", ALICE) == CommandOutcome()


def test_who_may_not_describe_a_topic_does_not_see_it(bench: AdminBench) -> None:  # KIP37-6, KIP37-7
    bench.admin.create_namespace("org")
    bench.admin.create_topics([CreateTopic("org:orders", 1, 1), CreateTopic("orders", 1, 1)])
    set_acls(bench.session, [Acl(ALICE, READ)], namespace="org")
    bench.authorize(Authorizer(bench.session))
    assert bench.admin.list_topics(BOB) == bench.admin.subscribed(".*", BOB) == ["orders"]
    assert bench.admin.subscribed(".*", ALICE) == ["orders", "org:orders"]
    assert [each.topic for each in bench.admin.describe_topics(principal=BOB)] == ["orders"]
    (found,) = bench.admin.describe_topics(["org:orders"], BOB)
    assert (found.error, found.partitions) == (KafkaError.TOPIC_AUTHORIZATION_FAILED, ())
