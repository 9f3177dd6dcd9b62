"""What the histories of many seeds play: every feature is off somewhere, and what is drawn hangs on the seed alone."""

from __future__ import annotations

from logstore import DELETE_DELAY, STALE_DELAY
from reconciler.simulator.runs import history_settings
from reconciler.simulator.runs.swarm import FEATURES, Swarm


def test_every_feature_is_on_in_most_seeds_and_off_in_some() -> None:
    drawn = [Swarm.of(seed) for seed in range(300)]
    for feature in FEATURES:
        assert 0.6 < sum(feature in each.features for each in drawn) / len(drawn) < 0.9, feature
    assert len({each.features for each in drawn}) > 250
    assert {each.wide for each in drawn} > {0, 500}


def test_the_same_seed_draws_the_same() -> None:
    assert Swarm.of(7) == Swarm.of(7) != Swarm.of(8)


def test_delays_and_log_dirs_of_a_cluster_follow_and_nothing_else() -> None:
    swarm, given = Swarm.of(3), history_settings(4, durable=True)
    broker = swarm.applied(given).broker
    assert (broker.delays.of("orders", STALE_DELAY), broker.delays.of("orders", DELETE_DELAY)) == (
        swarm.stale_ms,
        swarm.deleted_ms,
    )
    assert (broker.purge_ms, broker.directory_ids) == (swarm.purge_ms, swarm.directory_ids)
    assert (broker.flush_records, broker.scheme) == (given.broker.flush_records, given.broker.scheme)


def test_replicas_move_only_where_log_dirs_have_ids() -> None:
    drawn = [Swarm.of(seed) for seed in range(100)]
    assert all(each.directory_ids for each in drawn if "move_disk" in each.features)
    assert not all(each.directory_ids for each in drawn)
