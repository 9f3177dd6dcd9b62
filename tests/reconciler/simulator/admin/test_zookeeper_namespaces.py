"""Namespaces in ZooKeeper: created, listed, marked, swept when empty; topics that move keep their ID and nodes."""

from __future__ import annotations

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.zookeeper_namespaces import NamespaceSweep
from reconciler.simulator.zookeeper import kafka_paths
from reconciler.sources.zookeeper import Acl, AclOperation, decode_acls, znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench, set_acls, take_away


def test_all_tiers_are_created_at_once(apache: AdminBench) -> None:  # KIP37-3
    assert apache.admin.list_namespaces() == ["org", "org:apache", "org:apache:kafka"]
    transactions = {apache.session.get(f"/brokers/topics/{path}").czxid for path in ("org", "org/apache")}
    assert len(transactions) == 1


def test_those_below_a_namespace_are_listed(apache: AdminBench) -> None:  # KIP37-3
    apache.admin.create_namespace("org:apache:spark")
    apache.admin.create_namespace("organ")
    assert apache.admin.list_namespaces("org:apache") == ["org:apache:kafka", "org:apache:spark"]
    with pytest.raises(CommandRefusedError, match="no namespace 'net'"):
        apache.admin.list_namespaces("net")


@pytest.mark.parametrize(
    ("namespace", "error"),
    [
        ("org:apache", 36),
        ("", 36),
        ("a:b_c", 17),
        ("a::b", 17),
        ("deleting", 17),
        ("a:partitions", 17),
        ("no:x", 36),
        (":".join("t" * 65), 17),
    ],
)
def test_a_namespace_that_cannot_be_created_is_refused(apache: AdminBench, namespace: str, error: int) -> None:
    apache.admin.create_topics([CreateTopic("no", 1, 1)])
    assert apache.admin.create_namespace(namespace).error == error


def test_a_topic_lies_in_its_tiers_everywhere(apache: AdminBench) -> None:  # KIP37-4
    outcome = apache.admin.create_topics([CreateTopic("org:apache:orders", 1, 1), CreateTopic("orders", 1, 1)])
    assert set(outcome.values()) == {CommandOutcome()}
    apache.admin.delete_topics(["org:apache:orders"])
    paths = apache.zookeeper.dump()
    for root in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
        assert f"{root}/org/apache/orders" in paths
    assert kafka_paths.topics_to_delete(apache.session) == ["org:apache:orders"]
    assert apache.admin.list_topics() == ["orders", "org:apache:orders"]


@pytest.mark.parametrize("topic", ["net:orders", "org:net:orders", "orders:x"])
def test_a_namespace_that_was_not_created_cannot_be_used(apache: AdminBench, topic: str) -> None:  # KIP37-3
    apache.admin.create_topics([CreateTopic("orders", 1, 1)])
    outcome = apache.admin.create_topics([CreateTopic(topic, 1, 1)])[topic]
    assert outcome.error is KafkaError.INVALID_TOPIC_EXCEPTION and "no namespace" in outcome.message


def test_a_namespace_cannot_be_taken_for_a_topic(apache: AdminBench) -> None:
    assert apache.admin.create_topics([CreateTopic("org", 1, 1)])["org"].error is KafkaError.TOPIC_ALREADY_EXISTS
    assert apache.admin.delete_topics(["org"])["org"].error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION


def test_deletion_is_refused_with_namespaces_below_unless_it_is_recursive(apache: AdminBench) -> None:  # KIP37-3
    apache.admin.create_topics([CreateTopic("org:one", 1, 1), CreateTopic("org:apache:kafka:two", 1, 1)])
    refused = apache.admin.delete_namespace("org")
    assert refused.error is KafkaError.INVALID_TOPIC_EXCEPTION and "2 namespaces below it" in refused.message
    assert kafka_paths.topics_to_delete(apache.session) == []
    assert apache.admin.delete_namespace("org", recursive=True) == CommandOutcome()
    take_away(apache)
    assert apache.admin.list_namespaces() == [] and apache.admin.list_topics() == []
    assert apache.session.children(kafka_paths.CONFIGS) == []


def test_nothing_is_created_in_a_namespace_that_goes(apache: AdminBench) -> None:
    apache.admin.create_topics([CreateTopic("org:apache:kafka:orders", 1, 1)])
    apache.admin.delete_namespace("org:apache:kafka")
    outcome = apache.admin.create_topics([CreateTopic("org:apache:kafka:new", 1, 1)])["org:apache:kafka:new"]
    assert outcome.error is KafkaError.INVALID_TOPIC_EXCEPTION and "being deleted" in outcome.message
    assert apache.admin.create_namespace("org:apache:kafka:below").error is KafkaError.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("namespace", ["", "net"])
def test_a_namespace_that_is_not_there_or_always_is_cannot_be_deleted(bench: AdminBench, namespace: str) -> None:
    assert bench.admin.delete_namespace(namespace).error is KafkaError.INVALID_TOPIC_EXCEPTION


def test_without_namespaces_everything_is_where_kafka_has_it(bench: AdminBench) -> None:  # KIP37-1
    bench.admin.create_topics([CreateTopic("orders", 1, 1)])
    assert bench.admin.list_namespaces() == []
    assert {"/brokers/topics/orders", "/config/topics/orders"} <= set(bench.zookeeper.dump())


def test_deletion_takes_the_topics_first_and_then_the_namespace(apache: AdminBench) -> None:  # KIP37-3
    apache.admin.create_topics([CreateTopic("org:apache:kafka:orders", 1, 1), CreateTopic("org:apache:keep", 1, 1)])
    assert apache.admin.delete_namespace("org:apache:kafka") == CommandOutcome()
    apache.timers.run()
    assert kafka_paths.topics_to_delete(apache.session) == ["org:apache:kafka:orders"]
    assert "org:apache:kafka" in apache.admin.list_namespaces()
    take_away(apache)
    assert apache.admin.list_namespaces() == ["org", "org:apache"]
    assert apache.admin.list_topics() == ["org:apache:keep"]
    assert apache.session.children(kafka_paths.DELETE_NAMESPACES) == []


def test_the_next_controller_sweeps_what_the_last_one_did_not(apache: AdminBench) -> None:
    apache.admin.delete_namespace("org:apache:kafka")
    apache.controller.active = False
    apache.timers.run()
    assert "org:apache:kafka" in apache.admin.list_namespaces()
    apache.controller.active, apache.controller.epoch = True, 2
    apache.others.set(kafka_paths.CONTROLLER_EPOCH, b"2")
    apache.timers.run()
    assert "org:apache:kafka" not in apache.admin.list_namespaces()


def test_a_controller_with_a_new_session_sweeps_when_it_is_asked(apache: AdminBench) -> None:
    apache.admin.delete_namespace("org:apache:kafka")
    apache.session.expire()
    apache.timers.run()
    apache.session = apache.zookeeper.session("broker-0")
    assert apache.admin.list_namespaces() == ["org", "org:apache"]


def test_in_a_session_that_is_over_nothing_is_watched_or_swept(apache: AdminBench) -> None:
    apache.session.expire()
    apache.admin.start()
    assert apache.zookeeper.watches == {}


def test_one_sweep_takes_the_inner_tiers_before_the_outer_ones(bench: AdminBench) -> None:
    bench.admin.create_namespace("org:apache:kafka")
    bench.admin.delete_namespace("org", recursive=True)
    assert NamespaceSweep(bench.admin.node).sweep() == ["org:apache:kafka", "org:apache", "org"]
    assert bench.session.children(kafka_paths.TOPICS) == []


# KIP37-2
@pytest.mark.parametrize("above", ["", "org:", "org:apache:"])
def test_a_partition_and_a_namespace_of_one_directory_exclude_each_other(apache: AdminBench, above: str) -> None:
    admin = apache.admin
    admin.create_topics([CreateTopic(f"{above}a", 2, 1), CreateTopic("moving", 4, 1)])
    for namespace in (f"{above}b-0", f"{above}a-2", f"{above}a-01", f"{above or 'org:'}moving-3"):
        assert admin.create_namespace(namespace) == CommandOutcome()
    before = apache.zookeeper.dump()
    refused = {
        f"{above}a-1": admin.create_namespace(f"{above}a-1"),
        f"{above}a-0": admin.create_namespace(f"{above}a-0:below"),
        f"{above}b-0": admin.create_topics([CreateTopic(f"{above}b", 1, 1)])[f"{above}b"],
        f"{above}a-2": admin.alter_topics([AlterTopic(f"{above}a", 3)])[f"{above}a"],
    }
    refused[f"{above or 'org:'}moving-3"] = admin.move_topic("moving", above[:-1] or "org")
    for namespace, outcome in refused.items():
        assert outcome.error is KafkaError.INVALID_TOPIC_EXCEPTION
        directory = namespace.replace(":", "/")
        assert f"and namespace {namespace} would be one directory, {directory}: take another" in outcome.message
    assert apache.zookeeper.dump() == before


def test_an_assignment_by_hand_is_refused_as_well_and_another_number_of_partitions_is_not(apache: AdminBench) -> None:
    apache.admin.create_namespace("orders-1")
    by_hand = CreateTopic("orders", assignment={0: [1], 1: [2]})
    assert apache.admin.create_topics([by_hand])["orders"].error is KafkaError.INVALID_TOPIC_EXCEPTION
    assert apache.admin.create_topics([CreateTopic("orders", 1, 1)])["orders"] == CommandOutcome()
    assert apache.admin.set_partitions("orders", 2).outcome.error is KafkaError.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("target", ["org:apache:kafka", ""])
def test_a_topic_moves_with_its_id_its_states_its_configs_and_its_acls(
    apache: AdminBench, target: str
) -> None:  # KIP37-3, KIP516-13
    source, wanted = "org:apache:orders", f"{target}:orders".lstrip(":")
    apache.admin.create_topics([CreateTopic(source, 2, 2, configs={"segment.ms": "5"})])
    set_acls(apache.session, [Acl("User:a", AclOperation.READ)], topic=source)
    apache.lead(TopicPartition(source, 1), 2, [1, 2], epoch=9)
    before = apache.topic(source)
    assert apache.admin.move_topic(source, target) == CommandOutcome()
    assert apache.topic(wanted) == before
    state = znodes.decode_state(apache.session.get(kafka_paths.state_path(TopicPartition(wanted, 1))).data)
    assert state is not None and (state.leader, state.leader_epoch) == (2, 9)
    assert znodes.decode_config(apache.session.get(kafka_paths.config_path(wanted)).data) == {"segment.ms": "5"}
    assert not [path for path in apache.zookeeper.dump() if path.endswith("/org/apache/orders")]
    assert apache.admin.list_topics() == [wanted]
    births = {
        apache.session.get(each).czxid for each in apache.zookeeper.dump() if each.endswith(wanted.replace(":", "/"))
    }
    assert len(births) == 1


@pytest.mark.parametrize(
    ("topic", "namespace", "error"),
    [
        ("nothing", "org", 3),
        ("orders", "net", 17),
        ("orders", "a_b", 17),
        ("orders", "", 36),
        ("orders", "org", 36),
        ("going", "org:apache", 17),
    ],
)
def test_a_topic_that_cannot_move_stays(apache: AdminBench, topic: str, namespace: str, error: int) -> None:
    apache.admin.create_topics([CreateTopic(each, 1, 1) for each in ("orders", "org:orders", "going")])
    apache.admin.delete_topics(["going"])
    before = apache.zookeeper.dump()
    assert apache.admin.move_topic(topic, namespace).error == error
    assert apache.zookeeper.dump() == before


def test_a_namespace_moves_with_all_that_is_in_it_in_one_transaction(apache: AdminBench) -> None:  # KIP37-3, KIP37-4
    admin, acl = apache.admin, Acl("User:a", AclOperation.ALL)
    admin.create_topics(
        [CreateTopic("org:orders", 1, 1), CreateTopic("org:apache:clicks", 2, 2, configs={"segment.ms": "5"})]
    )
    admin.create_topics([CreateTopic("organ", 1, 1)])
    admin.alter_namespace_configs("org:apache", {"retention.ms": "7"})
    set_acls(apache.session, [acl], namespace="org:apache")
    set_acls(apache.session, [acl], topic="org:apache:clicks")
    apache.lead(TopicPartition("org:apache:clicks", 1), 2, [1, 2], epoch=9)
    before = apache.topic("org:apache:clicks"), apache.topic("org:orders")
    assert admin.move_namespace("org", "com:shop") == CommandOutcome()
    assert admin.list_namespaces() == ["com", "com:shop", "com:shop:apache", "com:shop:apache:kafka"]
    assert admin.list_topics() == ["com:shop:apache:clicks", "com:shop:orders", "organ"]
    assert (apache.topic("com:shop:apache:clicks"), apache.topic("com:shop:orders")) == before
    state = znodes.decode_state(apache.session.get("/brokers/topics/com/shop/apache/clicks/partitions/1/state").data)
    assert state is not None and (state.leader, state.leader_epoch) == (2, 9)
    configs = {"/com/shop/apache": {"retention.ms": "7"}, "/com/shop/apache/clicks": {"segment.ms": "5"}}
    for path, wanted in configs.items():
        assert znodes.decode_config(apache.session.get(f"{kafka_paths.CONFIGS}{path}").data) == wanted
    for path in ("Namespace/com/shop/apache", "Topic/com/shop/apache/clicks"):
        assert decode_acls(apache.session.get(f"/kafka-acl/{path}").data) == (acl,)
    paths = apache.zookeeper.dump()
    assert not [path for path in paths if "/org/" in f"{path}/"]
    births = {apache.session.get(path).czxid for path in paths if "/com/" in f"{path}/"}
    assert len(births) == 1


def test_what_an_earlier_namespace_of_the_new_name_left_is_not_taken_over(apache: AdminBench) -> None:  # KIP37-5
    admin = apache.admin
    apache.session.create(f"{kafka_paths.CONFIGS}/com/shop", znodes.encode_config({"retention.ms": "1"}), parents=True)
    set_acls(apache.session, [Acl("User:b", AclOperation.ALL)], namespace="com:shop")
    assert admin.move_namespace("org", "com:shop") == CommandOutcome()
    left = [path for path in apache.zookeeper.dump() if path.endswith("/com/shop")]
    assert left == ["/brokers/topics/com/shop"]


@pytest.mark.parametrize(
    ("namespace", "target", "error", "why"),
    [
        ("net", "com", 17, "no namespace 'net'"),
        ("", "com", 17, "cannot be moved or replaced"),
        ("org", "", 17, "cannot be moved or replaced"),
        ("org", "org", 17, "one of the two lies inside the other"),
        ("org", "org:apache", 17, "one of the two lies inside the other"),
        ("org:apache", "org", 17, "one of the two lies inside the other"),
        ("org", "a_b", 17, "a_b"),
        ("org", "full", 36, "nothing is ever merged"),
        ("org", "topic", 36, "nothing is ever merged"),
        ("org", "topic:below", 36, "topic is a topic"),
        ("org", "topic-0", 17, "would be one directory"),
        ("org", "leaving:below", 17, "being deleted"),
        ("going", "com", 17, "going:x is being deleted"),
        ("moving", "com", 60, "moving:x is already under change"),
        ("old", "com", 42, "no topic ID"),
        ("org", "named", 36, "named:orders has ACLs already"),
        ("org", "a" * 250, 17, "250"),
    ],
)
def test_a_namespace_that_cannot_move_stays(
    apache: AdminBench, namespace: str, target: str, error: int, why: str
) -> None:
    for each in ("full", "going", "moving", "old", "leaving"):
        apache.admin.create_namespace(each)
    inside = ("going:x", "leaving:x", "moving:x", "org:apache:orders")
    apache.admin.create_topics([CreateTopic(each, 2, 1) for each in ("topic", *inside)])
    apache.admin.delete_topics(["going:x"])
    apache.admin.delete_namespace("leaving")
    apache.session.create("/brokers/topics/old/x", znodes.encode_topic(None, {0: [1]}, version=2))
    moving = znodes.encode_topic(TopicId(bytes(range(16))), {0: [1, 2]}, {0: [2]}, {0: [1]})
    apache.session.set("/brokers/topics/moving/x", moving)
    set_acls(apache.session, [Acl("User:b", AclOperation.READ)], topic="named:orders")
    before = apache.zookeeper.dump()
    outcome = apache.admin.move_namespace(namespace, target)
    assert (outcome.error, why in outcome.message) == (error, True), outcome
    assert apache.zookeeper.dump() == before


def test_while_a_broker_is_older_nothing_is_done_with_namespaces_but_to_delete_them(apache: AdminBench) -> None:
    admin, acl = apache.admin, Acl("User:a", AclOperation.READ)
    admin.create_topics([CreateTopic("orders", 1, 1)])
    apache.join(3, knows_namespaces=False)
    refused = (
        admin.create_namespace("net"),
        admin.move_namespace("org", "net"),
        admin.move_topic("orders", "org"),
        admin.alter_namespace_configs("org", {"retention.ms": "1"}),
        admin.alter_acls("org:", [acl]),
    )
    for outcome in refused:
        assert outcome.error is KafkaError.UNSUPPORTED_VERSION
        assert outcome.message == "broker 3 of 4 registered without the feature namespaces: upgrade all brokers first"
    assert admin.alter_namespace_configs("", {"retention.ms": "1"}) == CommandOutcome()
    assert admin.alter_acls("orders", [acl]) == CommandOutcome()
    assert admin.delete_namespace("org", recursive=True) == CommandOutcome()
