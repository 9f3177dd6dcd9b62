"""KRaft's striped placement: golden vectors, Kafka 4.3's own placements, properties, and each way of being refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import KafkaError
from reconciler.simulator.placement import AssignmentError, KnownBroker
from reconciler.simulator.placement.java_random import JavaRandom
from reconciler.simulator.placement.striped import BrokerList, place_striped
from tests.reconciler.simulator.placement.mock_random import MockRandom


def brokers_of(text: str) -> list[KnownBroker]:
    """Brokers as ``1:a 2f:b 3``: ID, f where it is fenced, and its rack."""
    found = []
    for word in text.split():
        number, _, rack = word.partition(":")
        found.append(KnownBroker(int(number.rstrip("f")), rack or None, fenced=number.endswith("f")))
    return found


@pytest.mark.shared(kinds={"StripedReplicaPlacer(MockRandom 17)"})
def test_upstream_s_own_placements_come_out(vector: dict[str, Any]) -> None:
    given_ = vector["input"]
    ids = json.loads(given_["brokers"])
    racks = [None] * len(ids) if given_["racks"] == "none" else re.findall(r"\w+", given_["racks"])
    brokers = [KnownBroker(node_id, rack) for node_id, rack in zip(ids, racks, strict=True)]
    found = place_striped(brokers, given_["partitions"], given_["rf"], MockRandom())
    assert list(found) == list(range(given_["partitions"]))
    assert [list(replicas) for replicas in found.values()] == json.loads(vector["output"])


@pytest.mark.parametrize(
    ("seed", "factor", "brokers", "placed"),
    [
        (
            7,
            3,
            "1:a 2:a 3:b 4f:b 5f:c 6:c",
            "3,6,2 6,1,3 2,3,6 3,6,1 3,2,6 1,6,3 6,3,2 3,1,6 6,3,2 3,1,6 2,6,3 6,3,1",
        ),
        (
            42,
            2,
            "0:us-east-1a 1:us-east-1b 2:us-east-1c 3:us-east-1a 4:us-east-1b",
            "2,3 0,4 1,2 2,3 0,4 1,0 3,2 2,4 1,0",
        ),
        (99, 4, "1 2f 3:rack-Ä 4:日本 5", "1,3,4,5 3,4,5,1 4,1,3,5 5,3,4,1 3,4,1,5 4,5,3,1 1,3,4,5 3,4,5,1"),
        (123456789012345, 1, "1 2 3", "2 3 1 2 3 1 2 3 1 3"),
        (
            5,
            2,
            "1:r1 2:r2 3:r3 4:r4 5:r5 6:r6 7:r7 8f:r8 9:r9 10:r10 11:r11 12:r12 13:r13",
            "7,8 9,8 9,1 1,10 10,11 11,12 12,13 13,2 2,3 3,4 4,5 5,6 2,6 6,7 7,12",
        ),
    ],
)
def test_kafkas_own_placements_with_javas_generator_come_out(seed: int, factor: int, brokers: str, placed: str) -> None:
    wanted = [tuple(map(int, replicas.split(","))) for replicas in placed.split()]
    assert list(place_striped(brokers_of(brokers), len(wanted), factor, JavaRandom(seed)).values()) == wanted


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[KnownBroker], int, int]:
    racks = st.sampled_from((None, "a", "b", "c", "d"))
    ids = draw(st.lists(st.integers(0, 500), min_size=1, max_size=12, unique=True))
    up = draw(st.sampled_from(ids))
    brokers = [KnownBroker(node_id, draw(racks), fenced=node_id != up and draw(st.booleans())) for node_id in ids]
    return brokers, draw(st.integers(1, 40)), draw(st.integers(1, len(brokers)))


@given(cluster=clusters(), seed=st.integers(0, 1 << 48))
def test_no_broker_is_taken_twice_a_broker_that_is_up_leads_and_the_order_given_plays_no_part(
    cluster: tuple[list[KnownBroker], int, int], seed: int
) -> None:
    brokers, partitions, factor = cluster
    known = {broker.node_id: broker for broker in brokers}
    found = place_striped(brokers, partitions, factor, JavaRandom(seed), first_partition=3)
    assert list(found) == list(range(3, 3 + partitions))
    for replicas in found.values():
        assert len(replicas) == len(set(replicas)) == factor and set(replicas) <= set(known)
        assert not known[replicas[0]].fenced
    assert found == place_striped(brokers[::-1], partitions, factor, JavaRandom(seed), first_partition=3)


@given(
    per_rack=st.integers(1, 3), racks=st.integers(1, 4), rounds=st.integers(1, 3), seed=st.integers(0, 1 << 48),
)  # fmt: skip
def test_racks_of_one_size_lead_alike_until_all_is_shuffled_and_each_partition_has_all_racks(
    per_rack: int, racks: int, rounds: int, seed: int
) -> None:
    brokers = [KnownBroker(number, f"rack{number % racks}") for number in range(per_rack * racks)]
    found = list(place_striped(brokers, rounds * len(brokers), racks, JavaRandom(seed)).values())
    assert all(len({each % racks for each in replicas}) == racks for replicas in found)
    for begin in range(0, len(found), len(brokers)):
        racks_that_lead = Counter(replicas[0] % racks for replicas in found[begin : begin + len(brokers)])
        assert set(racks_that_lead.values()) == {per_rack}


def test_a_fenced_broker_is_taken_only_where_its_rack_has_no_other_left() -> None:
    found = place_striped(brokers_of("1:a 2f:a 3:b 4f:b"), 20, 2, JavaRandom(1))
    assert {frozenset(replicas) for replicas in found.values()} == {frozenset((1, 3))}
    alone = place_striped(brokers_of("1:a 2:a 3:a 4f:b"), 20, 2, JavaRandom(1))
    assert all(4 in replicas[1:] for replicas in alone.values())


def test_one_broker_that_is_up_is_never_shuffled_and_leads_everything() -> None:
    found = place_striped(brokers_of("1 2f"), 50, 1, JavaRandom(3))
    assert set(found.values()) == {(1,)}


def test_a_list_goes_on_where_it_was_when_the_same_epoch_is_entered_again() -> None:
    brokers = BrokerList([3, 1, 2], 1)
    assert [brokers.next(0), brokers.next(0), brokers.next(0), brokers.next(0)] == [2, 3, 1, None]
    assert [brokers.next(4), brokers.next(4)] == [3, 1]


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "error", "said"),
    [
        ("1 2", 1, 0, 38, "Invalid replication factor 0: the replication factor must be positive."),
        ("1f", 0, -1, 38, "Invalid replication factor -1: the replication factor must be positive."),
        ("1f 2f", 1, 3, 38, "All brokers are currently fenced."),
        ("", 1, 1, 38, "All brokers are currently fenced."),
        (
            "1 2f",
            0,
            3,
            38,
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered.",
        ),
        ("1 2", 0, 2, 37, "Number of partitions was set to an invalid non-positive value."),
    ],
)
def test_each_refusal_begins_with_kafkas_words_and_comes_in_kafkas_order(
    brokers: str, partitions: int, factor: int, error: int, said: str
) -> None:
    with pytest.raises(AssignmentError) as caught:
        place_striped(brokers_of(brokers), partitions, factor, JavaRandom(0))
    assert (caught.value.error, str(caught.value).startswith(said)) == (KafkaError(error), True), str(caught.value)
