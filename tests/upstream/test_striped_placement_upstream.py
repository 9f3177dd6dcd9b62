"""Kafka's own test cases of KRaft's replica placement (FACTS §9.4, §10.10)."""

from __future__ import annotations

from collections import Counter

import pytest

from logstore import KafkaError
from reconciler.simulator.placement import AssignmentError, KnownBroker
from reconciler.simulator.placement.striped import BrokerList, RackList, place_striped
from tests.reconciler.simulator.placement.mock_random import MockRandom

FENCED, TARGET, POSITIVE = (
    "All brokers are currently fenced.",
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered.",
    "Invalid replication factor {}: the replication factor must be positive.",
)


def up(*numbers: int, rack: str | None = None) -> list[KnownBroker]:
    return [KnownBroker(number, rack) for number in numbers]


def fenced(*numbers: int, rack: str | None = None) -> list[KnownBroker]:
    return [KnownBroker(number, rack, fenced=True) for number in numbers]


def placed(brokers: list[KnownBroker], partitions: int, factor: int) -> list[tuple[int, ...]]:
    return list(place_striped(brokers, partitions, factor, MockRandom()).values())


def refusal(brokers: list[KnownBroker], factor: int) -> str:
    with pytest.raises(AssignmentError) as caught:
        placed(brokers, 1, factor)
    assert caught.value.error is KafkaError.INVALID_REPLICATION_FACTOR
    return str(caught.value)


def test_StripedReplicaPlacerTest_testSuccessfulPlacement() -> None:
    assert placed(up(0, 1, 2, 3), 5, 3) == [(2, 3, 0), (3, 0, 1), (0, 1, 2), (1, 2, 3), (1, 0, 2)]


def test_StripedReplicaPlacerTest_testAvoidFencedReplicaIfPossibleOnSingleRack() -> None:
    brokers = [*up(0), *fenced(1), *up(2, 3, 4)]
    assert placed(brokers, 5, 4) == [(3, 4, 0, 2), (4, 0, 2, 3), (0, 2, 3, 4), (2, 3, 4, 0), (0, 4, 3, 2)]
    for factor in (0, -1):
        assert refusal(brokers, factor) == POSITIVE.format(factor)


def test_StripedReplicaPlacerTest_testPlacementOnFencedReplicaOnSingleRack() -> None:
    assert placed([*fenced(1), *up(2, 3)], 4, 3) == [(3, 2, 1), (2, 3, 1), (3, 2, 1), (2, 3, 1)]


def test_StripedReplicaPlacerTest_testRackListWithMultipleRacks() -> None:
    brokers = [*up(11, 10, rack="1"), *up(30, 31, rack="3"), *up(21, rack="2"), *fenced(20, rack="2")]
    racks = RackList(brokers, MockRandom())
    assert racks.names == ["1", "2", "3"]
    assert [racks.place(4) for _ in range(3)] == [(11, 21, 31, 10), (21, 30, 10, 20), (31, 11, 21, 30)]


def test_StripedReplicaPlacerTest_testRackListWithInvalidRacks() -> None:
    brokers = [*up(11, 10, rack="1"), *fenced(30, 31, rack="3"), *fenced(20, 21, rack="2")]
    brokers += [*fenced(40, rack="4"), *up(41, rack="4")]
    racks = RackList(brokers, MockRandom())
    assert racks.names == ["1", "2", "3", "4"]
    assert [racks.place(4) for _ in range(3)] == [(41, 11, 21, 30), (10, 20, 31, 41), (41, 21, 30, 11)]


def test_StripedReplicaPlacerTest_testMultiPartitionTopicPlacementOnSingleUnfencedBroker() -> None:
    assert placed([*up(0), *fenced(1)], 3, 1) == [(0,), (0,), (0,)]


def test_StripedReplicaPlacerTest_testEvenDistribution() -> None:
    assert Counter("".join(map(str, replicas)) for replicas in placed(up(0, 1, 2, 3), 200, 2)) == {
        **{"01": 14, "02": 22, "03": 14, "10": 17, "12": 17, "13": 16},
        **{"20": 13, "21": 17, "23": 20, "30": 20, "31": 19, "32": 11},
    }


def test_StripedReplicaPlacerTest_testAllBrokersFenced() -> None:
    assert refusal(fenced(11, 10), 1).startswith(FENCED)
    assert refusal([*fenced(11, rack="1"), *fenced(10, rack="2")], 2).startswith(FENCED)


def test_StripedReplicaPlacerTest_testNotEnoughBrokers() -> None:
    assert refusal(up(11, 10), 3).startswith(TARGET)
    assert refusal([*fenced(11, rack="1"), *up(10, rack="2")], 3).startswith(TARGET)


def test_StripedReplicaPlacerTest_testNonPositiveReplicationFactor() -> None:
    for brokers in (up(11, 10), [*up(11, rack="1"), *up(10, rack="2")]):
        assert [refusal(brokers, factor) for factor in (0, -1)] == [POSITIVE.format(factor) for factor in (0, -1)]


def test_StripedReplicaPlacerTest_testBrokerList() -> None:
    brokers = BrokerList([0, 1, 2, 3])
    assert [brokers.next(0) for _ in range(6)] == [0, 1, 2, 3, None, None]
    assert [brokers.next(1) for _ in range(5)] == [1, 2, 3, 0, None]
    assert BrokerList([]).next(0) is None
