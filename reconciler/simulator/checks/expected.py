"""What an audit of simulated disks must say, replica by replica, from the znodes and the disks' own scan.

Written apart from the case table, in the simplest words, so that the two can be held against each other: a live replica
by its topic ID, what is staged by its record, and what is wanted and nowhere. Source: DESIGN §3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layout.topic import TopicPartition
from logstore.scan import scan_all
from reconciler.desired import DesiredState, MetadataIdentity
from reconciler.simulator.cluster import Oracle, WantedReplica
from reconciler.simulator.zookeeper import ZooKeeper
from reconciler.sources.zookeeper import Znode, assemble
from reconciler.verdicts import Verdict, compare

if TYPE_CHECKING:
    from reconciler.simulator.cluster import Cluster

Row = Mapping[str, Any]


def expected_state(zookeeper: ZooKeeper) -> DesiredState:
    """What a metadata source would say of the cluster: the nodes, through the code that reads a real ZooKeeper."""
    nodes = {}
    for path in zookeeper.nodes.paths():
        node = zookeeper.nodes.get(path)
        nodes[path] = Znode(node.data, node.czxid, 0, node.version)
    return assemble(nodes, MetadataIdentity("zookeeper", "simulated"))


def audit_differences(cluster: Cluster) -> list[str]:
    """Where the audit of a cluster's disks, as they are now, says something else than the znodes do.

    Machines that are off are looked at too; of a disk that failed, or was never formatted, only its log dir is there to
    be judged, which is ABSENT, and never taken for an empty one.
    """
    state, wrong = expected_state(cluster.zookeeper), list[str]()
    for member in cluster.members.values():
        disks, away = member.disks, set[str]()
        for number, log_dir in enumerate(disks.log_dirs):
            if number in disks.offline or disks.is_empty(number):
                away.add(log_dir)
        rows = [row for seen in scan_all(disks.log_dirs, sizes=False, jobs=0) for row in seen.rows.to_pylist()]
        wrong += _differences(state, rows, cluster.truth, cluster.world.clock_of(member.name))
        for row in rows:
            if row["kind"] == "log_dir" and (row["metadata_state"] != "ok") != (row["log_dir"] in away):
                wrong.append(f"{member.name}: the scan calls {row['log_dir']} {row['metadata_state']}")
    return wrong


def differences(rows: Sequence[Row], zookeeper: ZooKeeper, truth: Oracle, now_ms: int) -> list[str]:
    """Where the audit says something else of a broker's disks than the znodes do; one sentence each.

    Args:
        rows: a scan of all log dirs of one broker.
        zookeeper: of the cluster.
        truth: the same, read in another way.
        now_ms: against which due times are held: the broker's time of day.
    """
    return _differences(expected_state(zookeeper), rows, truth, now_ms)


def _differences(state: DesiredState, rows: Sequence[Row], truth: Oracle, now_ms: int) -> list[str]:
    found = list(compare({state.identity.cluster_id or "": state}, rows, now_ms))
    node_id = next((row["node_id"] for row in rows if row["node_id"] is not None), -1)
    copies = Counter(_partition(row) for row in rows if row["kind"] == "live")
    wrong = []
    for judged in found:
        told = judged.observed or judged.wanted or {}
        if judged.observed:
            expected = _verdicts_of_row(judged.observed, truth, node_id, now_ms, copies)
        else:
            expected = _verdicts_of_wanted(told, truth)
        if judged.verdict not in expected:
            where = told.get("name") or f"{told.get('topic')}-{told.get('partition')}"
            wrong.append(f"broker {node_id}: {where} is {judged.verdict}, and {' or '.join(expected)} was expected")
    nowhere = {f"{partition}" for partition in truth.assigned(node_id) if not copies[partition]}
    told_missing = {
        f"{judged.wanted['topic']}-{judged.wanted['partition']}"
        for judged in found
        if judged.observed is None and judged.wanted is not None
    }
    wrong += [
        f"broker {node_id}: {each} is wanted, is nowhere, and is not told of" for each in sorted(nowhere - told_missing)
    ]
    wrong += [f"broker {node_id}: {each} is told of, and is not wanted" for each in sorted(told_missing - nowhere)]
    return wrong


_BY_KIND = {
    "internal": Verdict.OK,
    "foreign": Verdict.FOREIGN,
    "leftover": Verdict.LEFTOVER,
    "checkpoint_entry": Verdict.CHECKPOINT_ENTRY,
}
"""What hangs on nothing else."""


def _verdicts_of_row(
    row: Row, truth: Oracle, node_id: int, now_ms: int, copies: Mapping[TopicPartition, int]
) -> tuple[Verdict, ...]:
    """The verdicts that are right for something on the disk; none: there should be no such thing."""
    kind, state = row["kind"], row["metadata_state"]
    if kind in _BY_KIND:
        return (_BY_KIND[kind],)
    if kind == "log_dir":
        return (Verdict.OK if state == "ok" else Verdict.ABSENT,)
    if kind not in ("staged", "live", "delete"):
        return ()
    if state not in ("ok", "missing", None):
        return (Verdict.DAMAGED,)
    if kind == "delete":
        return (Verdict.MARKED_DELETE,)  # a draft: the engine has replicas made under such a name
    if kind == "staged":
        return (Verdict.STAGED_DUE if row["due_ms"] is not None and row["due_ms"] <= now_ms else Verdict.STAGED,)
    if copies[_partition(row)] > 1:
        return (Verdict.DUPLICATE,)
    if node_id < 0 or not truth.known():
        # Metadata that knows no topic at all speaks for nobody: a cluster that lost it looks the same.
        return (Verdict.NOT_COMPARED,)
    return (_verdict_of_live(_partition(row), row["topic_id"], truth, truth.assigned(node_id)),)


def _verdict_of_live(
    partition: TopicPartition, topic_id: str | None, truth: Oracle, wanted: Mapping[TopicPartition, WantedReplica]
) -> Verdict:
    ids = {name: str(each) for name, each in truth.known().items() if each is not None}
    if topic_id is None:
        # Without an ID only the name can tell; it is written to where the replica is wanted.
        if partition not in wanted:
            return Verdict.NOT_ASSIGNED if partition.topic in truth.known() else Verdict.UNKNOWN_TOPIC
        return Verdict.IN_FLIGHT if wanted[partition].moving else Verdict.NO_ID
    if ids.get(partition.topic) == topic_id:
        if partition not in wanted:
            return Verdict.NOT_ASSIGNED
        return Verdict.IN_FLIGHT if wanted[partition].moving else Verdict.OK
    if topic_id in ids.values():
        return Verdict.RENAMED
    return Verdict.STALE_ID if partition.topic in ids else Verdict.UNKNOWN_TOPIC


def _verdicts_of_wanted(wanted: Row, truth: Oracle) -> tuple[Verdict, ...]:
    """The verdicts that are right for a replica that is wanted and not there."""
    replica = truth.assigned(wanted["node_id"]).get(_partition(wanted))
    if replica is None:
        return ()
    return (Verdict.IN_FLIGHT,) if replica.moving else (Verdict.MISSING,)


def _partition(row: Row) -> TopicPartition:
    return TopicPartition(row["topic"], row["partition"])
