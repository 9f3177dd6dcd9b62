"""What an audit of simulated disks must say, replica by replica, from the znodes and the disks' own scan.

Written apart from the case table, in the simplest words, so that the two can be held against each other: a live replica
by its topic ID, what is staged by its record, and what is wanted and nowhere. Source: DESIGN §3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layout.topic import TopicPartition
from reconciler.compare import compare
from reconciler.desired import DesiredState, MetadataIdentity
from reconciler.simulator.truth import Truth, Wanted
from reconciler.simulator.zookeeper.tree import ZooKeeper
from reconciler.sources.jute import Znode
from reconciler.sources.zookeeper_state import assemble
from reconciler.verdicts import Verdict

Row = Mapping[str, Any]


def desired(zookeeper: ZooKeeper) -> DesiredState:
    """What a metadata source would say of the cluster: the nodes, through the code that reads a real ZooKeeper."""
    nodes = {}
    for path in zookeeper.nodes.paths():
        node = zookeeper.nodes.get(path)
        nodes[path] = Znode(node.data, node.czxid, 0, node.version)
    return assemble(nodes, MetadataIdentity("zookeeper", "simulated"))


def differences(rows: Sequence[Row], zookeeper: ZooKeeper, truth: Truth, now_ms: int) -> list[str]:
    """Where the audit says something else of a broker's disks than the znodes do; one sentence each.

    Args:
        rows: a scan of all log dirs of one broker.
        zookeeper: of the cluster.
        truth: the same, read in another way.
        now_ms: against which due times are held: the broker's time of day.
    """
    state = desired(zookeeper)
    found = list(compare({state.identity.cluster_id or "": state}, rows, now_ms))
    node_id = next((row["node_id"] for row in rows if row["node_id"] is not None), -1)
    wrong = []
    for judged in found:
        told = judged.observed or judged.wanted or {}
        expected = _of_row(judged.observed, truth, node_id, now_ms) if judged.observed else _of_wanted(told, truth)
        if expected is not None and judged.verdict not in expected:
            where = told.get("name") or f"{told.get('topic')}-{told.get('partition')}"
            wrong.append(f"broker {node_id}: {where} is {judged.verdict}, and {' or '.join(expected)} was expected")
    missing = {
        f"{partition}"
        for partition in truth.on(node_id)
        if not any(row["kind"] == "live" and _partition(row) == partition for row in rows)
    }
    told_missing = {
        f"{judged.wanted['topic']}-{judged.wanted['partition']}"
        for judged in found
        if judged.observed is None and judged.wanted is not None
    }
    wrong += [f"broker {node_id}: {each} is wanted, is nowhere, and is not told of" for each in missing - told_missing]
    return wrong


def _of_row(row: Row, truth: Truth, node_id: int, now_ms: int) -> tuple[Verdict, ...] | None:
    """The verdicts that are right for something on the disk; None: this knows nothing of it."""
    if row["kind"] == "staged":
        return (Verdict.STAGED_DUE,) if (row["due_ms"] or 0) <= now_ms else (Verdict.STAGED,)
    if row["kind"] != "live" or row["metadata_state"] != "ok":
        return None
    return tuple(_of_live(_partition(row), row["topic_id"], truth, truth.on(node_id)))


def _of_live(
    partition: TopicPartition, topic_id: str, truth: Truth, wanted: Mapping[TopicPartition, Wanted]
) -> Iterator[Verdict]:
    ids = {name: str(each) for name, each in truth.known().items()}
    if partition in wanted and topic_id == ids.get(partition.topic):
        yield Verdict.IN_FLIGHT if wanted[partition].moving else Verdict.OK
    elif ids.get(partition.topic) == topic_id:
        yield Verdict.NOT_ASSIGNED
    elif topic_id in ids.values():
        yield Verdict.RENAMED
    elif partition.topic in ids:
        yield Verdict.STALE_ID
    else:
        yield Verdict.UNKNOWN_TOPIC


def _of_wanted(wanted: Row, truth: Truth) -> tuple[Verdict, ...]:
    """The verdicts that are right for a replica that is wanted and not there."""
    replicas = truth.wanted().get(TopicPartition(wanted["topic"], wanted["partition"]), ())
    moving = any(each.node_id == wanted["node_id"] and each.moving for each in replicas)
    return (Verdict.IN_FLIGHT,) if moving else (Verdict.MISSING,)


def _partition(row: Row) -> TopicPartition:
    return TopicPartition(row["topic"], row["partition"])
