"""Replica assignment with ZooKeeper: golden vectors, the article's example, Kafka's properties, and racks."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import KafkaError
from reconciler.simulator.placement import Assignment, AssignmentError, assign
from reconciler.simulator.placement.zookeeper import rack_alternated

SIX_RACKED = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
EVEN_RACKS = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
UNEVEN_RACKS = {0: "rack1", 1: "rack1", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}


def read_map(text: str) -> dict[int, str]:
    return {int(key): value for key, value in re.findall(r"(\d+)=([^,{}\[\]]+)", text)}


def read_assignment(text: str) -> Assignment:
    found = re.findall(r"(\d+)=\[([\d, ]*)\]", text)
    return {int(key): tuple(int(each) for each in value.split(",")) for key, value in found}


@pytest.mark.shared(kinds={"AdminUtils.rackUnaware", "AdminUtils.rackAware"})
def test_upstreams_own_assignments_come_out(vector: dict[str, Any]) -> None:  # CREATE-1, CREATE-2
    given = vector["input"]
    racks = read_map(given["racks"]) if "racks" in given else None
    brokers = sorted(racks) if racks else broker_list(given["brokers"])
    found = assign(
        brokers,
        given["partitions"],
        given["rf"],
        racks=racks,
        fixed_start=given["fixedStartIndex"],
        start_partition=given["startPartitionId"],
    )
    assert found == read_assignment(vector["output"])


def broker_list(value: Any) -> list[int]:
    if isinstance(value, int):
        return list(range(value))
    return [int(each) for each in re.findall(r"\d+", str(value))]


@pytest.mark.shared(kinds={"AdminUtils.rackAlternated"})
def test_upstreams_own_order_by_racks_comes_out(vector: dict[str, Any]) -> None:  # CREATE-2
    assert rack_alternated(read_map(vector["input"])) == [int(each) for each in re.findall(r"\d+", vector["output"])]


@pytest.mark.shared(kinds={"AdminUtils.error"})
def test_upstreams_own_refusals_come_out(vector: dict[str, Any]) -> None:  # CREATE-1, CREATE-2
    errors = {
        "InvalidReplicationFactorException": KafkaError.INVALID_REPLICATION_FACTOR,
        "AdminOperationException": KafkaError.UNKNOWN_SERVER_ERROR,
    }
    counts = re.fullmatch(r"(\d+) brokers, partitions=(\d+) rf=(\d+)", vector["input"])
    brokers, partitions, factor = map(int, counts.groups()) if counts else (2, 1, 1)
    assert counts or vector["input"] == "broker 0 has rack, broker 1 none"
    with pytest.raises(AssignmentError) as caught:
        assign(range(brokers), partitions, factor, racks=None if counts else {0: "a"}, fixed_start=0)
    assert caught.value.error is errors[vector["output"]["error"]["exceptionChain"][0]]


def test_the_articles_leaders_start_at_1000_or_at_1002() -> None:  # CREATE-1
    brokers = [1000, 1001, 1002, 1003, 1004]
    leaders = {start: [each[0] for each in assign(brokers, 10, 3, fixed_start=start).values()] for start in (0, 2)}
    assert leaders[0] == brokers * 2
    assert leaders[2] == [1002, 1003, 1004, 1000, 1001] * 2


def test_the_articles_followers_come_out_of_a_distance_of_three() -> None:  # CREATE-1
    class Drawn(Random):
        """Draws what the article's run drew: the start, then the distance of the first follower."""

        def randrange(self, *bounds: Any) -> int:
            assert bounds == (5,)
            return self.draws.pop(0)

    random = Drawn()
    random.draws = [0, 3]
    found = assign([1000, 1001, 1002, 1003, 1004], 10, 3, random=random)
    # The article's table: rows leader, follower 1, follower 2; a column for each broker.
    table = {
        1000: ({0, 5}, {1, 9}, {4, 8}),
        1001: ({1, 6}, {2, 5}, {0, 9}),
        1002: ({2, 7}, {3, 6}, {1, 5}),
        1003: ({3, 8}, {4, 7}, {2, 6}),
        1004: ({4, 9}, {0, 8}, {3, 7}),
    }
    for broker, rows in table.items():
        for row, partitions in enumerate(rows):
            assert {partition for partition, replicas in found.items() if replicas[row] == broker} == partitions


def test_brokers_are_gone_round_in_the_order_that_was_given() -> None:  # CREATE-1
    found = assign([7, 3, 11], 5, 2, fixed_start=0)
    assert list(found.values()) == [(7, 3), (3, 11), (11, 7), (7, 11), (3, 7)]


def test_one_broker_gets_every_partition() -> None:
    assert assign([4], 2, 1, fixed_start=0) == {0: (4,), 1: (4,)}
    assert assign([4], 2, 1, racks={4: "a"}, random=Random(1)) == {0: (4,), 1: (4,)}


def test_a_start_is_needed_or_something_to_draw_it_from() -> None:
    with pytest.raises(ValueError, match="random number generator"):
        assign([0, 1], 1, 1)


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (0, 0, KafkaError.INVALID_PARTITIONS),
        (-1, 3, KafkaError.INVALID_PARTITIONS),
        (10, 0, KafkaError.INVALID_REPLICATION_FACTOR),
        (10, -1, KafkaError.INVALID_REPLICATION_FACTOR),
        (10, 6, KafkaError.INVALID_REPLICATION_FACTOR),
    ],
)
@pytest.mark.parametrize("racks", [None, {0: "a", 1: "b", 2: "a", 3: "b", 4: "a"}])
def test_bad_numbers_are_refused_as_kafka_does(
    partitions: int, factor: int, error: KafkaError, racks: dict[int, str] | None
) -> None:  # CREATE-1, CREATE-2
    with pytest.raises(AssignmentError) as caught:
        assign(range(5), partitions, factor, racks=racks, fixed_start=0)
    assert caught.value.error is error


def test_racks_on_some_brokers_only_are_refused_and_the_others_named() -> None:  # CREATE-2
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2"}
    with pytest.raises(AssignmentError, match=r"brokers \[4\] have no rack") as caught:
        assign(range(5), 10, 5, racks=racks, fixed_start=0)
    assert caught.value.error is KafkaError.UNKNOWN_SERVER_ERROR


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[int, str], int, int]:
    racks = {broker: f"r{draw(st.integers(0, 3))}" for broker in range(draw(st.integers(1, 9)))}
    return racks, draw(st.integers(1, 30)), draw(st.integers(1, len(racks)))


@given(cluster=clusters(), seed=st.integers(0, 1000), racked=st.booleans())
def test_every_partition_has_its_replicas_on_different_brokers_and_racks(
    cluster: tuple[dict[int, str], int, int], seed: int, racked: bool
) -> None:  # CREATE-1, CREATE-2
    racks, partitions, factor = cluster
    found = assign(sorted(racks), partitions, factor, racks=racks if racked else None, random=Random(seed))
    assert sorted(found) == list(range(partitions))
    for replicas in found.values():
        assert len(replicas) == len(set(replicas)) == factor
        if racked:
            # As many racks as there can be: each another one, or all of them.
            assert len({racks[each] for each in replicas}) == min(factor, len(set(racks.values())))


@given(
    per_rack=st.integers(1, 4),
    rack_count=st.integers(1, 4),
    factor=st.integers(1, 4),
    rounds=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_with_racks_of_one_size_leaders_are_even(
    per_rack: int, rack_count: int, factor: int, rounds: int, seed: int
) -> None:  # CREATE-2
    racks = {broker: f"r{broker % rack_count}" for broker in range(per_rack * rack_count)}
    factor = min(factor, len(racks))
    found = assign(sorted(racks), rounds * len(racks), factor, racks=racks, random=Random(seed))
    leaders = Counter(replicas[0] for replicas in found.values())
    assert set(leaders.values()) == {rounds} and len(leaders) == len(racks)


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "even"),
    [
        (EVEN_RACKS, 6, 3, True),
        (EVEN_RACKS, 12, 2, True),
        ({0: "rack1", 1: "rack2", 4: "rack3"}, 3, 2, True),
        ({n: f"rack{n % 3}" for n in range(12)}, 96, 3, True),
        (UNEVEN_RACKS, 12, 3, False),
    ],
)
def test_replicas_are_as_even_as_the_racks(
    racks: dict[int, str], partitions: int, factor: int, even: bool
) -> None:  # CREATE-2
    found = assign(sorted(racks), partitions, factor, racks=racks, fixed_start=2)
    leaders = Counter(replicas[0] for replicas in found.values())
    copies = Counter(broker for replicas in found.values() for broker in replicas)
    assert set(leaders.values()) == {partitions // len(racks)}
    assert (len(set(copies.values())) == 1) is even


def test_the_same_seed_gives_the_same_assignment() -> None:
    first, second = (assign(range(6), 8, 3, racks=SIX_RACKED, random=Random(5)) for _ in range(2))
    assert first == second
