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
from reconciler.audit.joined import BY_NAME, BY_TOPIC_ID, LOOKED_UP, LOOKUPS, SAME_NAME, SAME_TOPIC_ID

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

_PAIRS = f"""
    SELECT {BY_NAME}, coalesce(o.copies, 0) AS copies FROM live o FULL OUTER JOIN desired d ON {SAME_NAME}
    UNION ALL
    SELECT {BY_TOPIC_ID}, coalesce(c.copies, 0) AS copies
    FROM (SELECT * FROM observed WHERE kind <> 'live') o
    LEFT JOIN (SELECT * FROM desired
               WHERE wanted_topic_id IN (SELECT disk_topic_id FROM observed WHERE kind <> 'live')) d ON {SAME_TOPIC_ID}
    LEFT JOIN copies c
      ON o.topic = c.topic AND o.partition = c.partition AND o.node = c.node AND o.cluster = c.cluster
     AND o.kind = 'future'
"""

VIEWS: dict[str, str] = {
    "observed": joined.VIEWS["observed"],
    "desired": _DESIRED,
    "copies": _COPIES,
    "live": _LIVE,
    "pairs": _PAIRS,
    "joined": f"SELECT p.*, {LOOKED_UP} FROM pairs p {LOOKUPS}",
}
"""The views to create, in this order; they want the same tables as :data:`reconciler.audit.joined.VIEWS`."""
