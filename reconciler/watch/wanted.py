"""The part of desired states that is about some brokers, picked by topic, and its differences from another state.

A fleet's metadata has millions of replicas and one machine has some thousands of them. So only replicas of the given
brokers are kept, in Arrow, at about 60 bytes each. Nothing is compared with a disk here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from logstore.rows import utf8
from reconciler.desired import BrokerKey, DesiredState, in_memory

_COLUMNS = ("topic", "topic_id", "partition", "node_id", "directory_id", "adding", "removing")
"""Columns that a verdict depends on; leaders, epochs and in-sync replicas are left out, as they change all the time."""


class WantedReplicas:
    """The replicas that desired states want on some brokers. Immutable."""

    def __init__(self, states: Mapping[str, DesiredState], brokers: Collection[BrokerKey]) -> None:
        """Take states by cluster ID, as :func:`reconciler.desired.by_cluster` returns them.

        Raises:
            MetadataError: a saved state cannot be read any more.
        """
        self._states = dict(states)
        self._replicas = {
            cluster: _only(state, [broker.node for broker in brokers if broker.cluster == cluster])
            for cluster, state in states.items()
        }

    def of_broker(self, broker: BrokerKey) -> Iterator[tuple[str, int]]:
        """Yield topic and partition of every replica that this broker should hold."""
        table = self._replicas.get(broker.cluster)
        if table is None or broker.node < 0:
            return
        table = table.filter(pc.equal(table["node_id"], broker.node))
        yield from zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True)

    def about(self, cluster: str, names: Collection[str], topic_ids: Collection[str]) -> dict[str, DesiredState]:
        """Return a cluster's state restricted to some topics, by name or by ID; empty where the cluster has no state.

        A state without any topic judges no replica (``scope``), so a state with topics keeps at least one.
        """
        state = self._states.get(cluster)
        if state is None:
            return {}
        topics = state.topics.filter(_about(state.topics, names, topic_ids))
        if not topics.num_rows:
            topics = state.topics.slice(0, 1)
        replicas = self._replicas[cluster]
        return {cluster: replace(state, replicas=replicas.filter(_about(replicas, names, topic_ids)), topics=topics)}

    def difference(self, other: WantedReplicas) -> frozenset[str] | None:
        """Return the names and IDs of topics that differ between the two; None: anything may differ."""
        if _scopes(self._states) != _scopes(other._states):
            return None
        touched: set[str] = set()
        for cluster, state in self._states.items():
            before = _digests(state.topics, self._replicas[cluster])
            after = _digests(other._states[cluster].topics, other._replicas[cluster])
            for topic in {topic for topic, _ in before.items() ^ after.items()}:
                topic_ids = (before.get(topic, ("", 0))[0], after.get(topic, ("", 0))[0])
                touched.update((topic, *filter(None, topic_ids)))
        return frozenset(touched)


def _only(state: DesiredState, nodes: list[int]) -> pa.Table:
    table = in_memory(state.replicas)
    return table.filter(pc.is_in(table["node_id"], pa.array(nodes, pa.int32()))).combine_chunks()


def _about(table: pa.Table, names: Collection[str], topic_ids: Collection[str]) -> pa.ChunkedArray:
    by_name = pc.is_in(table["topic"], pa.array(map(utf8, names), pa.string()))
    return pc.or_(by_name, pc.fill_null(pc.is_in(table["topic_id"], pa.array(topic_ids, pa.string())), False))


def _scopes(states: Mapping[str, DesiredState]) -> dict[str, tuple[object, ...]]:
    """Return the fields that decide which brokers each state covers, and how completely."""
    return {
        cluster: (state.identity.completeness, state.identity.scope, state.topics.num_rows > 0)
        for cluster, state in states.items()
    }


def _digests(topics: pa.Table, replicas: pa.Table) -> dict[str, tuple[str, int]]:
    """Return topic name → its ID and a hash over its replicas on these brokers, independent of their order."""
    pairs = zip(topics["topic"].to_pylist(), topics["topic_id"].to_pylist(), strict=True)
    digests = {topic: (topic_id or "", 0) for topic, topic_id in pairs}
    columns = [replicas[name].to_pylist() for name in _COLUMNS]
    for row in zip(*columns, strict=True):
        topic_id, digest = digests.get(row[0], ("", 0))
        digests[row[0]] = topic_id, digest ^ hash(row)
    return digests
