"""One history from one seed: a cluster, a workload and faults; every event and the final state are checked.

A seed always gives the same history, so a history that fails can be played again with less, to report the least that
still fails (:mod:`reconciler.simulator.runs.shrink`). Source: the simulator's own docstring.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from layout.scheme import Scheme
from logstore import DELETE_DELAY, STALE_DELAY, LogStoreError, Settings
from logstore.fs import Directory, Disk, make_directory
from reconciler.errors import ReconcilerError
from reconciler.simulator.checks import (
    Invariants,
    SecondOpinions,
    check_audit,
    check_converged,
    check_full_changes_nothing,
    converge,
    expected_state,
    let_delays_pass,
)
from reconciler.simulator.cluster import Cluster, ClusterSettings
from reconciler.simulator.controller import ControllerSettings, FewerPartitionsSettings
from reconciler.simulator.drills import drill
from reconciler.simulator.kernel import START_MS, FaultRates
from reconciler.simulator.machine import BrokerSettings
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs.coverage import recoveries_counted
from reconciler.simulator.runs.runner import play
from reconciler.simulator.runs.scenario import Scenario
from reconciler.simulator.runs.swarm import NOTHING, LeftOut, Swarm
from reconciler.simulator.runs.workload import Workload
from reconciler.simulator.zookeeper import AuthorizerSettings
from reconciler.sources import save_state

_FAULTS_MS = 300
"""A history is short, so faults are drawn often."""

CLUSTER_ID = "simulated-cluster-0001"

_SCENARIO_SETTINGS = {
    "delete.topic.partition.enable": "true",
    "delete.topic.partition.interval.delay.ms": "2000",
}

METADATA_FOLDER = "metadata"
"""The folder beside the brokers' that holds the cluster's desired state, when the disks are kept."""

_DELAY_MS = 300_000
"""How long a stale replica stays staged in a history: long compared with its faults, short compared with its end."""

_NAMES = re.compile(r"\S*\d\S*")
"""What differs between two failures of one kind: partitions, brokers, IDs, times."""

_STEPS_PER_CHANGE = 5
"""Steps of a history for each change or request of the drill beside it."""

_AUDIT_STEPS = 50
"""The number of steps between audits of the disks in the middle of a history."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a history.

    Attributes:
        steps: events from the moment at which the cluster had formed; fewer than asked for when an invariant did not
            hold.
        broken: why it failed; None: all invariants held.
        promise: that is broken: why, without what has numbers in it, so without names and times; empty: none is.
        digest: of the history and of the trace of its events: the same for the same seed.
        faults: kind → how often it happened.
        reached: operation, fault, verdict, answer or way of recovery → how often the history came to it.
        events: the number of all events, including those while the cluster forms and comes to rest.
        simulated_ms: the true time that passed.
        actions: how many the workload drew, those that were left out with them.
        left_out: of what the seed draws.
    """

    seed: int
    steps: int
    broken: str | None
    lines: tuple[str, ...]
    digest: str
    faults: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    simulated_ms: int = 0
    reached: Mapping[str, int] = field(default_factory=dict)
    promise: str = ""
    actions: int = 0
    left_out: LeftOut = NOTHING


def history_settings(
    brokers: int = 5,
    rates: FaultRates | None = None,
    *,
    durable: bool = False,
    placement: Placement = Placement.ZOOKEEPER,
) -> ClusterSettings:
    """The cluster of a history, with the default faults if no rates are given.

    ``durable``: every record is synced before it is acknowledged, and no disk is lost or replaced.
    """
    rates = FaultRates.default() if rates is None else rates
    if durable:
        rates = replace(rates, disk_replaced=0.0)
    return ClusterSettings(
        brokers=brokers,
        rates=rates,
        fault_interval_ms=_FAULTS_MS,
        broker=BrokerSettings(
            delays=Settings({"": {STALE_DELAY: _DELAY_MS, DELETE_DELAY: 60_000}}),
            flush_records=1 if durable else None,
            cluster_id=CLUSTER_ID,
            scheme=Scheme.NAMESPACED,
        ),
        controller=ControllerSettings(placement=placement),
        fewer_partitions=FewerPartitionsSettings(enabled=True, interval_ms=2_000),
    )


def play_scenario(
    scenario: Scenario, seed: int = 0, *, folder: str | None = None, placement: Placement | None = None
) -> RunOutcome:
    """Play a scenario, with no faults but its own; the seed determines latencies and topic IDs.

    The disks stay in ``folder``, with the cluster's metadata; None: nowhere. ``placement`` goes before the scenario's
    own; None: that one counts.
    """
    authorizer = None if scenario.super_users is None else AuthorizerSettings(scenario.super_users)
    settings = ClusterSettings(
        scenario.brokers,
        scenario.log_dirs,
        broker=BrokerSettings(cluster_id=CLUSTER_ID, scheme=scenario.scheme, authorizer=authorizer),
        controller=ControllerSettings(placement=placement or scenario.placement),
        fewer_partitions=FewerPartitionsSettings.of(_SCENARIO_SETTINGS | dict(scenario.settings)),
        racks=scenario.racks,
        older_brokers=scenario.older_brokers,
    )
    cluster, broken = Cluster(settings, seed=seed, folder=folder), None
    try:
        play(scenario, cluster)
    except (ReconcilerError, LogStoreError) as error:
        broken = str(error)
    finally:
        _keep(cluster, folder)
        cluster.close()
    return _outcome(cluster, len(scenario.lines), broken)


def simulate(
    seed: int,
    steps: int,
    settings: ClusterSettings | None = None,
    *,
    folder: str | None = None,
    left_out: LeftOut = NOTHING,
) -> RunOutcome:
    """Play one history of so many events, bring it to rest, and check it.

    The steps count from the moment at which the cluster has formed. Without settings there are five brokers and the
    default faults. The disks stay in ``folder``; None: nowhere.
    """
    settings = left_out.applied(Swarm.of(seed).applied(settings or history_settings()))
    cluster = Cluster(settings, seed=seed, folder=folder)
    workload = Workload(cluster, left_out)
    done, broken, promise = 0, None, ""
    try:
        with recoveries_counted(cluster.world.history.reach):
            invariants = Invariants(cluster)
            features = Swarm.of(seed).features - left_out.features
            opinions = SecondOpinions(cluster, watches="watch" in features, audits="audit" in features)
            cluster.start()
            workload.begin()
            while done < steps and cluster.world.step():
                done += 1
                invariants.look()
                if done % _AUDIT_STEPS == 0:
                    check_audit(cluster)
                    opinions.ask()
            workload.end()
            converge(cluster, invariants)
            check_converged(cluster, durable=settings.broker.flush_records == 1 and not settings.rates.disk_replaced)
            opinions.ask()
            check_full_changes_nothing(cluster, invariants)
            let_delays_pass(cluster, invariants)
        drill(seed, cluster.world.history.reach, steps // _STEPS_PER_CHANGE)
    except (ReconcilerError, LogStoreError) as error:
        broken, promise = str(error), _NAMES.sub("…", str(error))
    finally:
        _keep(cluster, folder)
        cluster.close()
    outcome = _outcome(cluster, done, broken)
    return replace(outcome, promise=promise, actions=workload.actions, left_out=left_out)


def _keep(cluster: Cluster, folder: str | None) -> None:
    """Save the cluster's desired state beside the disks, for an audit."""
    if folder is not None:
        with Directory.open(folder) as opened:
            make_directory(Disk(), opened, METADATA_FOLDER).close()
        save_state(expected_state(cluster.zookeeper), os.path.join(folder, METADATA_FOLDER))


def _outcome(cluster: Cluster, done: int, broken: str | None) -> RunOutcome:
    world = cluster.world
    return RunOutcome(
        world.seed,
        done,
        broken,
        tuple(world.history.lines),
        f"{world.history.digest} {world.history.trace_digest}",
        dict(sorted(world.faults.counts.items())),
        world.events,
        world.now_ms - START_MS,
        dict(sorted(world.history.reached.items())),
    )
