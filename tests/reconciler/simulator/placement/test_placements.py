"""The two placements side by side: whom they know, how a topic grows, and which assignments by hand they take."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from logstore import KafkaError
from reconciler.simulator.placement import PLACEMENTS, AssignmentError, KnownBroker, Placement, ReplicaPlacement, assign

ZOOKEEPER, KRAFT = PLACEMENTS[Placement.ZOOKEEPER], PLACEMENTS[Placement.KRAFT]
BROKERS = [KnownBroker(0), KnownBroker(1), KnownBroker(2, fenced=True)]
BOTH = pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS)

ByHand = Mapping[int, tuple[int, ...]]


def refused(placement: ReplicaPlacement, assignment: ByHand, **counts: int) -> str:
    """The reasons against an assignment by hand; of a new topic, or with counts of one that grows."""
    with pytest.raises(AssignmentError) as caught:
        if counts:
            placement.check_added_by_hand(BROKERS, assignment, **counts)
        else:
            placement.check_by_hand(BROKERS, assignment)
    assert caught.value.error is KafkaError.INVALID_REPLICA_ASSIGNMENT
    return str(caught.value)


def test_there_are_rules_for_every_placement() -> None:
    assert set(PLACEMENTS) == set(Placement)


def test_only_krafts_places_replicas_on_a_broker_that_is_away_which_leads_none() -> None:  # CREATE-1
    found = KRAFT.create(BROKERS, 30, 3, Random(1))
    assert all(sorted(replicas) == [0, 1, 2] and replicas[0] != 2 for replicas in found.values())
    with pytest.raises(AssignmentError, match="replication factor 3 with 2 brokers: start more") as caught:
        ZOOKEEPER.create(BROKERS, 30, 3, Random(1))
    assert caught.value.error is KafkaError.INVALID_REPLICATION_FACTOR


def test_krafts_refusals_say_what_it_was_about_in_kafkas_words() -> None:
    all_fenced = [KnownBroker(0, fenced=True)]
    for brokers, partitions, factor, said in (
        (BROKERS, 1, 4, "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be"),
        (BROKERS, 1, 0, "Unable to replicate the partition 0 time(s): Invalid replication factor 0: the replication"),
        (all_fenced, 1, 1, "Unable to replicate the partition 1 time(s): All brokers are currently fenced."),
        (BROKERS, -3, 1, "Number of partitions was set to an invalid non-positive value. It is -3"),
    ):
        with pytest.raises(AssignmentError) as caught:
            KRAFT.create(brokers, partitions, factor, Random(1))
        assert str(caught.value).startswith(said), str(caught.value)


@BOTH
def test_the_same_seed_gives_the_same_assignment(placement: ReplicaPlacement) -> None:
    brokers = [KnownBroker(number, f"rack{number % 2}") for number in range(6)]
    first, second = (placement.create(brokers, 8, 3, Random(5)) for _ in range(2))
    assert first == second != placement.create(brokers, 8, 3, Random(6))


@BOTH
def test_racks_count_under_either(placement: ReplicaPlacement) -> None:  # CREATE-2
    racks = {0: "a", 1: "a", 2: "b", 3: "b"}
    brokers = [KnownBroker(number, rack) for number, rack in racks.items()]
    found = placement.create(brokers, 12, 2, Random(2)) | placement.add(brokers, {0: (1, 2)}, 5, Random(2))
    assert all({racks[each] for each in replicas} == {"a", "b"} for replicas in found.values())


def test_brokers_without_a_rack_beside_others_are_one_rack_to_kraft_and_refused_by_zookeepers() -> None:  # CREATE-2
    brokers = [KnownBroker(0), KnownBroker(1, "a"), KnownBroker(2)]
    assert all(1 in replicas for replicas in KRAFT.create(brokers, 12, 2, Random(2)).values())
    with pytest.raises(AssignmentError, match=r"brokers \[0, 2\] have no rack"):
        ZOOKEEPER.create(brokers, 12, 2, Random(2))


def test_zookeepers_topic_grows_where_its_first_partition_began_and_krafts_from_a_drawn_start() -> None:  # KIP4-3
    brokers = [KnownBroker(number) for number in range(5)]
    existing = {0: (3, 4), 1: (4, 0)}
    grown = {seed: ZOOKEEPER.add(brokers, existing, 6, Random(seed)) for seed in range(8)}
    assert list(grown.values()) == [assign(range(5), 4, 2, fixed_start=3, start_partition=2)] * 8
    drawn = [KRAFT.add(brokers, existing, 6, Random(seed)) for seed in range(8)]
    assert all(list(found) == [2, 3, 4, 5] for found in drawn)
    assert {len(replicas) for found in drawn for replicas in found.values()} == {2}
    assert len({found[2][0] for found in drawn}) > 1


def test_zookeepers_topic_grows_from_the_next_broker_where_its_first_leader_is_away() -> None:  # KIP4-3
    brokers = [KnownBroker(0), KnownBroker(1, fenced=True), KnownBroker(2), KnownBroker(3)]
    assert ZOOKEEPER.add(brokers, {0: (1,)}, 2, Random(1)) == assign([0, 2, 3], 1, 1, fixed_start=1, start_partition=1)


@BOTH
def test_an_assignment_by_hand_may_name_one_broker_for_all(placement: ReplicaPlacement) -> None:  # CREATE-2
    placement.check_by_hand(BROKERS, dict.fromkeys(range(5), (1,)))


@BOTH
@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        ({0: (1, 2), 1: (1, 1)}, "partition 1 has a broker twice"),
        ({0: (1, 2), 2: (2, 3)}, "not 0, 1, 2"),
        ({1: (1, 2)}, "not 0, 1, 2"),
        ({0: (1, 2), 1: (2,)}, "the same number of replicas"),
        ({0: ()}, "partition 0 has no replicas"),
        ({0: (-1,)}, "negative"),
        ({}, "empty"),
    ],
)
def test_an_assignment_by_hand_is_refused_with_its_reason(
    placement: ReplicaPlacement, assignment: ByHand, reason: str
) -> None:  # CREATE-2
    assert reason in refused(placement, assignment)


def test_by_hand_kraft_takes_registered_brokers_alone_one_of_which_is_up() -> None:  # CREATE-2
    ZOOKEEPER.check_by_hand(BROKERS, {0: (2, 7), 1: (2, 8)})
    KRAFT.check_by_hand(BROKERS, {0: (2, 1), 1: (0, 2)})
    text = refused(KRAFT, {0: (0, 7), 1: (2, 8), 2: (2,)})
    assert text == (
        "the replica assignment cannot be used: not all partitions have the same number of replicas; "
        "the manual partition assignment includes broker 7, but no such broker is registered; "
        "the manual partition assignment includes broker 8, but no such broker is registered; "
        "all brokers specified in the manual partition assignment for partition 2 are fenced: start one of [2]"
    )


@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        ({2: (0, 1)}, "partitions 2 to 3 are new"),
        ({2: (0, 1), 3: (1,)}, "have 2 replicas"),
        ({2: (0, 0), 3: (1, 2)}, "twice"),
    ],
)
@BOTH
def test_added_partitions_by_hand_are_refused_with_their_reason(
    placement: ReplicaPlacement, assignment: ByHand, reason: str
) -> None:  # KIP4-3
    assert reason in refused(placement, assignment, existing=2, wanted=4, factor=2)


def test_added_partitions_by_hand_are_on_live_brokers_or_with_kraft_on_registered_ones() -> None:  # KIP4-3
    counts = {"existing": 2, "wanted": 4, "factor": 2}
    for placement in (ZOOKEEPER, KRAFT):
        placement.check_added_by_hand(BROKERS, {2: (0, 1), 3: (1, 0)}, **counts)
    KRAFT.check_added_by_hand(BROKERS, {2: (0, 2), 3: (2, 1)}, **counts)
    assert "brokers [2, 9] are not there" in refused(ZOOKEEPER, {2: (0, 2), 3: (1, 9)}, **counts)
    assert "includes broker 9, but no such" in refused(KRAFT, {2: (0, 2), 3: (1, 9)}, **counts)
