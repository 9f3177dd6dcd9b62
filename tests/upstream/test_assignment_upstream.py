"""Kafka's own test cases of replica assignment in ZooKeeper's controller (FACTS §9.3, §10.10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest

from logstore import KafkaError
from reconciler.simulator.placement import Assignment, AssignmentError, assign
from reconciler.simulator.placement.zookeeper import rack_alternated

SIX = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
ALTERNATED = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
UNEVEN = {0: "rack1", 1: "rack1", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}


def refused(partitions: int, factor: int, racks: Mapping[int, str] | None = None) -> KafkaError:
    with pytest.raises(AssignmentError) as caught:
        assign(range(5), partitions, factor, racks=racks, fixed_start=0)
    return caught.value.error


def assigned(
    racks: Mapping[int, str], partitions: int, factor: int, start: int | None = None, first: int = -1
) -> Assignment:
    """The assignment, rack-aware: as many racks as there can be, and no broker twice."""
    random = Random(5) if start is None else None
    fixed = -1 if start is None else start
    found = assign(
        sorted(racks), partitions, factor, racks=racks, random=random, fixed_start=fixed, start_partition=first
    )
    assert sorted(found) == list(range(max(0, first), max(0, first) + partitions))
    for replicas in found.values():
        assert len(replicas) == len(set(replicas)) == factor
        assert len({racks[each] for each in replicas}) == min(factor, len(set(racks.values())))
    return found


def leaders(found: Assignment) -> set[int]:
    """The numbers of partitions that brokers lead; one number: they lead alike."""
    return set(Counter(replicas[0] for replicas in found.values()).values())


def copies(found: Assignment) -> set[int]:
    """The numbers of replicas that brokers have."""
    return set(Counter(broker for replicas in found.values() for broker in replicas).values())


def test_AdminRackAwareTest_testReplicaAssignment() -> None:
    assert [refused(10, 0), refused(10, 6)] == [KafkaError.INVALID_REPLICATION_FACTOR] * 2
    first_rows = (0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1), (0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1)
    assert tuple(assign(range(5), 10, 3, fixed_start=0).values()) == (*first_rows, (4, 1, 2))


def test_AdminRackAwareTest_testGetRackAlternatedBrokerListAndAssignReplicasToBrokers() -> None:
    assert rack_alternated(ALTERNATED) == [0, 3, 1, 5, 4, 2]
    assert rack_alternated({broker: rack for broker, rack in ALTERNATED.items() if broker != 5}) == [0, 3, 1, 4, 2]
    assert list(assigned(ALTERNATED, 7, 3, 0).values()) == [
        *((0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3), (0, 4, 2)),
    ]


def test_AdminRackAwareTest_testAssignmentWithRackAware() -> None:
    found = assigned(SIX, 6, 3, 2)
    assert (leaders(found), copies(found)) == ({1}, {3})


def test_AdminRackAwareTest_testAssignmentWithRackAwareWithUnevenReplicas() -> None:
    found = assigned(SIX, 13, 3, 0)
    assert len(leaders(found)) > 1


def test_AdminRackAwareTest_testAssignmentWithRackAwareWithUnevenRacks() -> None:
    found = assigned(UNEVEN, 12, 3)
    assert leaders(found) == {2}
    assert len(copies(found)) > 1


def test_AdminRackAwareTest_testAssignmentWith2ReplicasRackAware() -> None:
    found = assigned(SIX, 12, 2)
    assert (leaders(found), copies(found)) == ({2}, {4})


def test_AdminRackAwareTest_testRackAwareExpansion() -> None:
    racks = {broker + 6: rack for broker, rack in SIX.items()}
    found = assigned(racks, 12, 2, first=12)
    assert (leaders(found), copies(found)) == ({2}, {4})


def test_AdminRackAwareTest_testAssignmentWith2ReplicasRackAwareWith6PartitionsAnd3Brokers() -> None:
    found = assigned({0: "rack1", 1: "rack2", 4: "rack3"}, 3, 2)
    assert (leaders(found), copies(found)) == ({1}, {2})


def test_AdminRackAwareTest_testLargeNumberPartitionsAssignment() -> None:
    found = assigned({broker: f"rack{broker % 3}" for broker in range(12)}, 96, 3)
    assert (leaders(found), copies(found)) == ({8}, {24})


def test_AdminRackAwareTest_testMoreReplicasThanRacks() -> None:
    racks = {**SIX, 5: "rack2"}
    for replicas in assigned(racks, 6, 5).values():
        assert {racks[each] for each in replicas} == {"rack1", "rack2", "rack3"}


def test_AdminRackAwareTest_testLessReplicasThanRacks() -> None:
    racks = {**SIX, 5: "rack2"}
    for replicas in assigned(racks, 6, 2).values():
        assert len({racks[each] for each in replicas}) == 2


def test_AdminRackAwareTest_testSingleRack() -> None:
    assert leaders(assigned(dict.fromkeys(range(6), "rack1"), 6, 3)) == {1}


def test_AdminRackAwareTest_testSkipBrokerWithReplicaAlreadyAssigned() -> None:
    found = assigned({0: "a", 1: "b", 2: "c", 3: "a", 4: "a"}, 6, 4, 2)
    assert list(found.values()) == [
        *((2, 0, 1, 3), (3, 1, 2, 4), (4, 2, 1, 3), (0, 1, 2, 3), (1, 4, 2, 3), (2, 4, 1, 3)),
    ]


def test_AdminRackAwareTest_testAssignReplicasToBrokersWithInvalidParameters() -> None:
    racks = {broker: rack for broker, rack in ALTERNATED.items() if broker < 4}
    assert refused(0, 0, racks) is KafkaError.INVALID_PARTITIONS
    assert refused(10, 0, racks) is refused(10, 6, racks) is KafkaError.INVALID_REPLICATION_FACTOR
    assert refused(10, 5, racks) is KafkaError.UNKNOWN_SERVER_ERROR
