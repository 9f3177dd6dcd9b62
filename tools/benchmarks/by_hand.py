"""The yardstick of the audit benchmark: the audit as an expert writes it by hand, once, for one fleet.

The SQL is for DuckDB and Spark alike. It may assume what a general audit must not: one cluster, complete metadata that
speaks for every broker, every column in its place. The findings have the columns of ``FINDING_SCHEMA``; only the words
of the evidence are its own. The tables are ``inventory`` (rows of a scan), ``replicas`` and ``topics`` (the desired
state).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tools.benchmarks.answer import Answer, complete_answer
from tools.benchmarks.data import CLUSTER, NOW_MS

_SEEN = """
    SELECT host, node_id, directory_id, log_dir, name, kind, namespace, topic, partition, topic_id, metadata_state,
           problem, bytes, disk_bytes, files, modified_ms, due_ms, end_offset, leader_epoch
    FROM inventory
"""

_WANTED = """
    SELECT node_id AS wanted_node, topic AS wanted_topic, partition AS wanted_partition, topic_id AS wanted_id,
           directory_id AS wanted_directory, adding OR removing AS moving, in_sync AND isr_size = 1 AS only_in_sync
    FROM replicas
"""

_COPIES = """
    SELECT node_id, topic, partition, count(CASE WHEN kind = 'live' THEN 1 END) AS copies
    FROM seen WHERE kind IN ('live', 'future') GROUP BY node_id, topic, partition HAVING count(*) > 1
"""

# The hint is Spark's: replicas are so small as Parquet that it would send all of them to every task, and has no room.
_PAIRED = """
    SELECT * FROM (SELECT * FROM seen WHERE kind = 'live') FULL OUTER JOIN wanted
        ON topic = wanted_topic AND partition = wanted_partition AND node_id = wanted_node
    UNION ALL
    SELECT /*+ MERGE(w) */ s.*, w.* FROM wanted w RIGHT JOIN (SELECT * FROM seen WHERE kind <> 'live') s
        ON topic_id = wanted_id AND partition = wanted_partition AND node_id = wanted_node
"""

_JUDGED = f"""
    SELECT p.*, c.copies, n.topic_id AS name_id, i.topic AS id_topic, CASE
        WHEN kind = 'log_dir' AND metadata_state <> 'ok' THEN 'ABSENT'
        WHEN kind = 'log_dir' OR kind = 'internal' THEN 'OK'
        WHEN kind = 'leftover' THEN 'LEFTOVER'
        WHEN metadata_state IN ('empty', 'malformed', 'zero_id', 'contradicts', 'unreadable') THEN 'DAMAGED'
        WHEN kind = 'checkpoint_entry' THEN 'CHECKPOINT_ENTRY'
        WHEN kind = 'foreign' THEN 'FOREIGN'
        WHEN kind = 'staged' AND due_ms <= {NOW_MS} THEN 'STAGED_DUE'
        WHEN kind = 'staged' THEN 'STAGED'
        WHEN kind = 'delete' THEN 'MARKED_DELETE'
        WHEN kind = 'stray' THEN 'STRAY'
        WHEN kind = 'future' AND c.copies > 0 AND wanted_topic IS NOT NULL THEN 'FUTURE'
        WHEN kind = 'future' THEN 'FUTURE_ABANDONED'
        WHEN kind = 'live' AND c.copies > 1 THEN 'DUPLICATE'
        WHEN kind = 'live' AND i.topic <> p.topic THEN 'RENAMED'
        WHEN moving AND (kind IS NULL OR p.topic_id IS NULL OR p.topic_id = wanted_id) THEN 'IN_FLIGHT'
        WHEN kind = 'live' AND wanted_topic IS NOT NULL AND p.topic_id IS NULL THEN 'NO_ID'
        WHEN kind = 'live' AND p.topic_id = wanted_id THEN 'OK'
        WHEN kind = 'live' AND p.topic_id <> n.topic_id THEN 'STALE_ID'
        WHEN kind = 'live' AND n.topic IS NOT NULL THEN 'NOT_ASSIGNED'
        WHEN kind = 'live' THEN 'UNKNOWN_TOPIC'
        WHEN h.directory_id IS NULL THEN 'ABSENT'
        ELSE 'MISSING' END AS verdict
    FROM paired p
    LEFT JOIN copies c ON p.node_id = c.node_id AND p.topic = c.topic AND p.partition = c.partition
    LEFT JOIN topics n ON n.topic = coalesce(p.topic, wanted_topic)
    LEFT JOIN topics i ON i.topic_id = p.topic_id
    LEFT JOIN homes h ON h.directory_id = wanted_directory
"""

VIEWS: dict[str, str] = {
    "seen": _SEEN,
    "wanted": _WANTED,
    "copies": _COPIES,
    "homes": "SELECT directory_id FROM seen WHERE kind = 'log_dir' AND metadata_state = 'ok'",
    "paired": _PAIRED,
    "judged": _JUDGED,
}
"""The views to create, in this order."""

FINDINGS = f"""
    SELECT verdict, '{CLUSTER}' AS cluster_id, coalesce(node_id, wanted_node) AS broker, host, log_dir, directory_id,
           name, kind, namespace, coalesce(topic, wanted_topic) AS topic,
           coalesce(partition, wanted_partition) AS partition, topic_id AS disk_topic_id,
           coalesce(wanted_id, name_id) AS metadata_topic_id, bytes, disk_bytes, files, modified_ms, due_ms,
           CASE WHEN verdict = 'DUPLICATE' THEN row_number() OVER (
               PARTITION BY verdict, node_id, topic, partition
               ORDER BY CASE WHEN topic_id = wanted_id THEN 0 ELSE 1 END, coalesce(leader_epoch, -1) DESC,
                        coalesce(end_offset, -1) DESC, CASE WHEN directory_id = wanted_directory THEN 0 ELSE 1 END,
                        log_dir) END AS copy_rank,
           coalesce(only_in_sync, false) AS only_in_sync,
           CASE verdict
               WHEN 'STALE_ID' THEN concat('the disk holds topic ID ', topic_id, '; it was re-created as ', name_id)
               WHEN 'RENAMED' THEN concat('topic ID ', topic_id, ' belongs to topic ', id_topic)
               WHEN 'NO_ID' THEN concat('no topic ID on the disk; wanted here under ', wanted_id)
               WHEN 'MISSING' THEN concat('wanted here under topic ID ', wanted_id, ', and no log dir has it')
               WHEN 'NOT_ASSIGNED' THEN concat('topic ', topic, ' exists, but this broker has no replica of it')
               WHEN 'UNKNOWN_TOPIC' THEN concat('neither topic ', topic, ' nor topic ID ', topic_id, ' is known')
               WHEN 'STRAY' THEN concat('a broker moved it aside; topic ID ', topic_id, ' is not known')
               WHEN 'DUPLICATE' THEN concat('live in ', copies, ' directories of this broker; wanted ', wanted_id)
               ELSE coalesce(problem, 'see the verdict') END AS evidence,
           CASE WHEN kind IS NULL AND verdict IN ('MISSING', 'ABSENT')
                     AND (SELECT min(scanned_ms) FROM inventory) < {NOW_MS} THEN 'SCANNED_BEFORE_METADATA'
                WHEN verdict IN ('STALE_ID', 'NOT_ASSIGNED', 'UNKNOWN_TOPIC', 'STRAY', 'FUTURE_ABANDONED')
                     AND modified_ms > {NOW_MS} THEN 'CHANGED_SINCE_METADATA' END AS doubt
    FROM judged WHERE verdict <> 'OK'
"""
"""The findings; everything but what is OK."""

TOTALS = (
    "SELECT verdict, count(*), sum(bytes), count(CASE WHEN kind <> 'log_dir' THEN 1 END) FROM findings GROUP BY verdict"
)
"""Rows, bytes and entries on disk of each verdict, from the table ``findings``."""

OBSERVED = "SELECT count(*), sum(bytes) FROM inventory WHERE kind <> 'log_dir'"
"""Entries on disk and their bytes: less what was found, they are OK."""

SEVERAL_IDS = """
    SELECT topic, topic_id, count(*), min(node_id), max(node_id) FROM inventory
    WHERE kind IN ('live', 'future') AND topic_id IS NOT NULL AND topic IN (
        SELECT topic FROM inventory WHERE kind IN ('live', 'future') AND topic_id IS NOT NULL
        GROUP BY topic HAVING min(topic_id) <> max(topic_id))
    GROUP BY topic, topic_id
"""
"""Topics that lie on the disks under several IDs, a row per ID."""


def answer_by_query(query: Callable[[str], Iterable[tuple[Any, ...]]], **figures: Any) -> Answer:
    """Ask an engine that has the views and the findings for the rest of the answer."""
    found = list(query(TOTALS))
    observed = [(int(rows), int(size or 0)) for rows, size in query(OBSERVED)]
    return complete_answer(found, observed[0], len({row[0] for row in query(SEVERAL_IDS)}), **figures)


SAME, DIFFERS, ONLY_ON_DISK, ONLY_WANTED = "same", "differs", "only on disk", "only wanted"

FLOOR = f"""
    SELECT CASE WHEN w.node_id IS NULL THEN '{ONLY_ON_DISK}' WHEN o.node_id IS NULL THEN '{ONLY_WANTED}'
                WHEN o.topic_id = w.topic_id THEN '{SAME}' ELSE '{DIFFERS}' END AS outcome,
           count(*), coalesce(sum(bytes), 0)
    FROM (SELECT node_id, topic, partition, topic_id, bytes FROM inventory WHERE kind = 'live') o
    FULL OUTER JOIN (SELECT node_id, topic, partition, topic_id FROM replicas) w
        ON o.topic = w.topic AND o.partition = w.partition AND o.node_id = w.node_id
    GROUP BY outcome
"""
"""The floor: the bare join and count over the same Parquet files.

It reads the keys, the topic IDs and the bytes of live replicas and of wanted ones, joins them once, and counts what has
the same ID on both sides, another one, or no partner. No audit can be quicker in the same engine: it has to read these
columns and to make this join, whatever it says. The join is written as ours is, with the wanted replicas as the side in
memory, and the engine has the threads and the plans that it has for ours. It is no yardstick, because it finds nothing:
it counts no copies, looks at no other directory, tells no verdict, writes no file, and takes every inventory for sound.
The ratio says what all that costs.
"""
