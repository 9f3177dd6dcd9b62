"""The releases that are known, and the release behind a level of ``metadata.version``."""

from __future__ import annotations

import pytest

from layout.errors import InvalidQuestionError
from reconciler.preflight import NEWEST_RELEASE, KafkaRelease, check_known, release_of_level


@pytest.mark.parametrize("text", ["0.11", "1.1", "2.8.2", "3.0", "3.9.2", "4.0", "4.3.1"])
def test_a_release_that_was_is_taken(text: str) -> None:
    check_known(KafkaRelease.parse(text))


@pytest.mark.parametrize("text", ["4.4", "7.0", "9.9"])
def test_a_release_of_which_nobody_knows_is_refused_with_the_newest_known_one(text: str) -> None:
    with pytest.raises(InvalidQuestionError, match=r"is not known here; the newest known release is 4\.3, and --kafka"):
        check_known(KafkaRelease.parse(text))


@pytest.mark.parametrize(("text", "last"), [("3.10", "3.9"), ("2.9", "2.8"), ("1.2", "1.1"), ("0.12", "0.11")])
def test_a_release_that_never_was_is_refused_with_the_last_of_its_line(text: str, last: str) -> None:
    with pytest.raises(InvalidQuestionError, match=f"there is no Kafka {text}: {last} is the last of its line"):
        check_known(KafkaRelease.parse(text))


@pytest.mark.parametrize(
    ("level", "release"),
    [(1, "3.0"), (3, "3.2"), (7, "3.3"), (8, "3.4"), (11, "3.5"), (14, "3.6"), (19, "3.7"), (20, "3.8"), (21, "3.9"),
     (25, "4.0"), (27, "4.1"), (29, "4.2"), (30, "4.3")],
)  # fmt: skip
def test_a_level_names_the_oldest_release_that_has_it(level: int, release: str) -> None:
    assert release_of_level(level) == KafkaRelease.parse(release)


@pytest.mark.parametrize("level", [-1, 0, 31, 1000])
def test_a_level_that_no_known_release_has_names_none(level: int) -> None:
    assert release_of_level(level) is None
    assert KafkaRelease.parse("4.3") == NEWEST_RELEASE
