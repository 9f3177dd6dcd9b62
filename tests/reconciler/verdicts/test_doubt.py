"""The condition for each doubt, over the three times of a row."""

from __future__ import annotations

import pytest

from reconciler.verdicts import CLOCK_SKEW_MS, DOUBTS, LATEST, Doubt, Times, doubt_of

NOW_MS = 1_700_000_000_000
CHANGED, SCANNED = Doubt.CHANGED_SINCE_METADATA, Doubt.SCANNED_BEFORE_METADATA


@pytest.mark.parametrize(
    ("open_to", "times", "doubt"),
    [
        (CHANGED, Times(modified_ms=NOW_MS + 1, as_of_ms=NOW_MS, scanned_ms=20), CHANGED),
        (CHANGED, Times(modified_ms=NOW_MS, as_of_ms=NOW_MS, scanned_ms=20), CHANGED),
        (CHANGED, Times(modified_ms=NOW_MS - CLOCK_SKEW_MS + 1, as_of_ms=NOW_MS, scanned_ms=20), CHANGED),
        (CHANGED, Times(modified_ms=NOW_MS - CLOCK_SKEW_MS, as_of_ms=NOW_MS, scanned_ms=20), None),
        (CHANGED, Times(modified_ms=-1, as_of_ms=10, scanned_ms=20), None),
        (CHANGED, Times(modified_ms=11, as_of_ms=-1, scanned_ms=20), None),
        (SCANNED, Times(as_of_ms=21, scanned_ms=20), SCANNED),
        (SCANNED, Times(as_of_ms=20, scanned_ms=20), None),
        (SCANNED, Times(as_of_ms=21, scanned_ms=LATEST), None),
        (SCANNED, Times(as_of_ms=-1, scanned_ms=20), None),
        (None, Times(modified_ms=11, as_of_ms=10, scanned_ms=5), None),
    ],
)
def test_a_verdict_is_in_the_doubt_that_its_case_is_open_to_when_one_side_is_too_old(
    open_to: Doubt | None, times: Times, doubt: Doubt | None
) -> None:
    assert doubt_of(open_to, times) == doubt


def test_every_doubt_has_a_condition_and_none_holds_where_no_time_is_known() -> None:
    assert set(DOUBTS) == set(Doubt)
    assert not any(condition(Times()) for condition in DOUBTS.values())
