"""Scenarios on a cluster: every verb does what it says, and every expectation can fail, with its line."""

from __future__ import annotations

import pytest

from reconciler.simulator.checks import BrokenInvariantError, Invariants
from reconciler.simulator.kernel.events import History
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs import parse_scenario, play_scenario, shipped_scenarios
from reconciler.simulator.runs.scenario import _VERBS

BEGIN = "brokers 3\ncreate orders 0:1,2\nproduce orders 2\nwait 5s\n"
"""Four lines; the topic is the first of its name, and its leader is broker 1."""


def played(text: str, seed: int = 0) -> str | None:
    return play_scenario(parse_scenario(text, "mine"), seed).broken


@pytest.mark.parametrize("name", sorted(shipped_scenarios()))
def test_every_scenario_that_is_shipped_plays_to_its_end(name: str) -> None:
    """CREATE-4, KIP37-2, KIP37-3, KIP37-5, KIP516-5, KIP516-6, KIP516-8, KIP694-3, KIP694-4.

    Each says what it shows in its first lines.
    """
    outcome = play_scenario(parse_scenario(shipped_scenarios()[name], name), 5)
    assert outcome.broken is None
    assert outcome.steps == len(parse_scenario(shipped_scenarios()[name], name).lines)


# KIP37-3, KIP516-13
@pytest.mark.parametrize(
    "text",
    [
        # Two topics have changed names while a broker was away: it knows each by its ID.
        """namespace create net
        create net:orders 0:3,1 1:1,2
        produce net:orders 6
        stop 3
        namespace move org tmp
        namespace move net org
        namespace move tmp net
        wait 5s
        crash 2
        start 3
        wait 20s
        start 2
        wait 20s
        expect records org:orders 6
        expect records net:orders 4
        rest""",
        # The old name has another topic by now.
        """stop 3
        namespace move org com:shop
        namespace create org
        create org:orders 0:1,2
        produce org:orders 2
        start 3
        wait 20s
        expect records com:shop:orders 4
        expect live 3 com:shop:orders-1 1
        rest""",
        # Of a broker that has lost one of two replicas, the other is renamed first, and none is made beside it.
        """stop 2
        disk-replaced 2 0
        namespace move org com
        wait 5s
        start 2
        wait 20s
        expect live 2 com:orders-0 1
        expect live 2 com:orders-1 1
        expect absent 2 org:orders-0
        expect absent 2 org:orders-1
        expect records com:orders 4
        rest""",
    ],
)
def test_a_namespace_moves_whatever_else_happens_meanwhile(text: str) -> None:
    begin = "scheme namespaced\nnamespace create org\ncreate org:orders 0:1,2 1:2,3\nproduce org:orders 4\n"
    assert played(begin + text) is None


WRONG = {
    "expect live": ("expect live 3 orders-0 1", "broker 3 has nothing live for orders-0, and "),
    "expect staged": ("expect staged 1 orders-0 1", "broker 1 has nothing staged, and orders-0 of "),
    "expect absent": ("expect absent 1 orders-0", "broker 1 has orders-0 live in orders-0, and it should not"),
    "expect records": ("expect records orders 3", "2 records can be read from orders, and 3 were expected"),
    "expect topics": ("expect topics clicks,orders", "User:ANONYMOUS sees orders, and clicks, orders was expected"),
    "expect leader": ("expect leader orders-0 2", "1 leads orders-0, and 2 was expected"),
    "expect mode": (
        "expect mode orders-0 ReadOnly",
        "READ_ONLY was expected of orders-0, and broker 1 says READ_WRITE",
    ),
    "expect refused": (
        "expect refused orders-0",
        "broker-1 answers NONE to a record for orders-0, and should refuse it",
    ),
    "expect no-leader": ("expect no-leader orders-0", "1 leads orders-0, and -1 was expected"),
    "expect offsets": (
        "expect offsets 1 orders-0 1 2",
        "broker 1 has offsets 0 to 2 of orders-0, and offsets 1 to 2 were expected",
    ),
}


@pytest.mark.parametrize("verb", sorted(WRONG))
def test_an_expectation_that_is_not_met_names_the_line_and_what_is_so(verb: str) -> None:
    line, why = WRONG[verb]
    assert str(played(BEGIN + line)).startswith(f"mine, line 5, {line!r}: {why}")


def test_every_expectation_has_a_test_in_which_it_fails() -> None:
    assert {verb for verb in _VERBS if verb.startswith("expect")} == {*WRONG, "expect nothing-staged"}


def test_something_staged_where_nothing_was_expected_is_named() -> None:
    broken = played(BEGIN + "stop 2\ndelete orders\nstart 2\nwait 5s\nexpect nothing-staged 2")
    assert str(broken).startswith("mine, line 9, 'expect nothing-staged 2': broker 2 still has deleting/")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("expect live 1 orders-0 2", "there were 1 topics called orders so far, and number 2 is meant"),
        ("expect live 1 clicks-0 1", "there were 0 topics called clicks so far"),
        ("expect leader clicks-0 1", "nobody leads clicks-0, and 1 was expected"),
        ("expect mode clicks-0 None", "NONE was expected of clicks-0, and broker 1 does not know it"),
        ("expect refused clicks-0", "nobody leads clicks-0, so nobody could refuse a record"),
        ("create orders 1 1", "the controller answers TOPIC_ALREADY_EXISTS"),
        ("expect offsets 3 orders-0 0 2", "broker 3 has no log of orders-0, and offsets 0 to 2 were expected"),
        ("config clicks retention.ms=1", "the controller answers INVALID_TOPIC_EXCEPTION: there is no"),
        ("config * retention.ms=x", "the controller answers INVALID_CONFIG"),
        ("namespace create orders", "the controller answers TOPIC_ALREADY_EXISTS"),
        ("refused 17 create clicks 1 1", "it was done, and error 17 was expected"),
        ("refused 17 create orders 1 1", "the controller answers TOPIC_ALREADY_EXISTS"),
        ("refused 19 produce orders 1", "it was done, and error 19 was expected"),
        ("create bad/name 1 1", "the controller answers INVALID_TOPIC"),
        ("delete clicks", "the controller answers UNKNOWN_TOPIC_OR_PARTITION"),
        ("reassign clicks-0 1", "the controller answers UNKNOWN_TOPIC_OR_PARTITION"),
        ("partitions orders 1 0s", "the controller answers "),
        ("alter clicks partitions 3", "the controller answers UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'clicks'"),
        ("alter orders partitions 1", "the controller answers INVALID_PARTITIONS: orders has 1 partitions"),
        ("alter orders partitions 2 1:3", "the controller answers INVALID_REPLICA_ASSIGNMENT: "),
        ("alter orders factor 4", "the controller answers INVALID_REPLICATION_FACTOR: replication factor 4"),
        ("alter orders replicas 7:1,2", "the controller answers UNKNOWN_TOPIC_OR_PARTITION: there is no partition"),
        ("alter orders set colour=red", "the controller answers INVALID_CONFIG: "),
        ("reassign orders-0 2,1 2", "there were 1 topics called orders so far, and number 2 is meant"),
        (
            "reassign orders-9 2,1 1",
            "the controller answers UNKNOWN_TOPIC_OR_PARTITION: there is no partition orders-9",
        ),
        ("elect orders-0", "the controller answers ELECTION_NOT_NEEDED: orders-0: broker 1 leads it"),
        ("elect clicks-0", "the controller answers UNKNOWN_TOPIC_OR_PARTITION"),
        ("delete orders 0", "there were 1 topics called orders so far, and number 0 is meant"),
        ("describe clicks 1", "there were 0 topics called clicks so far, and number 1 is meant"),
        ("produce clicks 1", "waited 120 s of simulated time, and not: clicks takes a record"),
        ("disk-replaced 1 0", "broker 1 has log dir 0 open: stop it first, or let the disk fail"),
    ],
)
def test_what_cannot_be_done_ends_the_scenario_with_its_line(line: str, why: str) -> None:
    assert str(played(BEGIN + line)).startswith(f"mine, line 5, {line!r}: {why}")


TENANTS = """super-users User:root
as User:root allow User:ann All orders
as User:root allow User:bob Describe orders
as User:ann create orders 0:1,2
as User:ann produce orders 2
wait 5s
"""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("refused 29 as User:bob produce orders 1", None),
        ("refused 29 as User:eve produce orders 1", None),
        ("refused 29 as User:bob expect records orders 1", None),
        ("refused 36 as User:ann create orders 1 1", None),
        ("refused 31 as User:ann namespace create org", None),
        ("refused 31 as User:ann config org retention.ms=1", None),
        ("refused 29 reassign orders-0 1", None),
        ("as User:eve refused 29 reassign orders-0 1,2 1", None),
        ("as User:ann reassign orders-0 1,2 1", None),
        ("as User:eve refused 29 alter orders partitions 2", None),
        ("as User:ann alter orders factor 2", None),
        ("as User:eve refused 29 partitions orders 2 0s", None),
        ("as User:ann partitions orders 2 0s", None),
        ("as User:eve refused 29 elect orders-0", None),
        ("as User:ann refused 84 elect orders-0", None),
        ("as User:ann elect", None),
        ("as User:eve refused 29 describe orders", None),
        ("as User:eve refused 29 describe orders 1", None),
        ("as User:eve refused 29 describe clicks", None),
        ("as User:eve describe orders", None),
        ("as User:bob describe orders", None),
        ("as User:root refused 3 describe clicks", None),
        ("as User:eve refused 29 delete orders 1", None),
        ("as User:ann delete orders", None),
        ("as User:ann delete orders 1", None),
        ("as User:eve list", None),
        ("as User:bob refused 29 describe orders", "it was done, and error 29 was expected"),
        (
            "as User:eve refused 3 describe orders",
            "the broker answers TOPIC_AUTHORIZATION_FAILED: User:eve may not describe orders",
        ),
        ("as User:bob expect topics orders", None),
        ("as User:eve expect topics none", None),
        ("refused 29 as User:ann produce orders 1", "it was done, and error 29 was expected"),
        ("refused 31 as User:bob produce orders 1", "the broker answers TOPIC_AUTHORIZATION_FAILED: User:bob may not"),
        (
            "as User:eve delete orders",
            "the controller answers TOPIC_AUTHORIZATION_FAILED: User:eve may not delete orders",
        ),
        ("as User:eve expect topics orders", "User:eve sees no topic, and orders was expected"),
    ],
)
def test_a_line_is_its_principals_and_is_done_or_refused_as_it_says(line: str, why: str | None) -> None:  # KIP37-6
    broken = played(TENANTS + line)
    assert broken is None if why is None else str(broken).startswith(f"mine, line 7, {line!r}: {why}")


@pytest.mark.parametrize(
    "line",
    ["expect live 2 orders-0 1", "expect staged 2 orders-0 1", "expect absent 2 orders-0", "expect nothing-staged 2"],
)
def test_nothing_can_be_expected_of_a_broker_that_is_off(line: str) -> None:
    assert str(played(f"{BEGIN}stop 2\n{line}")) == (
        f"mine, line 6, {line!r}: broker 2 is off, so nothing is live or staged there: start it first"
    )


@pytest.mark.parametrize(
    "verb", ["reassign orders-0 3", "partitions orders 1 0s", "fail-over", "elect", "list", "describe"]
)
def test_without_a_controller_nothing_can_be_asked_of_it(verb: str) -> None:
    text = "brokers 1\ncreate orders 0:1\nstop 1\n" + verb.replace(" 3", " 1")
    assert str(played(text)).startswith("mine, line 4, ")
    assert "there is no controller" in str(played(text))


def test_a_disk_that_fails_takes_its_replicas_offline_and_gives_them_back() -> None:
    text = "brokers 2\nlog-dirs 1\ncreate orders 0:1,2\nproduce orders 2\ndisk-fails 2 0\nwait 2m\n"
    offline = played(text + "expect live 2 orders-0 1")
    assert "broker 2 is off" in str(offline)
    assert (
        played(f"{text}disk-back 2 0\nstart 2\nwait 10s\nexpect live 2 orders-0 1\nexpect records orders 2\nrest")
        is None
    )


def test_a_store_that_cannot_answer_ends_the_scenario_too() -> None:
    text = "brokers 2\nlog-dirs 2\ncreate orders 0:1,2\nproduce orders 2\nwait 5s\ndisk-fails 2 0\nwait 2m\n"
    broken = played(text + "expect live 2 orders-0 1")
    assert str(broken).startswith("mine, line 8, 'expect live 2 orders-0 1': ")
    assert "offline" in str(broken)


def test_a_disk_of_a_stopped_broker_can_be_replaced_and_its_replicas_are_made_again() -> None:
    text = "brokers 2\nlog-dirs 1\ncreate orders 0:1,2\nproduce orders 2\nwait 5s\nstop 2\ndisk-replaced 2 0\n"
    assert played(text + "start 2\nwait 20s\nexpect live 2 orders-0 1\nexpect records orders 2\nrest") is None


# CREATE-1, CREATE-2
def test_the_placement_that_is_asked_for_goes_before_the_scenarios_own() -> None:
    text = shipped_scenarios()["kraft-placement"]
    scenario = parse_scenario(text, "kraft-placement")
    for seed in range(6, 10):
        assert play_scenario(scenario, seed).broken is None
    assert "'create orders 3 4': the controller answers INVALID_REPLICATION_FACTOR: replication factor 4 with 3" in str(
        play_scenario(scenario, placement=Placement.ZOOKEEPER).broken
    )
    without = parse_scenario(text.replace("placement kraft\n", ""), "without")
    assert play_scenario(without, placement=Placement.KRAFT).broken is None


def test_racks_of_a_scenario_keep_replicas_apart() -> None:
    text = "brokers 3\nracks a,a,b\ncreate orders 4 2\nwait 5s\n"
    assert played(text + "".join(f"expect live 3 orders-{number} 1\n" for number in range(4)) + "rest") is None


# CREATE-3, CREATE-4
def test_a_fail_over_gives_a_controller_of_a_later_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    real = History.say

    def noted(history: History, who: str, text: str) -> None:
        said.append(f"{who}  {text}")
        real(history, who, text)

    monkeypatch.setattr(History, "say", noted)
    assert played(BEGIN + "fail-over\nproduce orders 1\nexpect records orders 3\nrest") is None
    assert any("is the controller with epoch 2" in line for line in said)


def test_the_invariants_are_checked_after_every_event_and_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(invariants: Invariants, *, everywhere: bool = False) -> None:
        if any("follows 1" in line for line in invariants._cluster.world.history.lines):
            raise BrokenInvariantError("somebody follows")

    monkeypatch.setattr(Invariants, "look", look)
    assert played(BEGIN) == "mine, line 3, 'produce orders 2': somebody follows"


# KIP694-2, KIP694-3
def test_while_it_is_switched_off_a_topic_cannot_get_fewer_partitions() -> None:
    text = "delete.topic.partition.enable false\nbrokers 1\ncreate orders 2 1\npartitions orders 1 0s"
    assert str(played(text)).startswith(
        "mine, line 4, 'partitions orders 1 0s': the controller answers TOPIC_DELETION_DISABLED"
    )


# KIP516-10, KIP694-4
def test_rest_lets_all_delays_pass_so_nothing_of_a_deleted_topic_is_left() -> None:
    assert played(BEGIN + "delete orders\nrest\nexpect nothing-staged 1\nexpect nothing-staged 2") is None
