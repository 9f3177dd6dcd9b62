"""The first known difference, in the audit's order, decides on the better copy; a tie is never broken."""

from __future__ import annotations

import pytest

from reconciler.verdicts import Copy, Ranking, rank_copies

A, B = "a" * 21 + "A", "b" * 21 + "A"


def copy(
    name: str, topic_id: str = A, epoch: int | None = 3, offset: int | None = 7, assigned: bool = False
) -> Copy[str]:
    return Copy(name, topic_id, epoch, offset, assigned)


def best(*copies: Copy[str], wanted: str = A) -> str:
    found = rank_copies(copies, wanted)
    assert isinstance(found, Ranking), found
    assert {worse.of for worse, _ in found.worse} == {each.of for each in copies} - {found.best.of}
    return found.best.of


def undecided(*copies: Copy[str], wanted: str = A) -> str:
    found = rank_copies(copies, wanted)
    assert isinstance(found, str), found
    return found


@pytest.mark.parametrize(
    "worse",
    [
        copy("worse", B, 99, 99, True),
        copy("worse", "", 99, 99, True),
        copy("worse", A, 2, 99, True),
        copy("worse", A, -1, 99, True),
        copy("worse", A, 3, 6, True),
        copy("worse", A, 3, -1, True),
    ],
)
def test_the_topic_id_goes_before_the_epoch_and_the_epoch_before_the_offset(worse: Copy[str]) -> None:
    assert best(worse, copy("better")) == best(copy("better"), worse) == "better"


def test_the_assigned_log_dir_decides_between_copies_that_are_alike() -> None:
    assert best(copy("one"), copy("two", assigned=True)) == "two"


def test_copies_that_are_alike_in_everything_are_not_ranked() -> None:
    assert "alike" in undecided(copy("one"), copy("two"))


@pytest.mark.parametrize("other", [copy("other", epoch=None), copy("other", offset=None)])
def test_a_figure_that_is_not_known_decides_nothing(other: Copy[str]) -> None:
    assert "cannot be read" in undecided(copy("one"), other)


def test_a_figure_that_comes_after_the_difference_need_not_be_known() -> None:
    assert best(copy("one", epoch=4, offset=None), copy("two", epoch=3)) == "one"


def test_copies_of_different_topics_of_which_neither_is_wanted_are_not_ranked() -> None:
    assert "which is wanted" in undecided(copy("one"), copy("two", B), wanted="")
    assert f"neither is the wanted {'c' * 22}" in undecided(copy("one", epoch=9), copy("two", B), wanted="c" * 22)


def test_without_metadata_copies_of_one_topic_are_ranked_by_what_they_hold() -> None:
    assert best(copy("one", epoch=4), copy("two"), wanted="") == "one"


def test_of_three_copies_the_best_must_be_better_than_each() -> None:
    assert best(copy("one", epoch=1), copy("two", epoch=2), copy("three", epoch=0)) == "two"
    assert "alike" in undecided(copy("one", epoch=1), copy("two"), copy("three"))
