"""Which combinations of lost and kept are tried."""

from __future__ import annotations

import math
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tests.crash.crash_states import selections


@given(st.lists(st.integers(1, 4), max_size=4))
def test_few_combinations_are_all_tried_once_and_those_that_lose_least_come_first(options: list[int]) -> None:
    found = selections(options)
    assert len(found) == len(set(found)) == math.prod(options)
    assert all(choice < ways for selected in found for choice, ways in zip(selected, options, strict=True))
    losses = [sum(map(bool, selected)) for selected in found]
    assert losses == sorted(losses)


@given(st.lists(st.integers(2, 4), min_size=9, max_size=14), st.integers(1, 200))
def test_of_too_many_combinations_those_that_matter_most_are_tried(options: list[int], bound: int) -> None:
    found = selections(options, bound)
    count = len(options)
    kept = [tuple(place for place in range(count) if not selected[place]) for selected in found]
    assert len(found) == len(set(found))
    assert all(choice < ways for selected in found for choice, ways in zip(selected, options, strict=True))
    assert {(), tuple(range(count))} <= set(kept)
    for place in range(count):
        assert (place,) in kept
        assert tuple(range(place)) in kept
        alone_lost = {selected[place] for selected in found if sum(map(bool, selected)) == 1}
        assert set(range(1, options[place])) <= alone_lost
    if bound == 200:
        assert sum(count - len(each) == 2 for each in kept) > 20


def test_pairs_are_tried_as_far_as_the_bound_has_room() -> None:
    found = selections([2] * 9, 400)
    lost = {tuple(place for place in range(9) if selected[place]) for selected in found}
    assert set(combinations(range(9), 2)) <= lost
