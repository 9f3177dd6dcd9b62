"""The joined row as SQL: a full outer join of the replicas on the disks with the replicas that the metadata wants.

The text uses only the SQL that DuckDB and Spark share; Spark combines the same parts in another order
(:mod:`reconciler.audit.spark.join`). It decides nothing: it puts the two sides next to each other, in the
columns of :class:`reconciler.verdicts.JoinedRow`, and the case table does the rest. An engine registers five tables
first:

- ``rows``: the rows of scans (``logstore.rows.ROW_SCHEMA``), from trees and inventories together, each with the time of
  the audit as ``now_ms``;
- ``replicas`` and ``topics``: the desired state (:mod:`reconciler.desired`), each with a ``cluster`` column in front;
- ``speaks``: ``(cluster, node, complete, as_of_ms, scanned_ms)``, the scanned brokers that some metadata speaks for,
  as of when it speaks, and when the first of the broker's log dirs was scanned;
- ``homes``: ``(cluster, node, directory_id)``, the log dirs that were scanned and can be trusted.

A live directory meets the metadata by name, because Kafka allows a name once on a broker. Every other directory meets
it by topic ID: Kafka cuts long names when it marks a directory, so a marked name proves nothing.

The side that an engine should keep in memory stands on the right of each join.
"""

from __future__ import annotations

_OBSERVED = """
    SELECT host, coalesce(cluster_id, '') AS cluster, coalesce(node_id, -1) AS node, directory_id, log_dir, name, kind,
           namespace, coalesce(topic, '') AS topic, coalesce(partition, -1) AS partition,
           coalesce(topic_id, '') AS disk_topic_id, coalesce(metadata_state, '') AS state,
           coalesce(problem, '') AS problem, bytes, disk_bytes, files, modified_ms, due_ms, end_offset, leader_epoch,
           segments, scanned_ms, clean_shutdown, coalesce(due_ms <= now_ms, false) AS due
    FROM rows
"""

DESIRED = """
    r.topic, r.partition, coalesce(r.topic_id, '') AS wanted_topic_id, r.adding OR r.removing AS moving,
    r.in_sync AND r.isr_size = 1 AS only_in_sync, r.directory_id AS wanted_directory_id, s.complete
    FROM replicas r JOIN speaks s ON r.cluster = s.cluster AND r.node_id = s.node
"""
"""Columns of a wanted replica ``r`` behind its cluster and node, and where they come from."""

_DESIRED = f"SELECT r.cluster, r.node_id AS node, {DESIRED}"

WANTED = "SELECT * FROM desired"
"""The wanted replicas that live directories meet. An engine that has settled most of both takes the others only."""

# Only keys that need a count are listed: two live directories, or a live one and one beside it that is not.
_COPIES = """
    SELECT cluster, node, topic, partition, count(*) FILTER (WHERE kind = 'live') AS copies
    FROM observed WHERE kind IN ('live', 'future', 'delete', 'stray', 'staged') AND node >= 0
    GROUP BY cluster, node, topic, partition HAVING count(*) > 1
"""

CARRIED = (
    "host", "directory_id", "log_dir", "name", "namespace", "bytes", "disk_bytes", "files", "modified_ms", "due_ms",
    "end_offset", "leader_epoch",
)  # fmt: skip
"""Columns of a directory that a finding shows and no case reads."""

_CARRIED = ", ".join(f"o.{column}" for column in CARRIED)

_WANTED = """
    d.topic IS NOT NULL AS wanted, coalesce(d.wanted_topic_id, '') AS wanted_topic_id,
    coalesce(d.moving, false) AS moving, coalesce(d.only_in_sync, false) AS only_in_sync, d.wanted_directory_id,
    coalesce(d.topic, '') AS wanted_topic, d.complete AS wanted_completely,
    CASE WHEN d.topic IS NULL THEN o.node END AS node_to_look_up,
    CASE WHEN o.disk_topic_id = d.wanted_topic_id THEN NULL ELSE o.disk_topic_id END AS id_to_look_up
"""

BY_NAME = f"""
    coalesce(o.kind, '') AS kind, coalesce(o.state, '') AS state, coalesce(o.problem, '') AS problem,
    coalesce(o.disk_topic_id, '') AS disk_topic_id, coalesce(o.due, false) AS due, o.kind IS NOT NULL AS on_disk,
    coalesce(o.cluster, d.cluster) AS cluster, coalesce(o.node, d.node) AS node, coalesce(o.topic, d.topic) AS topic,
    coalesce(o.partition, d.partition) AS partition, {_WANTED},
    CASE WHEN d.topic IS NULL THEN o.topic END AS name_to_look_up,
    CASE WHEN o.kind IS NULL THEN d.wanted_directory_id END AS home_to_look_up
"""
"""Columns of a live directory ``o`` and a wanted replica ``d``, either of which may be absent; CARRIED not included."""

SAME_PARTITION = "o.partition = d.partition AND o.node = d.node AND o.cluster = d.cluster"

SAME_NAME = f"o.topic = d.topic AND {SAME_PARTITION}"

BY_TOPIC_ID = f"""
    o.kind, o.state, o.problem, o.disk_topic_id, o.due, true AS on_disk, o.cluster, o.node, o.topic,
    o.partition, {_WANTED}, o.topic AS name_to_look_up, NULL AS home_to_look_up
"""
"""The same columns of a directory ``o`` that is not live, and a wanted replica ``d``, which may be absent."""

SAME_TOPIC_ID = f"o.disk_topic_id = d.wanted_topic_id AND {SAME_PARTITION} AND o.disk_topic_id <> ''"

# A wanted replica carries the name and the ID of its topic, and shows that metadata speaks for its broker. Nearly every
# row has one, and only the other rows need a lookup. Elsewhere the key is null, which joins with nothing and costs
# next to nothing.
LOOKED_UP = """
    p.node_to_look_up IS NULL OR s.node IS NOT NULL AS judged,
    coalesce(p.wanted_completely, s.complete, false) AS complete,
    p.name_to_look_up IS NULL OR n.topic IS NOT NULL AS name_known,
    CASE WHEN p.name_to_look_up IS NULL THEN p.wanted_topic_id ELSE coalesce(n.topic_id, '') END AS name_topic_id,
    CASE WHEN p.disk_topic_id = '' THEN '' WHEN p.id_to_look_up IS NULL THEN p.wanted_topic
         ELSE coalesce(i.topic, '') END AS id_topic,
    p.home_to_look_up IS NULL OR h.directory_id IS NOT NULL AS home_seen
"""
"""Columns of the dimension tables for a pair ``p``, joined by :data:`LOOKUPS`."""

LOOKUPS = """
    LEFT JOIN speaks s ON p.node_to_look_up = s.node AND p.cluster = s.cluster
    LEFT JOIN topics n ON p.name_to_look_up = n.topic AND p.cluster = n.cluster
    LEFT JOIN topics i ON p.id_to_look_up = i.topic_id AND p.cluster = i.cluster
    LEFT JOIN homes h ON p.home_to_look_up = h.directory_id AND p.node = h.node AND p.cluster = h.cluster
"""

_PAIRS = f"""
    SELECT {_CARRIED}, {BY_NAME}
    FROM (SELECT * FROM observed WHERE kind = 'live') o FULL OUTER JOIN wanted d ON {SAME_NAME}
    UNION ALL
    SELECT {_CARRIED}, {BY_TOPIC_ID}
    FROM desired d RIGHT JOIN (SELECT * FROM observed WHERE kind <> 'live') o ON {SAME_TOPIC_ID}
"""

_COUNTED = """
    SELECT p.*, coalesce(c.copies, CASE WHEN p.kind = 'live' THEN 1 ELSE 0 END) AS copies
    FROM pairs p
    LEFT JOIN copies c ON p.topic = c.topic AND p.partition = c.partition AND p.node = c.node AND p.cluster = c.cluster
"""


DATED = "j.*, t.as_of_ms, t.scanned_ms"
"""Columns of a judged row ``j``, with the times of its broker beside it; null where no metadata speaks for it."""

DATES = "LEFT JOIN speaks t ON j.node = t.node AND j.cluster = t.cluster"
"""The join for :data:`DATED`. It comes last, because only findings are in doubt, and these are few."""


def joined(condition: str) -> str:
    """Select the joined rows for which a condition over ``counted`` holds; only for these are lookups made."""
    return f"SELECT p.*, {LOOKED_UP} FROM (SELECT * FROM counted WHERE {condition}) p {LOOKUPS}"


VIEWS: dict[str, str] = {
    "observed": _OBSERVED,
    "desired": _DESIRED,
    "wanted": WANTED,
    "copies": _COPIES,
    "pairs": _PAIRS,
    "counted": _COUNTED,
    "joined": joined("true"),
}
"""The views, each after the views that it builds on; ``joined`` is the answer. An engine makes them views, or parts of
one statement, but never materializes them: it would keep every row of the fleet in memory.

``joined`` has every row once: a directory of a broker, or a wanted replica that no live directory of its broker holds.
No row is multiplied as long as ``(cluster, topic, partition, node_id)`` is unique in ``replicas``, and names and IDs
are unique in ``topics``, which :class:`reconciler.desired.DesiredBuilder` guarantees. So OK rows can be counted without
being listed: all observed rows, less the findings.
"""
