"""The yardstick of the audit benchmark: the audit as an expert writes it by hand, once, for one fleet.

The SQL is for DuckDB and Spark alike. It may assume what a general audit must not: one cluster, complete metadata that
speaks for every broker, every column in its place. The findings have the columns of ``FINDING_SCHEMA``; only the words
of the evidence are its own. The tables are ``inventory`` (rows of a scan), ``replicas`` and ``topics`` (the desired
state), and ``registered`` (node_id and directory_id of each log dir that a broker registered).

It is a fair peer because it does what an audit has to, each as cheaply as known here: all directories are joined once,
and only what is not plainly in order is looked up in further tables; what concerns log dirs is asked of a table of the
log dirs alone; what compares directories of several brokers is asked of those that a finding makes suspect, found in
one further pass; and the totals come from the few findings and one count of each log dir, not from the rows that are
in order. No words are made of it, and no notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from tools.benchmarks.answer import LIMIT, Answer, complete_answer
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
    SELECT p.*, n.topic_id AS name_id, i.topic AS id_topic, CASE
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
        WHEN kind = 'future' AND copies > 0 AND wanted_topic IS NOT NULL THEN 'FUTURE'
        WHEN kind = 'future' THEN 'FUTURE_ABANDONED'
        WHEN kind = 'live' AND copies > 1 THEN 'DUPLICATE'
        WHEN kind = 'live' AND i.topic <> p.topic THEN 'RENAMED'
        WHEN moving AND (kind IS NULL OR p.topic_id IS NULL OR p.topic_id = wanted_id) THEN 'IN_FLIGHT'
        WHEN kind = 'live' AND wanted_topic IS NOT NULL AND p.topic_id IS NULL THEN 'NO_ID'
        WHEN kind = 'live' AND p.topic_id = wanted_id THEN 'OK'
        WHEN kind = 'live' AND p.topic_id <> n.topic_id THEN 'STALE_ID'
        WHEN kind = 'live' AND n.topic IS NOT NULL THEN 'NOT_ASSIGNED'
        WHEN kind = 'live' THEN 'UNKNOWN_TOPIC'
        WHEN h.directory_id IS NULL THEN 'ABSENT'
        ELSE 'MISSING' END AS verdict
    FROM (SELECT p.*, c.copies FROM paired p
          LEFT JOIN copies c ON p.node_id = c.node_id AND p.topic = c.topic AND p.partition = c.partition
          WHERE NOT coalesce(kind = 'live' AND p.topic_id = wanted_id AND metadata_state = 'ok' AND NOT moving
                             AND c.copies IS NULL, false)) p
    LEFT JOIN topics n ON n.topic = coalesce(p.topic, wanted_topic)
    LEFT JOIN topics i ON i.topic_id = p.topic_id
    LEFT JOIN homes h ON h.directory_id = wanted_directory AND h.node_id = wanted_node
"""

_VIEWS = {
    "seen": _SEEN,
    "wanted": _WANTED,
    "copies": _COPIES,
    "homes": "SELECT node_id, directory_id FROM log_dirs WHERE kind = 'log_dir' AND metadata_state = 'ok'",
    "paired": _PAIRED,
    "judged": _JUDGED,
}
"""The views to create, in this order."""

_FINDINGS = f"""
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
                     AND (SELECT min(scanned_ms) FROM log_dirs) < {NOW_MS} THEN 'SCANNED_BEFORE_METADATA'
                WHEN verdict IN ('STALE_ID', 'NOT_ASSIGNED', 'UNKNOWN_TOPIC', 'STRAY', 'FUTURE_ABANDONED')
                     AND modified_ms > {NOW_MS} THEN 'CHANGED_SINCE_METADATA' END AS doubt
    FROM judged WHERE verdict <> 'OK'
"""
"""The findings; everything but what is OK."""

_LOG_DIRS = """
    SELECT host, node_id, directory_id, log_dir, kind, topic, metadata_state, scanned_ms FROM inventory
    WHERE kind IN ('log_dir', 'internal')
"""
"""The table ``log_dirs``: a row of each, and of what the brokers keep there for themselves."""

_TOTALS = """
    SELECT verdict, broker, log_dir, count(*), sum(bytes), sum(disk_bytes),
           count(CASE WHEN kind <> 'log_dir' THEN 1 END)
    FROM findings GROUP BY verdict, broker, log_dir
"""
"""Rows, bytes, bytes on disk and entries of each verdict in each log dir, from the table ``findings``."""

_OBSERVED = """
    SELECT node_id, log_dir, count(*), sum(bytes), sum(disk_bytes)
    FROM inventory WHERE kind NOT IN ('log_dir', 'internal') GROUP BY node_id, log_dir
"""
"""Entries in each log dir, and their bytes: less what was found, they are OK."""

_AT_RISK = """
    f.verdict IN ('STALE_ID', 'NOT_ASSIGNED', 'UNKNOWN_TOPIC', 'STRAY', 'STAGED_DUE', 'MARKED_DELETE', 'RENAMED')
    AND f.disk_topic_id IS NOT NULL AND coalesce(f.bytes, 1) > 0
"""

# What is OK lies under the one ID of its topic: a topic has several only where a finding has another, or several.
_SEARCHED = f"""
    SELECT node_id, kind, topic, partition, topic_id, metadata_state FROM inventory
    WHERE topic_id IS NOT NULL AND (
        topic IN (SELECT topic FROM findings WHERE kind IN ('live', 'future') AND disk_topic_id IS NOT NULL
                  GROUP BY topic HAVING min(disk_topic_id) <> max(disk_topic_id)
                                     OR min(disk_topic_id) <> min(metadata_topic_id))
        OR (topic_id, partition) IN (SELECT f.disk_topic_id, f.partition FROM findings f WHERE {_AT_RISK}))
"""
"""The table ``searched``: the directories to compare with others of the fleet."""

_EXTENT = "count(DISTINCT partition), min(partition), max(partition), min(broker), max(broker)"

_FLEET = {
    "TOPIC_UNDER_SEVERAL_IDS": """
        SELECT * FROM (
            SELECT *, count(*) OVER (PARTITION BY topic) AS ids FROM (
                SELECT topic, topic_id, count(*) AS replicas, min(node_id) AS first_broker, max(node_id) AS last_broker
                FROM searched WHERE kind IN ('live', 'future') AND metadata_state = 'ok'
                GROUP BY topic, topic_id) each) grouped
        WHERE ids > 1 ORDER BY topic, replicas DESC, topic_id
    """,
    "DUPLICATE_DIRECTORY_ID": """
        SELECT directory_id, count(*), min(log_dir), max(log_dir) FROM log_dirs
        WHERE kind = 'log_dir' AND directory_id IS NOT NULL GROUP BY directory_id HAVING count(*) > 1
        ORDER BY directory_id
    """,
    "DUPLICATE_NODE_ID": """
        SELECT concat('broker ', node_id), count(DISTINCT host), min(log_dir), max(log_dir) FROM log_dirs
        GROUP BY node_id HAVING count(DISTINCT host) > 1
            OR count(DISTINCT CASE WHEN kind = 'internal' AND topic = '__cluster_metadata' THEN log_dir END) > 1
        ORDER BY node_id
    """,
    "LOG_DIR_NOT_REGISTERED": """
        SELECT d.log_dir, d.node_id, d.directory_id FROM log_dirs d
        LEFT JOIN registered r ON r.node_id = d.node_id AND r.directory_id = d.directory_id
        WHERE d.kind = 'log_dir' AND d.directory_id IS NOT NULL AND r.node_id IS NULL ORDER BY d.node_id, d.log_dir
    """,
    "LOG_DIR_NOT_SEEN": """
        SELECT r.directory_id, r.node_id FROM registered r
        LEFT JOIN homes h ON h.node_id = r.node_id AND h.directory_id = r.directory_id
        WHERE h.node_id IS NULL ORDER BY r.node_id, r.directory_id
    """,
    "ONLY_KNOWN_COPY": f"""
        SELECT topic, verdict, disk_topic_id, doubt, {_EXTENT} FROM (
            SELECT f.broker, f.topic, f.partition, f.verdict, f.disk_topic_id, coalesce(f.doubt, '') AS doubt
            FROM findings f JOIN searched s ON s.topic_id = f.disk_topic_id AND s.partition = f.partition
            WHERE {_AT_RISK}
            GROUP BY f.broker, f.topic, f.partition, f.verdict, f.log_dir, f.name, f.disk_topic_id, f.doubt
            HAVING count(*) = 1) alone
        GROUP BY topic, verdict, disk_topic_id, doubt ORDER BY topic, verdict, disk_topic_id, doubt
    """,
    "ONLY_IN_SYNC_COPY": f"""
        SELECT topic, verdict, doubt, {_EXTENT} FROM findings
        WHERE only_in_sync AND verdict IN ('MISSING', 'ABSENT', 'DAMAGED', 'STALE_ID')
        GROUP BY topic, verdict, doubt ORDER BY topic, verdict, doubt
    """,
    "INVENTORY_AGE": f"""
        SELECT concat('broker ', node_id), max(abs(scanned_ms - {NOW_MS})) FROM log_dirs WHERE kind = 'log_dir'
        GROUP BY node_id HAVING max(abs(scanned_ms - {NOW_MS})) > {24 * 3_600_000} ORDER BY node_id
    """,
    "BROKER_NOT_REPORTED": """
        SELECT concat('broker ', node_id), count(*) FROM replicas
        WHERE node_id NOT IN (SELECT node_id FROM log_dirs) GROUP BY node_id ORDER BY node_id
    """,
}
"""The findings that only several rows together show, by kind; the first column is what each is about."""


class Engine(Protocol):
    """What an engine does for an audit by hand; it has the tables before, each as a view."""

    def view(self, name: str, sql: str) -> None:
        """Give a query a name."""

    def keep(self, name: str, sql: str) -> None:
        """Keep the few rows of a query under a name."""

    def write(self, sql: str) -> None:
        """Write the findings to a file, and give it the name ``findings``."""

    def query(self, sql: str) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a query."""


def audit_by_hand(engine: Engine) -> Answer:
    """Audit a fleet with an engine."""
    engine.keep("log_dirs", _LOG_DIRS)
    for name, sql in _VIEWS.items():
        engine.view(name, sql)
    engine.write(_FINDINGS)
    engine.keep("searched", _SEARCHED)
    fleet = {kind: [str(row[0]) for row in engine.query(f"{sql} LIMIT {LIMIT}")] for kind, sql in _FLEET.items()}
    return complete_answer(engine.query(_TOTALS), engine.query(_OBSERVED), fleet)


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
