"""Java's random numbers, and the order of its maps: as OpenJDK 17 gave them, and as upstream's test generator draws."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.simulator.placement.java_random import JavaRandom, hash_map_order
from tests.reconciler.simulator.placement.mock_random import MockRandom

BOUNDS = (100, 100, 8, 1, 3, 1 << 30, (1 << 30) + 1, (1 << 31) - 1, 10, 7)


@pytest.mark.shared(kinds={"MockRandom(17).nextInt(4) x8"})
def test_upstream_s_own_draws_come_out(vector: dict[str, Any]) -> None:
    random = MockRandom()
    assert [random.next_int(4) for _ in range(8)] == json.loads(vector["output"])


@pytest.mark.parametrize(
    ("seed", "drawn", "shuffled"),
    [
        (0, [60, 48, 1, 0, 2, 331840526, 251269761, 1283218719, 4, 1], [1, 3, 5, 0, 6, 8, 9, 4, 2, 7]),
        (42, [30, 63, 5, 0, 0, 1011543762, 595021505, 1519796918, 9, 3], [4, 3, 6, 1, 5, 7, 0, 9, 8, 2]),
        (-1, [13, 25, 0, 0, 2, 645099219, 894294477, 857465478, 5, 6], [5, 1, 3, 9, 6, 4, 7, 0, 2, 8]),
        (1 << 47, [36, 24, 5, 0, 1, 868711438, 108312667, 1325011585, 5, 1], [2, 4, 3, 5, 8, 6, 9, 7, 0, 1]),
    ],
)
def test_a_seed_gives_the_numbers_and_the_shuffle_of_java(seed: int, drawn: list[int], shuffled: list[int]) -> None:
    random, values = JavaRandom(seed), list(range(10))
    assert [random.next_int(bound) for bound in BOUNDS] == drawn
    random.shuffle(values)
    assert values == shuffled


@given(st.integers(), st.integers(1, (1 << 31) - 1))
def test_a_draw_is_below_its_bound(seed: int, bound: int) -> None:
    random = JavaRandom(seed)
    assert all(0 <= random.next_int(bound) < bound for _ in range(20))


def test_a_draw_from_the_incomplete_last_round_of_remainders_is_thrown_away() -> None:
    class Given(JavaRandom):
        def next_bits(self, bits: int) -> int:
            assert bits == 31
            return draws.pop(0)

    last_whole_round = (1 << 31) // 3 * 3
    draws = [last_whole_round, last_whole_round + 1, last_whole_round - 1]
    assert (Given(0).next_int(3), draws) == (2, [])


def test_shuffling_one_value_or_none_draws_nothing() -> None:
    random = JavaRandom(5)
    for values in ([], ["one"]):
        random.shuffle(values)
    assert random.next_int(1000) == JavaRandom(5).next_int(1000)


@pytest.mark.parametrize(
    ("put_in", "walked"),
    [
        (
            [None, "us-east-1c", "us-east-1a", "eu-west-1b", "zone", "rack1", "rack2", "rack3", "日本", "😀"],
            [None, "zone", "rack3", "😀", "us-east-1a", "us-east-1c", "日本", "eu-west-1b", "rack1", "rack2"],
        ),
        # Fourteen names need more buckets than a map begins with.
        (
            [f"rack{number}" for number in range(14)],
            [f"rack{number}" for number in (3, 4, 5, 6, 0, 1, 2, 7, 13, 8, 12, 9, 11, 10)],
        ),
        (["BB", "Aa", "C#"], ["BB", "Aa", "C#"]),  # all three have one hash code
        (["b", "a", "b"], ["a", "b"]),
    ],
)
def test_a_map_is_walked_as_in_java(put_in: list[str | None], walked: list[str | None]) -> None:
    assert hash_map_order(put_in) == walked
