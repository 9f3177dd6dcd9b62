"""Fleet findings: facts that only several rows together show, with and without metadata.

Each kind is one SQL query and a function that turns its few rows into sentences. The queries ask the tables of
:mod:`reconciler.audit.dimension_tables`, ``topics``, ``found`` (the listed findings) and ``searched``, which
:data:`LIKELY` and :data:`SEARCHED` make in one pass of what they need of ``rows``, which holds every replica of the
fleet. A query returns at most :data:`LIMIT` rows; a finding says when there are more. Findings about the metadata and
about when log dirs were scanned need no query: they come from the few rows of log dirs, in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from reconciler.desired import BrokerKey, DesiredState, is_own_copy
from reconciler.text import age, count, moment

LIMIT = 1000

FleetRow = Mapping[str, Any]


class FleetKey(NamedTuple):
    """What makes a fleet finding the same one in two audits; its detail has counts and ages, which change."""

    kind: str
    cluster_id: str | None
    subject: str


@dataclass(frozen=True, slots=True)
class HeldTopicId:
    """One of several topic IDs under which a topic lies on disks."""

    topic_id: str
    known: bool
    """Whether the metadata knows the ID."""
    replicas: int
    first_broker: int
    """The lowest node.id that holds it; -1: a log dir without identity."""
    last_broker: int
    brokers: tuple[int, ...] = ()
    """Every node.id that holds it, in order."""


@dataclass(frozen=True, slots=True)
class FleetFinding:
    """A fact that only several rows together show."""

    kind: str
    """The ``kind`` of the query that found it."""
    cluster_id: str | None
    subject: str
    """The topic, broker or directory ID that the finding is about."""
    detail: str
    """What was seen, in one sentence."""
    doubt: str | None = None
    """A :class:`reconciler.verdicts.Doubt`, where the verdict that it rests on is in doubt."""
    held: tuple[HeldTopicId, ...] = field(default=(), compare=False)
    """Of a topic under several IDs: each of them, that of the most replicas first."""

    @property
    def key(self) -> FleetKey:
        """What it is called in another audit."""
        return FleetKey(self.kind, self.cluster_id, self.subject)

    def as_row(self) -> dict[str, str | None]:
        """Return the finding in the columns of :data:`reconciler.audit.FLEET_SCHEMA`."""
        return {name: getattr(self, name) for name in FLEET_SCHEMA.names}


FLEET_SCHEMA = pa.schema([pa.field(each.name, pa.string()) for each in fields(FleetFinding) if each.compare])
"""Fleet findings as a table, with the fields of :class:`FleetFinding`, but what only the page shows."""


@dataclass(frozen=True, slots=True)
class FleetQuery:
    """A query for one kind of fleet finding."""

    kind: str
    sql: str
    """Returns the rows in the order of the findings; ``cluster`` is always a column."""
    describe: Callable[[Sequence[FleetRow]], Iterable[FleetFinding]]
    needs_metadata: bool = False


def _finding(kind: str, row: FleetRow, subject: str, detail: str) -> FleetFinding:
    return FleetFinding(kind, row["cluster"] or None, subject, detail, row.get("doubt") or None)


def _several_ids(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for (_, topic), group in groupby(rows, key=lambda row: (row["cluster"], row["topic"])):
        ids = list(group)
        parts = (
            f"{row['topic_id']}{' (the metadata knows it)' if row['known'] else ''} in "
            f"{row['replicas']} replica{'' if row['replicas'] == 1 else 's'} on {_brokers(row)}"
            for row in ids
        )
        found = _finding("TOPIC_UNDER_SEVERAL_IDS", ids[0], topic, "; ".join(parts))
        columns = ("topic_id", "known", "replicas", "first_broker", "last_broker")
        values = ({name: row[name] for name in columns} | {"brokers": tuple(row["brokers"])} for row in ids)
        yield replace(found, held=tuple(HeldTopicId(**each) for each in values))


def _brokers(row: FleetRow) -> str:
    first, last = row["first_broker"], row["last_broker"]
    return f"broker {first}" if first == last else f"brokers {first} to {last}"


OR_RENAMED = ", or its host has another name now: leave out the inventories of the old one"


def _directory_ids(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        why = f"one is a copy{OR_RENAMED if row['hosts'] > 1 else ''}"
        detail = f"{row['times']} log dirs carry it, among them {row['one']} and {row['other']}: {why}"
        yield _finding("DUPLICATE_DIRECTORY_ID", row, row["directory_id"], detail)


def _node_ids(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        what = f"{row['hosts']} hosts" if row["hosts"] > 1 else f"{row['logs']} metadata logs"
        why = f"two nodes share it, or a disk is a copy{OR_RENAMED if row['hosts'] > 1 else ''}"
        detail = f"{what} have it, among them {row['one']} and {row['other']}: {why}"
        yield _finding("DUPLICATE_NODE_ID", row, f"broker {row['node']}", detail)


def _several_clusters(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        named = f"{row['cluster']} in {row['one']} and {row['other']} in {row['another']}"
        clusters = f"2 clusters, {named}" if row["clusters"] == 2 else f"{row['clusters']} clusters, among them {named}"
        detail = f"host {row['host']} has log dirs of this node of {clusters}"
        yield _finding("NODE_IN_SEVERAL_CLUSTERS", row, f"broker {row['node']}", detail)


def _unregistered(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        detail = (
            f"broker {row['node']} did not register directory.id {row['directory_id']}: no replica is assigned to it"
        )
        yield _finding("LOG_DIR_NOT_REGISTERED", row, row["log_dir"], detail)


def _unseen(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        detail = (
            f"broker {row['node']} registered it, and it was not among the log dirs scanned: unmounted, or not given"
        )
        yield _finding("LOG_DIR_NOT_SEEN", row, row["directory_id"], detail)


def _sole_copies(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        detail = (
            f"{_partitions(row)} {row['verdict']} on {_brokers(row)}, and no other copy of topic ID "
            f"{row['disk_topic_id']} was scanned"
        )
        yield _finding("ONLY_KNOWN_COPY", row, row["topic"], detail)


def _sole_in_sync(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        detail = (
            f"{_partitions(row)} {row['verdict']} on {_brokers(row)}, where the metadata has the only in-sync replica"
        )
        yield _finding("ONLY_IN_SYNC_COPY", row, row["topic"], detail)


def _partitions(row: FleetRow) -> str:
    if row["partitions"] == 1:
        return f"partition {row['first_partition']} is"
    return f"{row['partitions']} partitions from {row['first_partition']} to {row['last_partition']} are"


def _id_changes(rows: Sequence[FleetRow]) -> Iterable[FleetFinding]:
    for row in rows:
        detail = f"topic ID {row['before']} in the audit before, {row['now']} now: re-created in between"
        yield _finding("TOPIC_ID_CHANGED", row, row["topic"], detail)


_EXTENT = """
    count(DISTINCT partition) AS partitions, min(partition) AS first_partition, max(partition) AS last_partition,
    min(node) AS first_broker, max(node) AS last_broker
"""

# A replica that is no finding is wanted where it lies, under the one ID that the metadata has for its topic. So a topic
# has several IDs only if a finding has another one, or if the metadata has none for it, and takes each for right.
_SUSPECTS = """
    SELECT f.cluster, f.topic FROM found f LEFT JOIN topics w ON w.cluster = f.cluster AND w.topic = f.topic
    WHERE f.kind IN ('live', 'future') AND f.disk_topic_id <> ''
    GROUP BY f.cluster, f.topic
    HAVING min(f.disk_topic_id) <> max(f.disk_topic_id) OR min(f.disk_topic_id) <> min(w.topic_id)
    UNION SELECT cluster, topic FROM topics WHERE topic_id IS NULL
"""

_AT_RISK = """
    f.verdict IN ('STALE_ID', 'NOT_ASSIGNED', 'UNKNOWN_TOPIC', 'STRAY', 'STAGED_DUE', 'MARKED_DELETE', 'RENAMED')
    AND f.disk_topic_id <> '' AND coalesce(f.bytes, 1) > 0
"""
"""Findings that somebody may delete, so that it matters whether there is another copy."""

LIKELY = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(node_id, -1) AS node, kind, metadata_state AS state,
           coalesce(topic, '') AS topic, coalesce(partition, -1) AS partition, topic_id AS disk_topic_id
    FROM rows
    WHERE topic_id <> ''
        AND (topic IN (SELECT topic FROM ({_SUSPECTS}) s)
             OR (topic_id, coalesce(partition, -1)) IN (
                 SELECT f.disk_topic_id, f.partition FROM found f WHERE {_AT_RISK}))
"""
"""The directories that may have to be compared with others of the fleet: a query over ``rows``, ``found`` and
``topics``, in the SQL that DuckDB and Spark share. It looks every row up by few of its values, as they are in the
inventory and without its cluster, so it finds the same topics and IDs of other clusters as well."""

SEARCHED = f"""
    SELECT * FROM likely
    WHERE (cluster, topic) IN ({_SUSPECTS})
        OR (cluster, disk_topic_id, partition) IN (
            SELECT f.cluster, f.disk_topic_id, f.partition FROM found f WHERE {_AT_RISK})
"""
"""Those of ``likely`` that have to be compared, in DuckDB."""

QUERIES: tuple[FleetQuery, ...] = (
    FleetQuery(
        "TOPIC_UNDER_SEVERAL_IDS",
        """
        SELECT g.*, t.topic IS NOT NULL AS known FROM (
            SELECT *, count(*) OVER (PARTITION BY cluster, topic) AS ids FROM (
                SELECT cluster, topic, disk_topic_id AS topic_id, count(*) AS replicas, min(node) AS first_broker,
                       max(node) AS last_broker, list_sort(list(DISTINCT node)) AS brokers
                FROM searched WHERE kind IN ('live', 'future') AND state = 'ok'
                GROUP BY cluster, topic, disk_topic_id) each) g
        LEFT JOIN topics t ON t.cluster = g.cluster AND t.topic_id = g.topic_id
        WHERE ids > 1 ORDER BY g.cluster, g.topic, replicas DESC, g.topic_id
        """,
        _several_ids,
    ),
    FleetQuery(
        "DUPLICATE_DIRECTORY_ID",
        """
        SELECT min(cluster) AS cluster, directory_id, count(*) AS times, count(DISTINCT host) AS hosts,
               CASE WHEN count(DISTINCT host) > 1 THEN min(host || ':' || log_dir) ELSE min(log_dir) END AS one,
               CASE WHEN count(DISTINCT host) > 1 THEN max(host || ':' || log_dir) ELSE max(log_dir) END AS other
        FROM log_dirs WHERE kind = 'log_dir' AND directory_id IS NOT NULL
        GROUP BY directory_id HAVING count(*) > 1 ORDER BY directory_id
        """,
        _directory_ids,
    ),
    FleetQuery(
        "DUPLICATE_NODE_ID",
        """
        SELECT cluster, node, count(DISTINCT host) AS hosts,
               count(DISTINCT CASE WHEN kind = 'internal' AND topic = '__cluster_metadata' THEN log_dir END) AS logs,
               CASE WHEN count(DISTINCT host) > 1 THEN min(host) ELSE min(log_dir) END AS one,
               CASE WHEN count(DISTINCT host) > 1 THEN max(host) ELSE max(log_dir) END AS other
        FROM log_dirs WHERE node >= 0 GROUP BY cluster, node
        HAVING count(DISTINCT host) > 1
            OR count(DISTINCT CASE WHEN kind = 'internal' AND topic = '__cluster_metadata' THEN log_dir END) > 1
        ORDER BY cluster, node
        """,
        _node_ids,
    ),
    FleetQuery(
        "NODE_IN_SEVERAL_CLUSTERS",
        """
        SELECT host, node, count(*) AS clusters, min(cluster) AS cluster, min_by(log_dir, cluster) AS one,
               max(cluster) AS other, max_by(log_dir, cluster) AS another
        FROM (SELECT host, node, cluster, min(log_dir) AS log_dir FROM log_dirs
              WHERE kind = 'log_dir' AND node >= 0 AND cluster <> '' GROUP BY host, node, cluster) each
        GROUP BY host, node HAVING count(*) > 1 ORDER BY host, node
        """,
        _several_clusters,
    ),
    FleetQuery(
        "LOG_DIR_NOT_REGISTERED",
        """
        SELECT o.cluster, o.node, o.log_dir, o.directory_id FROM log_dirs o
        JOIN (SELECT DISTINCT cluster, node FROM registered) b ON b.cluster = o.cluster AND b.node = o.node
        LEFT JOIN registered r ON r.cluster = o.cluster AND r.node = o.node AND r.directory_id = o.directory_id
        LEFT JOIN (SELECT DISTINCT host, log_dir FROM log_dirs
                   WHERE kind = 'internal' AND topic = '__cluster_metadata') m
          ON m.host = o.host AND m.log_dir = o.log_dir
        WHERE o.kind = 'log_dir' AND o.directory_id IS NOT NULL AND r.node IS NULL AND m.log_dir IS NULL
        ORDER BY o.cluster, o.node, o.log_dir
        """,
        _unregistered,
        needs_metadata=True,
    ),
    FleetQuery(
        "LOG_DIR_NOT_SEEN",
        """
        SELECT r.cluster, r.node, r.directory_id FROM registered r
        JOIN speaks s ON s.cluster = r.cluster AND s.node = r.node
        LEFT JOIN homes h ON h.cluster = r.cluster AND h.node = r.node AND h.directory_id = r.directory_id
        WHERE h.node IS NULL ORDER BY r.cluster, r.node, r.directory_id
        """,
        _unseen,
        needs_metadata=True,
    ),
    FleetQuery(
        "ONLY_KNOWN_COPY",
        f"""
        SELECT cluster, topic, verdict, disk_topic_id, doubt, {_EXTENT} FROM (
            SELECT f.cluster, f.node, f.topic, f.partition, f.verdict, f.disk_topic_id, coalesce(f.doubt, '') AS doubt
            FROM found f
            JOIN searched o
              ON o.cluster = f.cluster AND o.disk_topic_id = f.disk_topic_id AND o.partition = f.partition
            WHERE {_AT_RISK}
            GROUP BY f.cluster, f.node, f.topic, f.partition, f.verdict, f.log_dir, f.name, f.disk_topic_id, f.doubt
            HAVING count(*) = 1) alone
        GROUP BY cluster, topic, verdict, disk_topic_id, doubt
        ORDER BY cluster, topic, verdict, disk_topic_id, doubt
        """,
        _sole_copies,
    ),
    FleetQuery(
        "ONLY_IN_SYNC_COPY",
        f"""
        SELECT cluster, topic, verdict, coalesce(doubt, '') AS doubt, {_EXTENT} FROM found
        WHERE only_in_sync AND verdict IN ('MISSING', 'ABSENT', 'DAMAGED', 'STALE_ID')
        GROUP BY cluster, topic, verdict, coalesce(doubt, '')
        ORDER BY cluster, topic, verdict, coalesce(doubt, '')
        """,
        _sole_in_sync,
        needs_metadata=True,
    ),
)
"""The kinds of fleet finding, in the order of a report."""

ID_CHANGES = FleetQuery(
    "TOPIC_ID_CHANGED",
    """
    SELECT n.cluster, n.topic, b.topic_id AS before, n.topic_id AS now FROM topics n
    JOIN previous b ON b.cluster = n.cluster AND b.topic = n.topic
    WHERE b.topic_id IS NOT NULL AND n.topic_id IS NOT NULL AND b.topic_id <> n.topic_id ORDER BY n.cluster, n.topic
    """,
    _id_changes,
)
"""Needs the topics of an earlier audit, as the table ``previous``."""


def to_findings(query: FleetQuery, rows: Sequence[FleetRow]) -> list[FleetFinding]:
    """Turn the rows of a query, at most :data:`LIMIT` + 1 of them, into findings."""
    findings = list(query.describe(rows[:LIMIT]))
    if len(rows) > LIMIT:
        first = rows[0]
        findings.append(_finding(query.kind, first, "more", f"only the first {LIMIT} rows of this kind are told"))
    return findings


def other_clusters(states: Mapping[str, DesiredState], log_dirs: Sequence[FleetRow]) -> Iterator[FleetFinding]:
    """Find log dirs of clusters whose metadata was not given.

    Args:
        states: desired state by cluster ID.
        log_dirs: the rows of log dirs, sorted by cluster.
    """
    if not states:
        return
    for cluster, rows in groupby(log_dirs, key=lambda row: str(row["cluster"])):
        if cluster and cluster not in states:
            paths = [row["log_dir"] for row in rows]
            which = paths[0] if len(paths) == 1 else f"{len(paths)} log dirs, among them {paths[0]},"
            detail = f"{which} belong{'s' if len(paths) == 1 else ''} to it, and no metadata of it was given"
            yield FleetFinding("OTHER_CLUSTER", cluster, cluster, detail)


def own_metadata(states: Mapping[str, DesiredState], log_dirs: Sequence[FleetRow]) -> Iterator[FleetFinding]:
    """Find metadata that is the own copy of a broker that does not run, and ends before its log dirs were scanned."""
    for cluster, state in states.items():
        identity = state.identity
        as_of = identity.as_of_ms or 0
        later = {BrokerKey(row["cluster"], row["node"]) for row in log_dirs if (row["scanned_ms"] or as_of) > as_of}
        if is_own_copy(state, later):
            detail = f"{identity.location} speaks as of {moment(identity.as_of_ms)}, and nothing since is known"
            yield FleetFinding("OWN_METADATA", cluster or None, f"broker {identity.keeper}", detail)


INVENTORY_GAP_MS = 24 * 3_600_000
"""The default of the greatest span between an inventory and the metadata that it is compared with."""


def unreported_brokers(cluster: str, wanted: Mapping[int, int], seen: Collection[int | None]) -> Iterator[FleetFinding]:
    """Find brokers that hold replicas and of which no scan was given.

    Args:
        cluster: the cluster's ID; empty: the metadata does not name it.
        wanted: number of replicas by broker, as the metadata has them.
        seen: the brokers of the cluster that were scanned.
    """
    for node in sorted(wanted.keys() - seen):
        replicas = count(wanted[node], "replica")
        detail = f"the metadata has {replicas} on it, and no scan of its log dirs that can be read was given"
        yield FleetFinding("BROKER_NOT_REPORTED", cluster or None, f"broker {node}", detail)


def limited(findings: Iterable[FleetFinding]) -> list[FleetFinding]:
    """Keep the first :data:`LIMIT` findings of one kind, and say in another how many more there are."""
    found = list(findings)
    left = len(found) - LIMIT
    if left <= 0:
        return found
    detail = f"only the first {LIMIT:,} findings of this kind are told, and there are {left:,} more"
    return [*found[:LIMIT], FleetFinding(found[0].kind, found[0].cluster_id, "more", detail)]


def far_inventories(
    states: Mapping[str, DesiredState], log_dirs: Sequence[FleetRow], now_ms: int, gap_ms: int, *, inventoried: bool
) -> Iterator[FleetFinding]:
    """Find brokers whose inventory is much older or much younger than the metadata.

    Args:
        states: desired state by cluster ID.
        log_dirs: the rows of log dirs, sorted by cluster and node.
        now_ms: when the audit began; what was scanned within a day from then on is no inventory: the audit scanned it.
        gap_ms: the greatest span that is no finding.
        inventoried: whether inventories were given; else all that was scanned from then on is no inventory.
    """
    future_ms = now_ms + INVENTORY_GAP_MS
    for (cluster, node), rows in groupby(log_dirs, key=lambda row: (str(row["cluster"]), row["node"])):
        as_of = states[cluster].identity.as_of_ms if cluster in states else None
        known = (row["scanned_ms"] for row in rows if row["scanned_ms"] is not None)
        scans = [scan for scan in known if scan < now_ms or (inventoried and scan > future_ms)]
        if as_of is None or not scans:
            continue
        farthest = max(scans, key=lambda scan: abs(scan - as_of))
        if abs(farthest - as_of) > gap_ms:
            span = f"{age(abs(farthest - as_of))} {'after' if farthest > as_of else 'before'}"
            detail = f"scanned at {moment(farthest)}, {span} the metadata, which speaks as of {moment(as_of)}"
            if farthest > future_ms:
                detail += ": a clock was wrong, and until then no other scan of these log dirs counts beside that one"
            yield FleetFinding("INVENTORY_AGE", cluster or None, f"broker {node}", detail)
