"""The administrator's verbs on a cluster: what they begin comes about, and the history has what they answer."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.runs import RunOutcome, history_settings, parse_scenario, play_scenario, shipped_scenarios
from reconciler.simulator.runs.workload import Workload

BEGIN = "brokers 3\ncreate orders 0:1,2 1:2,3\nproduce orders 6\nwait 5s\n"
OLD = "delete orders\nwait 5s\ncreate orders 0:2,3\nwait 5s\n"
"""The topic is the second of its name."""


def play(text: str) -> RunOutcome:
    return play_scenario(parse_scenario(text, "mine"))


def answers(outcome: RunOutcome) -> list[str]:
    """What the administrator was answered, without the times."""
    assert outcome.broken is None
    return [line.partition(" admin  ")[2] for line in outcome.lines if " admin  " in line]


def test_a_description_has_brokers_partitions_lags_and_what_everybody_may_do() -> None:  # KIP4-1
    brokers, topic, *partitions = answers(play(BEGIN + "describe orders"))
    assert brokers == "live brokers: 1 at broker-1:9092, 2 at broker-2:9092, 3 at broker-3:9092"
    assert topic.startswith("orders with ID ") and topic.endswith(": 2 partitions, configs none, operations 3576")
    assert partitions == [
        "orders-0: leader 1, replicas [1, 2], in sync [1, 2], lags 1 by 0, 2 by 0",
        "orders-1: leader 2, replicas [2, 3], in sync [2, 3], lags 2 by 0, 3 by 0",
    ]


def test_a_topic_is_described_by_the_id_of_its_turn_and_one_that_is_gone_is_unknown() -> None:  # KIP516-8
    said = answers(play(BEGIN + OLD + "describe orders 2\ndescribe orders 1\ndescribe clicks"))
    assert said[1].startswith("orders with ID ") and said[2].startswith("orders-0: leader 2, ")
    assert said[4].partition(": ")[2].startswith("UNKNOWN_TOPIC_ID (100): no topic has the ID ")
    assert said[6] == "clicks: UNKNOWN_TOPIC_OR_PARTITION (3): there is no topic 'clicks'"


def test_topics_are_listed_and_brokers_described_where_there_are_none() -> None:  # KIP4-1
    said = answers(play("brokers 1\nlist\ndescribe\ncreate b 1 1\ncreate __consumer_offsets 1 1\nlist\ndescribe"))
    assert said[:2] == ["topics: none", "live brokers: none is known yet"]
    assert said[2:4] == ["topics: __consumer_offsets, b", "live brokers: 1 at broker-1:9092"]
    assert ": 1 partition, internal, configs none, " in said[4]


def test_a_principal_is_told_what_it_may_see_and_do() -> None:  # KIP37-6
    rights = "super-users User:root\nas User:root allow User:bob Read orders\n"
    text = (
        "as User:root create orders 1 1\nwait 5s\nas User:bob list\nlist\nas User:bob describe orders\ndescribe orders"
    )
    said = answers(play(rights + text))
    assert said[:2] == ["topics: orders", "topics: none"]
    assert said[3].endswith(": 1 partition, configs none, operations 264")
    assert said[4].endswith(" by 0")
    assert said[6:] == ["orders: TOPIC_AUTHORIZATION_FAILED (29): User:ANONYMOUS may not describe orders"]


@pytest.mark.parametrize(
    ("change", "then"),
    [
        ("partitions 4", "expect live 1 orders-0 1\nexpect live 2 orders-1 1\ndescribe orders"),
        ("partitions 3 2:3,1", "expect leader orders-2 3\nexpect live 1 orders-2 1"),
        ("factor 3", "expect live 3 orders-0 1\nexpect live 1 orders-1 1"),
        ("factor 1", "expect absent 2 orders-0\nexpect absent 3 orders-1"),
        ("replicas 0:3,1", "expect live 3 orders-0 1\nexpect absent 2 orders-0"),
    ],
)
def test_an_altered_topic_gets_what_was_asked_for_and_keeps_its_records(change: str, then: str) -> None:  # KIP4-3
    assert play(f"{BEGIN}alter orders {change}\nwait 30s\n{then}\nexpect records orders 6\nrest").broken is None


def test_configs_are_set_and_unset() -> None:  # KIP4-1
    text = "alter orders set retention.ms=5 segment.ms=7\ndescribe\nalter orders unset retention.ms\ndescribe"
    configs = [line.partition("configs ")[2] for line in answers(play(BEGIN + text)) if "configs " in line]
    assert configs == ["retention.ms=5, segment.ms=7, operations 3576", "segment.ms=7, operations 3576"]


def test_a_partition_is_reassigned_by_the_topics_id_and_not_by_that_of_an_earlier_topic() -> None:  # KIP516-8
    assert play(f"{BEGIN}{OLD}reassign orders-0 1,3 2\nwait 30s\nexpect leader orders-0 1\nrest").broken is None
    broken = play(f"{BEGIN}{OLD}reassign orders-0 1,3 1").broken
    assert str(broken).startswith(
        "mine, line 9, 'reassign orders-0 1,3 1': the controller answers UNKNOWN_TOPIC_ID: no topic has the ID "
    )


def test_a_topic_is_deleted_by_its_id_and_not_by_that_of_an_earlier_topic() -> None:  # KIP516-10
    assert answers(play(f"{BEGIN}{OLD}delete orders 2\nwait 5s\nlist\nrest")) == ["topics: none"]
    broken = play(f"{BEGIN}{OLD}delete orders 1").broken
    assert str(broken).startswith("mine, line 9, 'delete orders 1': the controller answers UNKNOWN_TOPIC_ID: ")


@pytest.mark.parametrize("which", ["elect orders-0", "elect"])
def test_the_first_replica_leads_again_when_it_is_elected(which: str) -> None:  # KIP4-1
    text = f"{BEGIN}stop 1\nwait 10s\nstart 1\nwait 30s\nexpect leader orders-0 2\n{which}\n"
    assert play(f"{text}wait 5s\nexpect leader orders-0 1\nexpect records orders 6\nrest").broken is None


def test_no_election_is_needed_where_all_first_replicas_lead_but_one_that_is_away_is_named() -> None:  # KIP4-2
    assert play(f"{BEGIN}elect").broken is None
    broken = play(f"{BEGIN}stop 1\nwait 10s\nelect").broken
    assert str(broken).endswith("PREFERRED_LEADER_NOT_AVAILABLE: orders-0: broker 1 is away or not in sync")


def test_a_second_election_before_the_first_was_carried_out_is_refused() -> None:  # KIP4-2
    broken = play(f"{BEGIN}stop 1\nwait 10s\nstart 1\nwait 30s\nelect orders-0\nelect orders-0").broken
    assert str(broken).endswith("INVALID_REQUEST: an election of preferred leaders is running for orders-0; wait")


@pytest.mark.parametrize("seed", [4, 7, 13])  # whose histories have a follower that lags
def test_whatever_goes_wrong_every_broker_describes_what_it_knows_by_name_and_by_id(seed: int) -> None:
    """KIP4-1, KIP516-9."""
    cluster = Cluster(history_settings(3), seed=seed)
    lags, errors = set[int](), set[KafkaError]()
    try:
        cluster.start()
        Workload(cluster).begin()
        for step in range(1_500):
            cluster.world.step()
            for member in cluster.members.values() if step % 5 == 0 else ():
                for found in member.admin.describe_topics() if member.running else ():
                    assert found.error is KafkaError.NONE and found.topic_id is not None
                    assert member.admin.describe_topics([found.topic_id, found.topic]) == [found, found]
                    for each in found.partitions:
                        assert (each.leader == -1) is (each.error is KafkaError.LEADER_NOT_AVAILABLE)
                        assert not each.lags or each.lags[member.node_id] == 0
                        lags.update(each.lags.values())
                        errors.add(each.error)
    finally:
        cluster.close()
    assert {-1, 0} < lags and min(lags) == -1
    assert errors == {KafkaError.NONE, KafkaError.LEADER_NOT_AVAILABLE}


def test_the_life_of_a_topic_is_seen_in_its_descriptions() -> None:  # KIP4-1, KIP4-3
    said = answers(play_scenario(parse_scenario(shipped_scenarios()["admin-commands"], "admin-commands")))
    assert (said[0], said[-1]) == ("topics: clicks, orders", "topics: orders")
    first = [line for line in said if line.startswith("clicks-0: ")]
    replicas = [line.partition("replicas [")[2].partition("]")[0] for line in first]
    assert replicas == ["1, 2", "1, 2", "1, 2", "4, 2, 1", "4, 2"]
    assert "lags 4 by 5, " in first[-2] and "lags 4 by 0, 2 by 0" in first[-1]
    assert said[-4] == "clicks: UNKNOWN_TOPIC_OR_PARTITION (3): there is no topic 'clicks'"
    assert ": UNKNOWN_TOPIC_ID (100): no topic has the ID " in said[-2]
