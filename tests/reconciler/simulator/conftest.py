"""Small clusters, without faults unless asked for, which are closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore import DELETE_DELAY, STALE_DELAY, Settings
from reconciler.simulator.cluster import Cluster, ClusterSettings
from reconciler.simulator.controller import FewerPartitionsSettings
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.machine import BrokerSettings

NewCluster = Callable[..., Cluster]


@pytest.fixture
def new_cluster(tmp_path: Path) -> Iterator[NewCluster]:
    """Make a started cluster of some brokers; further arguments become settings of its brokers."""
    made: list[Cluster] = []

    def make(brokers: int = 3, *, seed: int = 7, log_dirs: int = 2, faults: str = "none", **broker: Any) -> Cluster:
        broker.setdefault("delays", Settings({"": {STALE_DELAY: 300_000, DELETE_DELAY: 60_000}}))
        settings = ClusterSettings(
            brokers,
            log_dirs,
            FaultRates.parse(faults),
            BrokerSettings(**broker),
            fewer_partitions=FewerPartitionsSettings(enabled=True, interval_ms=2_000),
        )
        made.append(Cluster(settings, seed=seed, folder=str(tmp_path / f"cluster-{len(made)}")))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.close()
