"""The joined row for Spark: the same rows and columns as :mod:`reconciler.audit.joined`, each large side shuffled once.

Where DuckDB builds hash tables, Spark shuffles and sorts, and pays for every column again each time. So some things are
written differently here, and their answer is the same:

- what only a finding shows travels as one column ``disk``, which halves the code that Spark generates for every join,
  and keeps it below the size at which the JVM would interpret it;
- a hash leads the keys of the large join, because Spark compares the first eight bytes of the first key in place, and
  names of topics often begin alike;
- ``live`` counts the copies of a live partition by a window over the keys of the join that follows, which needs no
  shuffle and no sort of its own; ``copies`` is left for the few future directories;
- what is not live, mostly little, meets only those wanted replicas whose topic ID is among it;
- ``desired`` takes its cluster from ``speaks``: of a constant, Spark would make a condition instead of a key.

Decides nothing, as the shared text decides nothing; both engines are tested to agree on every column of a finding.
"""

from __future__ import annotations

from reconciler.audit import joined
from reconciler.audit.joined import BY_NAME, BY_TOPIC_ID, CARRIED, LOOKED_UP, LOOKUPS, SAME_NAME, SAME_TOPIC_ID

_KEYS = "topic, partition, node, cluster"

_DISKS = f"SELECT *, struct({', '.join(CARRIED)}) AS disk FROM observed"

_DESIRED = """
    SELECT *, xxhash64(topic, partition, node) AS hash FROM (
        SELECT s.cluster, s.node, r.topic, r.partition, coalesce(r.topic_id, '') AS wanted_topic_id,
               r.adding OR r.removing AS moving, r.in_sync AND r.isr_size = 1 AS only_in_sync,
               r.directory_id AS wanted_directory_id, s.complete
        FROM replicas r JOIN speaks s ON r.cluster = s.cluster AND r.node_id = s.node)
"""

_COPIES = f"""
    SELECT {_KEYS}, count(*) AS copies
    FROM observed LEFT SEMI JOIN (SELECT * FROM observed WHERE kind IN ('future', 'delete')) f USING ({_KEYS})
    WHERE kind = 'live' AND node >= 0
    GROUP BY {_KEYS}
"""

_LIVE = f"""
    SELECT *, CASE WHEN node >= 0 THEN count(*) OVER (PARTITION BY hash, {_KEYS}) ELSE 1 END AS copies
    FROM (SELECT *, xxhash64(topic, partition, node) AS hash FROM disks WHERE kind = 'live')
"""

_PAIRS = f"""
    SELECT o.disk, {BY_NAME}, coalesce(o.copies, 0) AS copies
    FROM live o FULL OUTER JOIN desired d ON o.hash = d.hash AND {SAME_NAME}
    UNION ALL
    SELECT o.disk, {BY_TOPIC_ID}, coalesce(c.copies, 0) AS copies
    FROM (SELECT * FROM disks WHERE kind <> 'live') o
    LEFT JOIN (SELECT * FROM desired
               WHERE wanted_topic_id IN (SELECT disk_topic_id FROM observed WHERE kind <> 'live')) d ON {SAME_TOPIC_ID}
    LEFT JOIN copies c
      ON o.topic = c.topic AND o.partition = c.partition AND o.node = c.node AND o.cluster = c.cluster
     AND o.kind IN ('future', 'delete')
"""

VIEWS: dict[str, str] = {
    "observed": joined.VIEWS["observed"],
    "disks": _DISKS,
    "desired": _DESIRED,
    "copies": _COPIES,
    "live": _LIVE,
    "pairs": _PAIRS,
    "joined": f"SELECT p.*, {LOOKED_UP} FROM pairs p {LOOKUPS}",
}
"""The views to create, in this order; they want the same tables as :data:`reconciler.audit.joined.VIEWS`, and
``joined`` has the columns of CARRIED within ``disk``."""
