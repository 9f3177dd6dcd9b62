"""Which metadata speaks for which broker: the question that comes before any comparison.

Compared with another cluster's metadata, every replica looks stale. So a cluster is judged only by metadata that names
the same cluster.id, or by metadata that names none where only one cluster was scanned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from reconciler.desired.state import Completeness, DesiredState
from reconciler.errors import RefusedError


class BrokerKey(NamedTuple):
    """A broker as its log dirs name it; cluster "" and node -1 stand for log dirs without an identity."""

    cluster: str
    node: int


class RegisteredLogDir(NamedTuple):
    """A log dir that a broker registered with its controller."""

    cluster: str
    node: int
    directory_id: str


class JudgedBroker(NamedTuple):
    """A broker that some metadata speaks for."""

    cluster: str
    node: int
    complete: bool
    """A replica that it does not mention is not wanted."""
    as_of_ms: int | None = None
    """As of when it speaks, ms since 1970; None: it does not know."""


def by_cluster(states: Sequence[DesiredState], clusters: Collection[str]) -> dict[str, DesiredState]:
    """Assign each desired state to the cluster that it speaks for.

    ``clusters``: the cluster IDs that the scanned log dirs name.

    Raises:
        RefusedError: two states for one cluster; a state that names no cluster where several were scanned; or no
            state for any cluster that was scanned.
    """
    named = sorted(cluster for cluster in clusters if cluster)
    result: dict[str, DesiredState] = {}
    for state in states:
        cluster = state.identity.cluster_id
        if cluster is None:
            if len(named) > 1:
                raise RefusedError(
                    f"{state.identity.location} names no cluster.id, and the log dirs belong to {len(named)} clusters "
                    f"({', '.join(named[:5])}): audit one cluster at a time"
                )
            cluster = named[0] if named else ""
        if cluster in result:
            raise RefusedError(
                f"two metadata sources speak for cluster {cluster or 'without an ID'}: "
                f"{result[cluster].identity.location} and {state.identity.location}; give one of them"
            )
        result[cluster] = state
    if result and named and not set(result) & set(named):
        raise RefusedError(
            f"the metadata is of cluster {', '.join(sorted(result))}, the log dirs are of cluster "
            f"{', '.join(named[:5])}: give the metadata of the cluster that wrote these log dirs"
        )
    return result


def is_own_copy(state: DesiredState, brokers: Collection[BrokerKey]) -> bool:
    """Whether metadata is the own copy of one of these brokers, which does not run: it ends where the broker stopped.

    A broker keeps a copy of the cluster's metadata, which ends with it. What was deleted, re-created or moved while it
    was down is not in the copy, and its replicas look as wanted as on the day it stopped. A controller is no broker,
    and its metadata is the cluster's. So is that of a broker which is also the only voter: while it does not run,
    nothing is deleted, created or moved. But what it decided last is not in a copy that ends early, because its log was
    cut or damaged. A copy of a running broker's disk has a free lock too, and says no more.

    ``brokers``: whose log dirs are judged by it.
    """
    identity = state.identity
    return (
        identity.keeper is not None
        and not identity.keeper_runs
        and not (identity.keeper_decides and not identity.ends_early)
        and any(broker.node == identity.keeper and broker.cluster == identity.cluster_id for broker in brokers)
        and identity.keeper in state.brokers.column("node_id").to_pylist()
    )


def speaking(states: dict[str, DesiredState], brokers: Iterable[BrokerKey]) -> list[JudgedBroker]:
    """List the scanned brokers that some state speaks for, in order.

    A state with a scope (the one broker that a LeaderAndIsr request was sent to) does not speak for other brokers. A
    state without any topic speaks for no broker: a cluster that lost its metadata looks the same, and every replica on
    its disks would look stale.
    """
    result = []
    for broker in sorted(set(brokers)):
        state = states.get(broker.cluster)
        if state is None or broker.node < 0 or not state.topics.num_rows:
            continue
        scope = state.identity.scope
        if scope is None or broker.node in scope:
            identity = state.identity
            complete = identity.completeness is Completeness.FULL
            result.append(JudgedBroker(broker.cluster, broker.node, complete, identity.as_of_ms))
    return result


def registered_log_dirs(states: dict[str, DesiredState]) -> list[RegisteredLogDir]:
    """List the log dirs that the brokers of each cluster registered, in order; none before Kafka 3.7."""
    return sorted(
        RegisteredLogDir(cluster, broker["node_id"], directory_id)
        for cluster, state in states.items()
        for broker in state.brokers.to_pylist()
        for directory_id in broker["directory_ids"] or ()
    )
