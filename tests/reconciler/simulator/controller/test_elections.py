from __future__ import annotations

import pytest

from reconciler.simulator.controller.state_machines import (
    Elected,
    offline_election,
    preferred_election,
    reassignment_election,
    shutdown_election,
)


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "unclean", "elected"),
    [
        ((1, 2, 3), (1, 2, 3), {2, 3}, False, Elected(2, (2, 3))),
        ((1, 2, 3), (3, 2), {2, 3}, False, Elected(2, (3, 2))),
        ((1, 2, 3), (1, 3), {2, 3}, False, Elected(3, (3,))),
        ((1, 2, 3), (1,), {2, 3}, False, None),
        ((1, 2, 3), (1,), {2, 3}, True, Elected(2, (2,))),
        ((1, 2, 3), (1, 3), {2, 3}, True, Elected(3, (3,))),
        ((1, 2, 3), (1, 2, 3), set(), True, None),
    ],
)
def test_when_the_leader_is_away_the_first_live_replica_in_sync_leads(replicas, isr, live, unclean, elected) -> None:
    assert offline_election(replicas, isr, live, unclean=unclean) == elected


@pytest.mark.parametrize(
    ("target", "isr", "live", "elected"),
    [
        ((4, 5), (1, 4, 5), {1, 4, 5}, Elected(4, (1, 4, 5))),
        ((4, 5), (1, 5), {1, 4, 5}, Elected(5, (1, 5))),
        ((4, 5), (1, 4, 5), {1, 5}, Elected(5, (1, 4, 5))),
        ((4, 5), (1,), {1, 4, 5}, None),
    ],
)
def test_a_reassigned_partition_is_led_by_a_replica_that_stays(target, isr, live, elected) -> None:
    assert reassignment_election(target, isr, live) == elected


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "elected"),
    [
        ((1, 2), (2, 1), {1, 2}, Elected(1, (2, 1))),
        ((1, 2), (2,), {1, 2}, None),
        ((1, 2), (2, 1), {2}, None),
        ((), (), {1}, None),
    ],
)
def test_the_preferred_leader_leads_only_if_it_lives_and_is_in_sync(replicas, isr, live, elected) -> None:
    assert preferred_election(replicas, isr, live) == elected


@pytest.mark.parametrize(
    ("isr", "live", "leaving", "elected"),
    [
        ((1, 2, 3), {1, 2, 3}, {1}, Elected(2, (2, 3))),
        ((1, 2, 3), {1, 2, 3}, {1, 2}, Elected(3, (3,))),
        ((1, 2, 3), {1, 3}, {1}, Elected(3, (2, 3))),
        ((1,), {1, 2, 3}, {1}, None),
    ],
)
def test_before_a_broker_stops_another_in_sync_leads(isr, live, leaving, elected) -> None:
    assert shutdown_election((1, 2, 3), isr, live, leaving) == elected
