"""Conversions between schemes, crashed and failed at every step on two disks: wholly converted or not at all."""

from __future__ import annotations

import pytest

from layout.scheme import Scheme
from logstore.namespaces import convert
from logstore.store import LogStore
from tests.crash.engine_histories import (
    BY_ID,
    HOUR_MS,
    NAMESPACED,
    NOW_MS,
    OURS,
    TWO,
    Broker,
    Kind,
    history,
    orders,
    wholly_or_not_at_all,
)
from tests.crash.histories import Done, Driver, History

BOUND = 24
"""On combinations at one moment: these histories are the longest, and each step in them is idempotent."""


def convert_history(kind: Kind, scheme: Scheme) -> History:
    """One replica on each disk and one that is staged, which must come back under the new scheme too."""

    def act(store: LogStore, done: Done) -> None:
        convert(store, scheme)
        done("converted")

    broker = Broker(kind).live(orders(0)).live(orders(1), log_dir=TWO).staged(orders(2), NOW_MS + HOUR_MS)
    return history(f"to {scheme}", broker, act)


HISTORIES = [
    wholly_or_not_at_all(scenario)
    for scenario in (
        convert_history(OURS, Scheme.NAMESPACED),
        convert_history(OURS, Scheme.BY_TOPIC_ID),
        convert_history(BY_ID, Scheme.FLAT),
        convert_history(NAMESPACED, Scheme.BY_TOPIC_ID),
    )
]
EACH = pytest.mark.parametrize("scenario", HISTORIES, ids=lambda scenario: scenario.name)


@EACH
def test_whenever_it_crashes_all_disks_are_converted_or_none(scenario: History, crash: Driver) -> None:
    assert crash(scenario, bound=BOUND).cases >= 20


@EACH
def test_whichever_step_fails_all_disks_are_converted_or_none(scenario: History, fail: Driver) -> None:
    assert fail(scenario).steps >= 20


@EACH
def test_when_a_failure_is_followed_by_a_crash_all_disks_are_converted_or_none(
    scenario: History, crash_after_failure: Driver
) -> None:
    assert crash_after_failure(scenario, bound=BOUND).cases >= 20
