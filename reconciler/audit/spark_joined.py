"""The joined row for Spark: the same rows and columns as :mod:`reconciler.audit.joined`, each large side shuffled once.

Where DuckDB builds hash tables, Spark shuffles and sorts, and pays for every column again each time. So three views are
written differently here, and their answer is the same:

- ``live`` counts the copies of a live partition by a window over the keys of the join that follows, which needs no
  shuffle and no sort of its own; ``copies`` is left for the few future directories;
- what is not live, mostly little, meets only those wanted replicas whose topic ID is among it;
- ``desired`` takes its cluster from ``speaks``: of a constant, Spark would make a condition instead of a key.

Decides nothing, as the shared text decides nothing; both engines are tested to agree on every column of a finding.
"""

from __future__ import annotations

from reconciler.audit import joined

_DESIRED = """
    SELECT s.cluster, s.node, r.topic, r.partition, coalesce(r.topic_id, '') AS wanted_topic_id,
           r.adding OR r.removing AS moving, r.in_sync AND r.isr_size = 1 AS only_in_sync,
           r.directory_id AS wanted_directory_id
    FROM replicas r JOIN speaks s ON r.cluster = s.cluster AND r.node_id = s.node
"""

_COPIES = """
    SELECT cluster, node, topic, partition, count(*) AS copies
    FROM observed LEFT SEMI JOIN (SELECT * FROM observed WHERE kind = 'future') f
         USING (topic, partition, node, cluster)
    WHERE kind = 'live' AND node >= 0
    GROUP BY cluster, node, topic, partition
"""

_LIVE = """
    SELECT *, CASE WHEN node >= 0 THEN count(*) OVER (PARTITION BY topic, partition, node, cluster) ELSE 1 END AS copies
    FROM observed WHERE kind = 'live'
"""

_CARRIED = (
    "host", "directory_id", "log_dir", "name", "namespace", "bytes", "disk_bytes", "files", "modified_ms", "due_ms",
    "end_offset", "leader_epoch",
)  # fmt: skip

_DISK = ", ".join(f"o.{column}" for column in _CARRIED)

_BY_NAME = f"""
    SELECT {_DISK}, coalesce(o.kind, '') AS kind, coalesce(o.state, '') AS state, coalesce(o.problem, '') AS problem,
           coalesce(o.disk_topic_id, '') AS disk_topic_id, coalesce(o.due, false) AS due, o.kind IS NOT NULL AS on_disk,
           coalesce(o.copies, 0) AS copies,
           coalesce(o.cluster, d.cluster) AS cluster, coalesce(o.node, d.node) AS node,
           coalesce(o.topic, d.topic) AS topic, coalesce(o.partition, d.partition) AS partition,
           d.topic IS NOT NULL AS wanted, coalesce(d.wanted_topic_id, '') AS wanted_topic_id,
           coalesce(d.moving, false) AS moving, coalesce(d.only_in_sync, false) AS only_in_sync, d.wanted_directory_id
    FROM live o FULL OUTER JOIN desired d
      ON o.topic = d.topic AND o.partition = d.partition AND o.node = d.node AND o.cluster = d.cluster
"""

_BY_TOPIC_ID = f"""
    SELECT {_DISK}, o.kind, o.state, o.problem, o.disk_topic_id, o.due, true AS on_disk,
           coalesce(c.copies, 0) AS copies, o.cluster, o.node, o.topic, o.partition, d.topic IS NOT NULL AS wanted,
           coalesce(d.wanted_topic_id, '') AS wanted_topic_id, coalesce(d.moving, false) AS moving,
           coalesce(d.only_in_sync, false) AS only_in_sync, d.wanted_directory_id
    FROM (SELECT * FROM observed WHERE kind <> 'live') o
    LEFT JOIN (SELECT * FROM desired
               WHERE wanted_topic_id IN (SELECT disk_topic_id FROM observed WHERE kind <> 'live')) d
      ON o.disk_topic_id = d.wanted_topic_id AND o.partition = d.partition AND o.node = d.node
     AND o.cluster = d.cluster AND o.disk_topic_id <> ''
    LEFT JOIN copies c
      ON o.topic = c.topic AND o.partition = c.partition AND o.node = c.node AND o.cluster = c.cluster
     AND o.kind = 'future'
"""

_JOINED = """
    SELECT p.*, s.node IS NOT NULL AS judged, coalesce(s.complete, false) AS complete,
           n.topic IS NOT NULL AS name_known, coalesce(n.topic_id, '') AS name_topic_id,
           coalesce(i.topic, '') AS id_topic,
           p.wanted_directory_id IS NULL OR h.directory_id IS NOT NULL AS home_seen
    FROM pairs p
    LEFT JOIN speaks s ON p.cluster = s.cluster AND p.node = s.node
    LEFT JOIN topics n ON p.topic = n.topic AND p.cluster = n.cluster
    LEFT JOIN topics i ON p.disk_topic_id = i.topic_id AND p.cluster = i.cluster
    LEFT JOIN homes h ON p.wanted_directory_id = h.directory_id AND p.node = h.node AND p.cluster = h.cluster
"""

VIEWS: dict[str, str] = {
    "observed": joined.VIEWS["observed"],
    "desired": _DESIRED,
    "copies": _COPIES,
    "live": _LIVE,
    "pairs": f"{_BY_NAME} UNION ALL {_BY_TOPIC_ID}",
    "joined": _JOINED,
}
"""The views to create, in this order; they want the same tables as :data:`reconciler.audit.joined.VIEWS`."""
