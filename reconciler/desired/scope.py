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


class Registered(NamedTuple):
    """A log dir that a broker registered with its controller."""

    cluster: str
    node: int
    directory_id: str


class Speaks(NamedTuple):
    """A broker that some metadata speaks for; ``complete``: a replica that it does not mention is not wanted."""

    cluster: str
    node: int
    complete: bool


def by_cluster(states: Sequence[DesiredState], clusters: Collection[str]) -> dict[str, DesiredState]:
    """Assign each desired state to the cluster that it speaks for.

    Args:
        states: of the metadata sources.
        clusters: the cluster IDs that the scanned log dirs name.

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


def speaking(states: dict[str, DesiredState], brokers: Iterable[BrokerKey]) -> list[Speaks]:
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
            result.append(Speaks(broker.cluster, broker.node, state.identity.completeness is Completeness.FULL))
    return result


def registered_log_dirs(states: dict[str, DesiredState]) -> list[Registered]:
    """List the log dirs that the brokers of each cluster registered, in order; none before Kafka 3.7."""
    return sorted(
        Registered(cluster, broker["node_id"], directory_id)
        for cluster, state in states.items()
        for broker in state.brokers.to_pylist()
        for directory_id in broker["directory_ids"] or ()
    )
