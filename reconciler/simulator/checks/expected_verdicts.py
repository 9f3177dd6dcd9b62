"""The verdicts that an audit of simulated disks must give, from the znodes and the disks' own scan.

Independent of the case table, in the simplest form, so that the two can be compared: a live replica by its topic ID, a
staged one by its record, and wanted replicas that are missing. Source: DESIGN §3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from layout.topic import TopicPartition
from logstore.scan import scan_all
from reconciler.desired import DesiredState, MetadataIdentity
from reconciler.simulator.checks.invariants import BrokenInvariantError
from reconciler.simulator.cluster import Cluster, ExpectedReplica, Member, Oracle
from reconciler.simulator.zookeeper import ZooKeeper
from reconciler.sources.zookeeper import Znode, assemble
from reconciler.verdicts import Verdict, compare

Row = Mapping[str, Any]

_COLUMNS = [
    *("cluster_id", "node_id", "directory_id", "log_dir", "name", "kind", "topic", "partition", "topic_id"),
    *("metadata_state", "problem", "due_ms"),
]
"""The columns of a scan that a verdict depends on; making rows of all of them would take twice as long."""


class Found(NamedTuple):
    """One verdict that an audit gave: the row of the scan, or, where it lies on no disk, what the metadata wants."""

    verdict: str
    observed: Row | None
    wanted: Row | None


def scanned_rows(member: Member) -> list[dict[str, Any]]:
    """Scan the disks of a machine, and give the columns that verdicts depend on.

    A disk that was not changed since its last scan has the same rows.
    """
    disks, known = member.disks, member.scanned
    versions = {path: disks.version(number) for number, path in enumerate(disks.log_dirs)}
    changed = [path for path, version in versions.items() if path not in known or known[path][0] != version]
    for each in scan_all(changed, sizes=False, jobs=0):
        known[each.log_dir] = versions[each.log_dir], each.rows.select(_COLUMNS).to_pylist()
    return [row for path in versions for row in known[path][1]]


def expected_state(zookeeper: ZooKeeper) -> DesiredState:
    """The desired state of the cluster: its nodes, through the code that reads a real ZooKeeper."""
    nodes = {}
    for path in zookeeper.nodes.paths():
        node = zookeeper.nodes.get(path)
        nodes[path] = Znode(node.data, node.czxid, 0, node.version)
    return assemble(nodes, MetadataIdentity("zookeeper", "simulated"))


def audit_differences(cluster: Cluster, rows_of: Mapping[str, Sequence[Row]] | None = None) -> list[str]:
    """Audit a cluster's disks as they are now, and list the differences from the verdicts that the znodes give.

    ``rows_of``: the rows of a scan of each machine, by its name; None: all are scanned.

    Machines that are off are audited too. A disk that failed or was never formatted has only its log dir, which must be
    ABSENT, and must never be taken for an empty one.
    """
    state, wrong = expected_state(cluster.zookeeper), list[str]()
    for member in cluster.members.values():
        disks, away = member.disks, set[str]()
        for number, log_dir in enumerate(disks.log_dirs):
            if number in disks.offline or disks.is_empty(number):
                away.add(log_dir)
        rows = scanned_rows(member) if rows_of is None else rows_of[member.name]
        now_ms = cluster.world.clock_of(member.name)
        found = _compared(state, rows, now_ms)
        for verdict, times in Counter(each.verdict for each in found).items():
            cluster.world.history.reach(f"verdict {verdict}", times)
        wrong += wrong_verdicts(found, rows, cluster.oracle, now_ms)
        for row in rows:
            if row["kind"] == "log_dir" and (row["metadata_state"] != "ok") != (row["log_dir"] in away):
                wrong.append(f"{member.name}: the scan calls {row['log_dir']} {row['metadata_state']}")
    return wrong


def check_audit(cluster: Cluster) -> None:
    """Audit all disks as they are now, in the middle of a history or at rest.

    Raises:
        BrokenInvariantError: the audit gives other verdicts than the znodes.
    """
    wrong = audit_differences(cluster)
    if wrong:
        raise BrokenInvariantError("the audit: " + "; ".join(wrong[:8]))


def differences(rows: Sequence[Row], zookeeper: ZooKeeper, oracle: Oracle, now_ms: int) -> list[str]:
    """Audit one broker's disks, and list the differences from the verdicts that the znodes give, a sentence each.

    The rows are of a scan of all its log dirs; ``now_ms``, its time of day, decides what is due.
    """
    return wrong_verdicts(_compared(expected_state(zookeeper), rows, now_ms), rows, oracle, now_ms)


def _compared(state: DesiredState, rows: Sequence[Row], now_ms: int) -> list[Found]:
    judged = compare({state.identity.cluster_id or "": state}, rows, now_ms)
    return [Found(each.verdict, each.observed, each.wanted) for each in judged]


def wrong_verdicts(found: Sequence[Found], rows: Sequence[Row], oracle: Oracle, now_ms: int) -> list[str]:
    """List the differences of an audit of one broker from the verdicts that the znodes give.

    Args:
        found: what the audit says of each row of the scan, and of each wanted replica that lies on no disk.
        rows: of the scan.
        oracle: of the znodes.
        now_ms: decides what is due.
    """
    node_id = next((row["node_id"] for row in rows if row["node_id"] is not None), -1)
    copies = Counter(_partition(row) for row in rows if row["kind"] == "live")
    wrong = []
    for judged in found:
        row = judged.observed or judged.wanted or {}
        if judged.observed:
            expected = _verdicts_of_row(judged.observed, oracle, node_id, now_ms, copies)
        else:
            expected = _verdicts_of_wanted(row, oracle)
        if judged.verdict not in expected:
            where = row.get("name") or f"{row.get('topic')}-{row.get('partition')}"
            wrong.append(f"broker {node_id}: {where} is {judged.verdict}, and {' or '.join(expected)} was expected")
    nowhere = {f"{partition}" for partition in oracle.assigned(node_id) if not copies[partition]}
    judged_missing = {
        f"{judged.wanted['topic']}-{judged.wanted['partition']}"
        for judged in found
        if judged.observed is None and judged.wanted is not None
    }
    wrong += [
        f"broker {node_id}: {each} is wanted, is nowhere, and is not told of"
        for each in sorted(nowhere - judged_missing)
    ]
    wrong += [f"broker {node_id}: {each} is told of, and is not wanted" for each in sorted(judged_missing - nowhere)]
    return wrong


_BY_KIND = {
    "internal": Verdict.OK,
    "foreign": Verdict.FOREIGN,
    "leftover": Verdict.LEFTOVER,
    "checkpoint_entry": Verdict.CHECKPOINT_ENTRY,
}
"""Verdicts that depend on the kind of a row alone."""


def _verdicts_of_row(
    row: Row, oracle: Oracle, node_id: int, now_ms: int, copies: Mapping[TopicPartition, int]
) -> tuple[Verdict, ...]:
    """The right verdicts for a row of a scan; none: there should be no such row."""
    kind, state = row["kind"], row["metadata_state"]
    if kind in _BY_KIND:
        return (_BY_KIND[kind],)
    if kind == "log_dir":
        return (Verdict.OK if state == "ok" else Verdict.ABSENT,)
    if kind not in ("staged", "live", "delete", "future"):
        return ()
    if state not in ("ok", "missing", None):
        return (Verdict.DAMAGED,)
    if kind == "future":
        return (Verdict.FUTURE, Verdict.FUTURE_ABANDONED)
    if kind == "delete":
        return (Verdict.MARKED_DELETE,)  # an unfinished replica: the engine creates replicas under such a name
    if kind == "staged":
        return (Verdict.STAGED_DUE if row["due_ms"] is not None and row["due_ms"] <= now_ms else Verdict.STAGED,)
    if copies[_partition(row)] > 1:
        return (Verdict.DUPLICATE,)
    if node_id < 0 or not (oracle.known() or oracle.has_namespaces()):
        # Metadata without any topic proves nothing: a cluster that lost its metadata looks the same. The audit takes an
        # empty namespace for a topic whose node cannot be read.
        return (Verdict.NOT_COMPARED,)
    return (_verdict_of_live(_partition(row), row["topic_id"], oracle, oracle.assigned(node_id)),)


def _verdict_of_live(
    partition: TopicPartition, topic_id: str | None, oracle: Oracle, wanted: Mapping[TopicPartition, ExpectedReplica]
) -> Verdict:
    ids = {name: str(each) for name, each in oracle.known().items() if each is not None}
    if topic_id is None:
        # Without an ID only the name counts; the ID is written into the replica where it is wanted.
        if partition not in wanted:
            return Verdict.NOT_ASSIGNED if partition.topic in oracle.known() else Verdict.UNKNOWN_TOPIC
        return Verdict.IN_FLIGHT if wanted[partition].moving else Verdict.NO_ID
    if ids.get(partition.topic) == topic_id:
        if partition not in wanted:
            return Verdict.NOT_ASSIGNED
        return Verdict.IN_FLIGHT if wanted[partition].moving else Verdict.OK
    if topic_id in ids.values():
        return Verdict.RENAMED
    return Verdict.STALE_ID if partition.topic in ids else Verdict.UNKNOWN_TOPIC


def _verdicts_of_wanted(wanted: Row, oracle: Oracle) -> tuple[Verdict, ...]:
    """The right verdicts for a wanted replica that is not on the disks."""
    replica = oracle.assigned(wanted["node_id"]).get(_partition(wanted))
    if replica is None:
        return ()
    return (Verdict.IN_FLIGHT,) if replica.moving else (Verdict.MISSING,)


def _partition(row: Row) -> TopicPartition:
    return TopicPartition(row["topic"], row["partition"])
