"""The commands of an administrator ask the authorizer, and so do changes of its own ACLs. KIP37-6."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.simulator.admin import AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.zookeeper import CLUSTER_ACLS, Authorizer, AuthorizerSettings
from reconciler.sources.zookeeper import Acl, AclOperation, decode_acls
from tests.reconciler.simulator.admin.admin_bench import AdminBench, set_acls

ALICE, BOB, ROOT = "User:alice", "User:bob", "User:root"
READ, ALL = AclOperation.READ, AclOperation.ALL
TOPIC = "org:apache:orders"


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


def test_acls_are_added_and_removed_by_who_may_alter_the_namespace_or_the_cluster(bench: AdminBench) -> None:
    bench.admin.create_namespace("org:apache")
    bench.authorize(Authorizer.of(bench.session, AuthorizerSettings((ROOT,))))
    admin, refused, done = bench.admin, KafkaError.CLUSTER_AUTHORIZATION_FAILED, CommandOutcome()
    alice, bob = Acl(ALICE, ALL), Acl(BOB, READ)
    for scope in ("", "org:", TOPIC, "orders"):
        assert admin.alter_acls(scope, [alice], principal=ALICE).error is refused
    assert admin.alter_acls("org:", [alice], principal=ROOT) == done
    assert admin.alter_acls("org:apache:", [bob, alice], principal=ALICE) == done
    assert admin.alter_acls(TOPIC, [bob, alice], principal=ALICE) == done
    assert admin.alter_acls("orders", [bob], principal=ALICE).error is refused
    assert admin.create_topics([CreateTopic(TOPIC, 1, 1)], ALICE)[TOPIC] == done
    assert admin.list_topics(BOB) == [TOPIC]
    assert admin.alter_acls("org:apache:", removed=[bob, Acl(BOB, ALL)], principal=ALICE) == done
    assert admin.list_topics(BOB) == []
    assert decode_acls(bench.session.get("/kafka-acl/Namespace/org/apache").data) == (alice,)
    assert admin.alter_acls("", [Acl(ALICE, AclOperation.ALTER)], principal=ROOT) == done
    assert admin.alter_acls("orders", [bob], principal=ALICE) == done
    assert decode_acls(bench.session.get(CLUSTER_ACLS).data) == (Acl(ALICE, AclOperation.ALTER),)


def test_acls_that_cannot_be_changed_are_refused_with_the_reason(bench: AdminBench) -> None:
    bench.admin.create_topics([CreateTopic("orders", 1, 1)])
    for scope in ("net:", "orders:"):
        found = bench.admin.alter_acls(scope, [Acl(ALICE, ALL)])
        assert (found.error, "create it first" in found.message) == (KafkaError.INVALID_TOPIC_EXCEPTION, True)
    both = bench.admin.alter_acls("orders", [Acl(ALICE, ALL)], [Acl(ALICE, ALL)])
    assert (both.error, both.message) == (
        KafkaError.INVALID_REQUEST,
        "User:alice Allow All cannot be added and removed at once",
    )
    bench.controller.active = False
    assert bench.admin.alter_acls("orders", [Acl(ALICE, ALL)]).error is KafkaError.NOT_CONTROLLER


def test_a_namespace_is_moved_by_who_may_alter_all_of_it_and_create_the_new_one(bench: AdminBench) -> None:  # KIP37-6
    admin = bench.admin
    for namespace in ("org:apache", "beta"):
        admin.create_namespace(namespace)
    admin.create_topics([CreateTopic(TOPIC, 1, 1)])
    everything = Acl(ALICE, ALL)
    set_acls(bench.session, [everything], namespace="org")
    bench.authorize(Authorizer.of(bench.session, AuthorizerSettings((ROOT,))))
    admin, refused = bench.admin, KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert admin.move_namespace("org", "com", BOB).error is refused
    assert admin.move_namespace("org", "com", ALICE).message == "User:alice may not create in com"
    set_acls(bench.session, [Acl(ALICE, AclOperation.CREATE)], cluster=True)
    set_acls(bench.session, [Acl(ALICE, AclOperation.ALTER, allow=False)], namespace="org:apache")
    assert admin.move_namespace("org", "com", ALICE).message == "User:alice may not alter in org:apache"
    set_acls(bench.session, [everything], namespace="org:apache")
    set_acls(bench.session, [Acl(BOB, READ)], topic=TOPIC)
    own = admin.move_namespace("org", "com", ALICE)
    assert (own.error, own.message) == (KafkaError.TOPIC_AUTHORIZATION_FAILED, f"User:alice may not alter {TOPIC}")
    assert admin.move_namespace("org", "com", ROOT) == CommandOutcome()
    assert admin.list_topics(BOB) == [] and admin.list_topics(ROOT) == ["com:apache:orders"]


def test_who_may_not_describe_a_namespace_does_not_see_it(bench: AdminBench) -> None:  # KIP37-6
    for namespace in ("org:apache", "beta"):
        bench.admin.create_namespace(namespace)
    set_acls(bench.session, [Acl(ALICE, READ)], namespace="org")
    bench.authorize(Authorizer.of(bench.session, AuthorizerSettings((ROOT,))))
    admin = bench.admin
    assert admin.list_namespaces(principal=ROOT) == ["beta", "org", "org:apache"]
    assert admin.list_namespaces(principal=ALICE) == ["org", "org:apache"]
    assert admin.list_namespaces("org", ALICE) == ["org:apache"] and admin.list_namespaces(principal=BOB) == []
    for below in ("org", "no-such-namespace"):
        with pytest.raises(CommandRefusedError, match=f"User:bob may not describe in {below}"):
            admin.list_namespaces(below, BOB)
