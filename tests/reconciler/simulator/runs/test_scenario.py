"""Scenarios as text: they are parsed, or every wrong line is reported at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.scheme import Scheme
from layout.topic import TopicPartition
from reconciler.errors import UsageError
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs import Scenario, parse_scenario, shipped_scenarios
from reconciler.simulator.runs.scenario import _HEADS, _VERBS
from reconciler.sources.zookeeper import AclOperation

GOOD = """
# A comment, and a blank line.

brokers 4
log-dirs 1
create orders 2 3            two partitions
create clicks 0:1,2 1:3,4
produce orders 5
reassign clicks-0 3,4
partitions orders 1 20s
disk-fails 2 0
wait 5m
expect staged 2 orders-1 1
expect nothing-staged 4
alter orders partitions 4 2:1,2,3 3:4,1,2
alter orders factor 2
alter orders replicas 0:4,1 1:2,3
alter orders set retention.ms=60000 cleanup.policy=compact,delete
alter orders unset retention.ms
reassign clicks-0 3,4 2
elect
elect orders-0
describe
describe orders
describe orders 2
delete orders
delete orders 1
list
rest
"""


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as refused:
        parse_scenario(text, "mine")
    return str(refused.value)


def test_every_line_that_can_be_read_is_there_with_its_number_and_values() -> None:
    scenario = parse_scenario(GOOD.replace("two partitions", "# two partitions"), "good")
    assert (scenario.name, scenario.brokers, scenario.log_dirs) == ("good", 4, 1)
    found = [(line.number, line.verb, line.values) for line in scenario.lines]
    assert found == [
        (6, "create", ("orders", 2, 3, None)),
        (7, "create", ("clicks", 0, 0, {0: (1, 2), 1: (3, 4)})),
        (8, "produce", ("orders", 5)),
        (9, "reassign", (TopicPartition("clicks", 0), (3, 4))),
        (10, "partitions", ("orders", 1, 20_000)),
        (11, "disk-fails", (2, 0)),
        (12, "wait", (300_000,)),
        (13, "expect staged", (2, TopicPartition("orders", 1), 1)),
        (14, "expect nothing-staged", (4,)),
        (15, "alter", ("orders", {"partitions": 4, "assignment": {2: (1, 2, 3), 3: (4, 1, 2)}})),
        (16, "alter", ("orders", {"factor": 2})),
        (17, "alter", ("orders", {"assignment": {0: (4, 1), 1: (2, 3)}})),
        (18, "alter", ("orders", {"configs": {"retention.ms": "60000", "cleanup.policy": "compact,delete"}})),
        (19, "alter", ("orders", {"deleted_configs": ("retention.ms",)})),
        (20, "reassign", (TopicPartition("clicks", 0), (3, 4), 2)),
        (21, "elect", ()),
        (22, "elect", (TopicPartition("orders", 0),)),
        (23, "describe", ()),
        (24, "describe", ("orders",)),
        (25, "describe", ("orders", 2)),
        (26, "delete", ("orders",)),
        (27, "delete", ("orders", 1)),
        (28, "list", ()),
        (29, "rest", ()),
    ]
    assert scenario.lines[0].text == "create orders 2 3"


def test_the_lines_before_everything_else_are_the_cluster_in_any_order() -> None:
    text = "racks a,b,b,c\nplacement kraft\nlog-dirs 1\nbrokers 4\n"
    assert parse_scenario(text, "head") == Scenario("head", 4, 1, (), ("a", "b", "b", "c"), Placement.KRAFT)
    assert parse_scenario("placement zookeeper", "head") == Scenario("head")


def test_namespaces_configs_and_refusals_are_read_too() -> None:  # KIP37-3, KIP37-5
    text = """scheme namespaced
    namespace create org:apache
    config org:apache retention.ms=5 -segment.ms note=
    refused 17 create org:apache 0:1,2
    refused 19 produce orders 1
    expect offsets 2 org:a-1 3 6
    as User:ann namespace move org com:shop
    upgrade 3
    """
    scenario = parse_scenario(f"older-brokers 2,3\n{text}", "good")
    assert (scenario.scheme, scenario.older_brokers) == ("namespaced", (2, 3))
    values = [line.values for line in scenario.lines]
    assert values[:2] == [("org:apache",), ("org:apache", {"retention.ms": "5", "note": ""}, ["segment.ms"])]
    assert [(line.refused, line.verb, line.values) for line in scenario.lines[2:4]] == [
        (17, "create", ("org:apache", 0, 0, {0: (1, 2)})),
        (19, "produce", ("orders", 1)),
    ]
    assert values[4:] == [(2, TopicPartition("org:a", 1), 3, 6), ("org", "com:shop"), (3,)]


def test_an_empty_scenario_has_three_brokers_with_two_log_dirs() -> None:
    assert parse_scenario("", "empty") == Scenario("empty", 3, 2, ())


def test_a_line_may_be_somebodys_and_may_be_expected_to_be_refused() -> None:
    text = """scheme namespaced
super-users User:root,User:admin
as User:root allow User:ann All alpha:
refused 29 as User:bob deny User:ann AlterConfigs *
refused 3 delete orders
as User:ann refused 29 describe orders 2
config alpha retention.ms=1
expect topics none
as User:ann expect topics a,b
"""
    scenario = parse_scenario(text, "good")
    assert (scenario.scheme, scenario.super_users) == (Scheme.NAMESPACED, ("User:root", "User:admin"))
    found = [(line.verb, line.values, line.principal, line.refused) for line in scenario.lines]
    assert found == [
        ("allow", ("User:ann", AclOperation.ALL, "alpha:"), "User:root", None),
        ("deny", ("User:ann", AclOperation.ALTER_CONFIGS, ""), "User:bob", 29),
        ("delete", ("orders",), None, 3),
        ("describe", ("orders", 2), "User:ann", 29),
        ("config", ("alpha", {"retention.ms": "1"}, []), None, None),
        ("expect topics", ((),), None, None),
        ("expect topics", (("a", "b"),), "User:ann", None),
    ]
    assert parse_scenario("", "empty").super_users is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("scheme by-topic-id", "'by-topic-id' is no scheme for a scenario: flat or namespaced"),
        ("scheme", "scheme wants one word"),
        ("super-users root", "'root' is no principal such as User:ann"),
        ("super-users User:root User:ann", "super-users wants one list such as User:ann,User:bob"),
        ("as User:ann", "as wants a principal, and a line"),
        ("as ann delete orders", "'ann' is no principal"),
        ("as User:ann stop 1", "stop is nobody's; of a principal are create,"),
        ("as User:ann as User:bob delete orders", "as comes once in a line"),
        ("refused 29", "refused wants the number of an error, and a line"),
        ("refused no delete orders", "'no' is no number from 1"),
        ("allow User:ann Fly orders", "'Fly' is no operation; there are All, Read,"),
        ("config org retention.ms", "'retention.ms' is no config such as retention.ms=60000 or -retention.ms"),
        ("older-brokers 2,4", "there is no broker 4"),
        ("upgrade 4", "there is no broker 4"),
        ("dance", "there is no 'dance'; there are create, alter, config, delete,"),
        ("expect", "there is no 'expect'"),
        ("expect rain", "there is no 'expect rain'"),
        ("create orders", "create wants a topic, and partitions and replicas, or an assignment"),
        ("create orders 1", "create wants a topic, partitions, and replicas of each"),
        ("create orders 1 3 two", "create wants a topic, partitions, and replicas of each"),
        ("create orders 0 1", "'0' is no number from 1"),
        ("create orders 0:1 2", "'2' is no assignment such as 0:1,2,3"),
        ("create orders 0:1 0:2", "partition 0 is assigned twice"),
        ("create orders 0:", "'' is no number"),
        ("create orders 0:4", "there is no broker 4; there are 3, from 1"),
        ("reassign orders-0 1,9", "there is no broker 9"),
        ("reassign orders 1", "'orders' is no partition such as orders-0"),
        ("alter orders", "alter wants a topic, one of partitions, factor, replicas, set, unset, and its new value"),
        ("alter orders name clicks", "'name' is nothing that alter changes: partitions, factor, replicas, set, unset"),
        ("alter orders partitions many", "'many' is no number"),
        ("alter orders partitions 4 3", "'3' is no assignment such as 0:1,2,3"),
        ("alter orders partitions 4 3:1,9", "there is no broker 9; there are 3, from 1"),
        ("alter orders factor 2 3", "alter orders factor wants one number, and has 2 words"),
        ("alter orders replicas 0:1 0:2", "partition 0 is assigned twice"),
        ("alter orders set retention.ms", "'retention.ms' is no config such as retention.ms=1000"),
        ("alter orders set =5", "'=5' is no config such as retention.ms=1000"),
        ("reassign orders-0 1,2 first", "'first' is no number"),
        ("reassign orders-0", "reassign wants 2 to 3 words after it, and has 1"),
        ("elect orders", "'orders' is no partition such as orders-0"),
        ("describe orders 1 2", "describe wants 0 to 2 words after it, and has 3"),
        ("delete", "delete wants 1 to 2 words after it, and has 0"),
        ("list orders", "list wants 0 words after it, and has 1"),
        ("produce orders", "produce wants 2 words after it, and has 1"),
        ("produce orders -1", "'-1' is no number from 0 to 1000000"),
        ("produce orders 1000001", "is no number from 0 to 1000000"),
        ("produce orders 0000000009999999", "is no number from 0 to 1000000"),
        ("produce orders ٣", "is no number"),
        ("produce orders " + "9" * 5_000, "is no number"),
        ("stop 0", "there is no broker 0"),
        ("stop 4", "there is no broker 4"),
        ("disk-fails 1 2", "there is no log dir 2; each broker has 2, from 0"),
        ("disk-back 1 2", "there is no log dir 2"),
        ("disk-replaced 1 2", "there is no log dir 2"),
        ("wait long", "'long' is no duration"),
        ("partitions orders 1 -5s", "is no duration"),
        ("expect live 1 orders-0", "expect live wants 3 words after it, and has 2"),
        ("expect leader orders-0 7", "there is no broker 7"),
        ("expect mode orders-0 Full", "'Full' is no mode: ReadWrite, ReadOnly, None"),
        ("delete.topic.partition.enable maybe", "where true or false is expected"),
        ("delete.topic.partition.delay 3", "is no setting here"),
        ("rest\ndelete.topic.partition.enable true", "comes before everything else"),
        ("rest now", "rest wants 0 words after it, and has 1"),
        ("brokers", "brokers wants one number"),
        ("brokers 51", "'51' is no number from 1 to 50"),
        ("log-dirs 0", "'0' is no number from 1"),
        ("rest\nbrokers 3", "brokers comes before everything else"),
        ("rest\nracks a,b,c", "racks comes before everything else"),
        ("racks a b", "racks wants one list such as a,a,b"),
        ("racks a,,b", "'a,,b' are no racks such as a,a,b"),
        ("racks a,b", "there are 3 brokers, and each has one rack"),
        ("placement", "placement wants one name"),
        ("placement raft", "there is no placement 'raft'; there are zookeeper, kraft"),
        ("rest\nscheme flat", "scheme comes before everything else"),
        ("namespace", "there is no 'namespace'; there are create, alter, config, delete,"),
        ("namespace create", "namespace create wants 1 words after it, and has 0"),
        ("config org", "config wants a namespace or *, and configs"),
        ("config org a=1 a=2", "'a=2' is no config such as retention.ms=60000 or -retention.ms, or comes twice"),
        ("config org =1", "'=1' is no config"),
        ("config org a", "'a' is no config"),
        ("refused 17 wait 5s", "nobody refuses wait; what may be refused are create,"),
        ("refused 9 create orders 1 1", "9 is no error number that a broker here answers with"),
        ("refused x create orders 1 1", "'x' is no number"),
        ("refused 17 create orders", "create wants a topic, and partitions and replicas"),
        ("refused 17 create orders 0:9", "there is no broker 9"),
    ],
)
def test_a_line_that_cannot_be_read_is_reported_with_its_number_and_why(line: str, why: str) -> None:
    number = 1 + line.count("\n")
    text = refusal(line)
    assert text.startswith(f"mine is no scenario: line {number}, {line.splitlines()[-1]!r:.60}: ")
    assert why in text


def test_all_wrong_lines_are_reported_at_once_in_their_order() -> None:
    text = refusal("\n".join(["stop 9", "rest", "dance", *["wait long"] * 30, "disk-fails 1 8"]))
    named = [part.partition(",")[0] for part in text.removeprefix("mine is no scenario: ").split("; line ")]
    assert named == ["line 1", *map(str, (3, *range(4, 34), 34))]


CHANGES = ("alter", "partitions", "factor", "replicas", "set", "unset", "retention.ms=5")
NUMBERS = ("1", "0", "99", "0:1,2", "1,2", "a,b,c", "5s", "9" * 20, "0" * 12 + "7")
NEW = ("config", "as", "refused", "User:ann", "17", "a=1", "-a")
ODD = (*NEW, "#", ":", ",", "-", "é", "\ud800", "\0", "orders", "orders-0", "create", "kraft", *_HEADS)
words = st.sampled_from([*(word for verb in _VERBS for word in verb.split()), *CHANGES, *NUMBERS, *ODD])
lines = st.one_of(st.lists(words, max_size=6).map(" ".join), st.text(max_size=40))


@given(st.lists(lines, max_size=12).map("\n".join))
def test_whatever_the_text_is_it_is_read_or_every_wrong_line_is_reported(text: str) -> None:
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1)]
    try:
        found = parse_scenario(text, "fuzz")
    except UsageError as refused:
        wrong = [number for number, _ in numbered if f"line {number}, " in str(refused)]
        assert wrong
        kept = "\n".join("" if number in wrong else line for number, line in numbered)
        if not any(set(line.split()[:1]) & set(_HEADS) for _, line in numbered):
            parse_scenario(kept, "fuzz")
    else:
        assert 1 <= found.brokers <= 50 and 1 <= found.log_dirs <= 50 and len(found.racks) in (0, found.brokers)
        assert [line.number for line in found.lines] == sorted({line.number for line in found.lines})


def test_every_scenario_that_is_shipped_can_be_read_and_ends_at_rest() -> None:
    assert list(shipped_scenarios()) == sorted(shipped_scenarios()) and len(shipped_scenarios()) >= 6
    for name, text in shipped_scenarios().items():
        assert parse_scenario(text, name).lines[-1].verb == "rest"
