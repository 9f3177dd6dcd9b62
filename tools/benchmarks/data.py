"""The fleet of the audit benchmark: inventories that brokers wrote, and the desired state to hold them against.

    FOLDER/inventories/broker-001.parquet …   one inventory per broker, in ROW_SCHEMA, sorted by topic
    FOLDER/desired/                           what ``reconciler.sources.parquet.save`` writes
    FOLDER/complete                           there when all of it is

Topics have 50 partitions of three replicas, brokers two log dirs. Nearly all replicas are as the metadata wants them; a
small share is not, in every way in which a disk can be wrong while complete metadata speaks for it. Which ones follows
from hashes of their names, so the same number of rows makes the same fleet. Topics under several IDs are kept few on
purpose: an audit tells the first thousand, and an answer that is cut could not be compared.

Fleets of other shapes (:data:`SKEWED`) have as many wanted replicas, which lie less evenly.

``python -m tools.benchmarks.data FOLDER ROWS [SHAPE]`` makes one. It is a process of its own, so that the memory of
making a fleet does not count as the memory of the process that starts it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

CLUSTER = "benchmark-cluster-0001"
BROKERS = 100
NOW_MS = 1_800_000_000_000
"""The time of every audit of the benchmark, at which some staged directories are due and some are not."""

PARTITIONS = 50
REPLICAS = 3

EVEN, BROKER, TOPIC, ABSENT = "even", "broker", "topic", "absent"
SKEWED = {
    BROKER: "a tenth of them on one broker",
    TOPIC: "one topic with a hundredth as many partitions",
    ABSENT: "half of them on no disk",
}
"""The shapes of a fleet that is not even, each with its words."""

_ROW_GROUP = 1 << 14
"""Rows of a row group, as ``logstore.rows.inventory`` writes them."""

_MEMORY = "4GB"
"""What DuckDB may take to make a fleet; more than that goes to the disk beside it."""


def _id(text: str) -> str:
    """SQL of an ID, 22 characters of base64url, from SQL of a text: its md5 is as good as random."""
    return f"substr(replace(replace(to_base64(unhex(md5({text}))), '+', '-'), '/', '_'), 1, 22)"


# A broker's number comes from the topic, the partition and the replica's place. Places are 37 apart, so the brokers of
# a partition differ. ``fate`` decides what lies on the disk for a replica, ``luck`` whether a partition lost its
# followers.
_WANTED = f"""
    CREATE TABLE all_wanted AS
    SELECT *, {_id("'dir-' || node_id || '-' || disk")} AS directory_id,
           hash(topic, partition, node_id) % 10000 AS fate, hash(topic, partition) % 10000 AS luck
    FROM (SELECT tid, 'topic-' || lpad(tid::VARCHAR, 6, '0') AS topic, {_id("'topic-' || tid")} AS topic_id,
                 p::INTEGER AS partition, place, ({{node_id}})::INTEGER AS node_id, (p + place) % 2 AS disk
          FROM (SELECT tid, unnest(range({{partitions}})) AS p FROM range({{topics}}) t(tid)),
               range({REPLICAS}) b(place))
"""

_NODE_ID = "(tid * 7 + p * 3 + place * 37) % {brokers} + 1"
# Three in ten of the first replicas are a tenth of all; the others lie on the other brokers, as above.
_NODE_ID_OF_ONE = (
    "CASE WHEN place = 0 AND hash(tid, p) % 10 < 3 THEN 1 ELSE (tid * 7 + p * 3 + place * 37) % ({brokers} - 1) + 2 END"
)

_DESIRED = {
    "replicas": """
        SELECT topic, topic_id, partition, node_id, directory_id, place = 0 AS leader,
               place = 0 OR luck >= 20 AS in_sync, CASE WHEN luck >= 20 THEN 3 ELSE 1 END AS isr_size,
               fate BETWEEN 40 AND 49 AS adding, fate BETWEEN 50 AND 54 AS removing, 7 AS leader_epoch,
               3 AS partition_epoch
        FROM all_wanted ORDER BY topic, partition, place
    """,
    "topics": f"SELECT DISTINCT topic, topic_id, {PARTITIONS} AS partitions FROM all_wanted ORDER BY topic",
    "brokers": """
        SELECT node_id, 1 AS broker_epoch, false AS fenced,
               list(DISTINCT directory_id ORDER BY directory_id) AS directory_ids
        FROM all_wanted GROUP BY node_id ORDER BY node_id
    """,
}

# What one broker has follows from what is wanted of it and of the one before.
_NEAR = """
    CREATE OR REPLACE TEMP TABLE wanted AS
    FROM all_wanted WHERE node_id IN ({node}, ({node} + {brokers} - 2) % {brokers} + 1)
"""

# What lies where the metadata wants a replica. Each SELECT below has these columns, in this order.
_LIVE = f"""
    SELECT node_id, disk, topic || '-' || partition AS name, 'live' AS kind, topic, partition,
           CASE WHEN fate BETWEEN 10 AND 29 THEN NULL
                WHEN tid % 1000 = 3 AND fate % 3 = 0 THEN {_id("'old-' || tid")}
                WHEN tid % 2000 = 5 AND fate % 10 = 0 THEN {_id("'topic-' || (tid - 1)")}
                ELSE topic_id END AS topic_id,
           CASE WHEN fate BETWEEN 10 AND 19 THEN 'missing' WHEN fate BETWEEN 20 AND 29 THEN 'malformed' ELSE 'ok' END
           AS metadata_state,
           CASE WHEN fate BETWEEN 20 AND 29 THEN 'partition.metadata has no line topic_id' END AS problem,
           NULL::BIGINT AS due_ms, fate
    FROM wanted WHERE fate >= 10 AND {{lies_there}}
"""

# A copy on the next broker, which is not assigned there.
_NOT_ASSIGNED = """
    SELECT node_id % {brokers} + 1, disk, topic || '-' || partition, 'live', topic, partition, topic_id, 'ok', NULL,
           NULL, fate
    FROM wanted w WHERE fate BETWEEN 200 AND 219 AND NOT EXISTS (
        FROM wanted v
        WHERE v.topic = w.topic AND v.partition = w.partition AND v.node_id = w.node_id % {brokers} + 1)
"""

_LOG_DIRS = """
    SELECT DISTINCT node_id, disk, '.', 'log_dir', NULL, NULL, NULL,
           CASE WHEN node_id = 1 AND disk = 1 THEN 'absent' ELSE 'ok' END,
           CASE WHEN node_id = 1 AND disk = 1 THEN 'there is no such directory' END, NULL, 0
    FROM wanted
"""


def _beside(name: str, kind: str, columns: str, fates: tuple[int, int]) -> str:
    """SELECT of what lies beside some wanted replicas, in the broker's other log dir."""
    first, last = fates
    return f"""
        SELECT node_id, 1 - disk, {name}, '{kind}', {columns}, fate
        FROM wanted WHERE fate BETWEEN {first} AND {last}
    """


def _planted() -> list[str]:
    """SELECTs of everything beside the wanted replicas: copies, moves, what was deleted, and what nobody knows."""
    name, unique = "topic || '-' || partition", "md5(topic || partition)"
    marked = f"{name} || '.' || {unique} || '-{{}}'"
    same = "topic, partition, topic_id, 'ok', NULL, NULL"
    old = f"topic, partition, {_id(unique)}, 'ok', NULL, {{}}"
    gone = "topic || '-gone'"
    unknown = f"{gone}, partition, {_id(gone)}, 'ok', NULL, NULL"
    staged = f"'deleting/' || {_id(unique)} || '_' || partition"
    return [
        _beside(name, "live", same, (100, 104)),
        _beside(marked.format("future"), "future", same, (105, 109)),
        _beside(marked.format("future"), "future", same, (5, 9)),
        _beside(marked.format("delete"), "delete", old.format("NULL"), (120, 129)),
        _beside(marked.format("stray"), "stray", old.format("NULL"), (130, 149)),
        _beside(staged, "staged", old.format(NOW_MS + 1), (150, 159)),
        _beside(staged, "staged", old.format(NOW_MS), (160, 169)),
        _beside(f"'x-' || {unique}", "foreign", "NULL, NULL, NULL, NULL, 'no partition dir', NULL", (170, 170)),
        _beside(f"{unique} || '.tmp'", "leftover", "NULL, NULL, NULL, NULL, 'left by a crash', NULL", (171, 173)),
        _beside(
            "'recovery-point-offset-checkpoint'",
            "checkpoint_entry",
            f"{gone}, partition, NULL, NULL, 'it names a partition that has no directory', NULL",
            (174, 176),
        ),
        _beside(f"{gone} || '-' || partition", "live", unknown, (180, 199)),
        _NOT_ASSIGNED,
        _LOG_DIRS,
    ]


# The second log dir of broker 1 is not mounted: nothing is seen there but that it is absent.
_FOUND = f"""
    SELECT 'host-' || node_id AS host, '{CLUSTER}' AS cluster_id, node_id,
           CASE WHEN metadata_state = 'absent' AND kind = 'log_dir' THEN NULL
                ELSE {_id("'dir-' || node_id || '-' || disk")} END AS directory_id,
           '/data/broker-' || node_id || '/disk-' || disk AS log_dir, name, kind, '' AS namespace, topic, partition,
           topic_id, metadata_state, problem, CASE WHEN kind <> 'log_dir' THEN 1000 + fate * 997 END AS bytes,
           CASE WHEN kind <> 'log_dir' THEN 4096 + fate // 4 * 4096 END AS disk_bytes,
           CASE WHEN kind <> 'log_dir' THEN 5 END AS files, CASE WHEN kind <> 'log_dir' THEN 0 END AS leftovers,
           {NOW_MS - 10**9} + fate * 1000 AS modified_ms, hash(name, node_id) % 100000000 AS inode, due_ms,
           CASE WHEN kind = 'live' THEN fate * 31 END AS end_offset, NULL AS leader_epoch,
           {NOW_MS - 60_000} AS scanned_ms, CASE WHEN kind <> 'log_dir' THEN 1 END AS segments,
           CASE WHEN kind = 'log_dir' AND metadata_state = 'ok' THEN true END AS clean_shutdown
    FROM ({{parts}}) WHERE node_id = {{node}} AND (kind = 'log_dir' OR NOT (node_id = 1 AND disk = 1))
    ORDER BY topic NULLS FIRST, partition, log_dir, name
"""


def inventories(folder: str) -> list[str]:
    """Paths of a fleet's inventories, in order."""
    below = os.path.join(folder, "inventories")
    return [os.path.join(below, name) for name in sorted(os.listdir(below))]


def desired(folder: str) -> str:
    """The folder of a fleet's desired state."""
    return os.path.join(folder, "desired")


def trees(folder: str) -> str:
    """The folder of a fleet's log dirs, where it has real ones (:mod:`tools.benchmarks.trees`)."""
    return os.path.join(folder, "trees")


def is_complete(folder: str) -> bool:
    """Whether a fleet was made there, to its end."""
    return os.path.exists(os.path.join(folder, "complete"))


def _wanted(rows: int, brokers: int, shape: str) -> str:
    """Write the query for the wanted replicas of a fleet, about so many."""
    large = max(rows // 100, PARTITIONS) if shape == TOPIC else PARTITIONS
    topics = max((rows - large * REPLICAS) // (PARTITIONS * REPLICAS) + 1, 1)
    node_id = (_NODE_ID_OF_ONE if shape == BROKER else _NODE_ID).format(brokers=brokers)
    partitions = f"CASE WHEN tid = 0 THEN {large} ELSE {PARTITIONS} END"
    return _WANTED.format(node_id=node_id, partitions=partitions, topics=topics)


def generate(folder: str, rows: int, brokers: int = BROKERS, shape: str = EVEN) -> None:
    """Make a fleet whose metadata wants about that many replicas; what an earlier attempt left there is replaced.

    ``shape``: :data:`EVEN`, or one of :data:`SKEWED`.
    """
    import duckdb

    for below in ("inventories", "desired"):
        os.makedirs(os.path.join(folder, below), exist_ok=True)
    scratch = os.path.join(folder, "scratch.duckdb")
    if os.path.exists(scratch):
        os.remove(scratch)
    with duckdb.connect(scratch, config={"memory_limit": _MEMORY}) as connection:
        connection.execute(_wanted(rows, brokers, shape))
        _save_desired(connection, folder)
        lies_there = "hash(topic, partition, node_id, 1) % 2 = 0" if shape == ABSENT else "true"
        parts = " UNION ALL ".join([_LIVE.format(lies_there=lies_there), *_planted()])
        parts = parts.replace("{brokers}", str(brokers))
        for node in range(1, brokers + 1):
            connection.execute(_NEAR.format(node=node, brokers=brokers))
            _save_inventory(connection, folder, node, _FOUND.format(parts=parts, node=node))
    os.remove(scratch)
    with open(os.path.join(folder, "complete"), "w", encoding="ascii"):
        """Only its name matters."""


def _save_desired(connection: duckdb.DuckDBPyConnection, folder: str) -> None:
    from reconciler.desired import BROKER_SCHEMA, REPLICA_SCHEMA, TOPIC_SCHEMA, DesiredState, MetadataIdentity
    from reconciler.sources import save_state

    schemas = {"replicas": REPLICA_SCHEMA, "topics": TOPIC_SCHEMA, "brokers": BROKER_SCHEMA}
    tables = {name: connection.sql(sql).to_arrow_table().cast(schemas[name]) for name, sql in _DESIRED.items()}
    identity = MetadataIdentity("kraft", "/data/metadata", CLUSTER, timestamp_ms=NOW_MS)
    save_state(DesiredState(identity, **tables), desired(folder))


def _save_inventory(connection: duckdb.DuckDBPyConnection, folder: str, node: int, found: str) -> None:
    from logstore.rows import ROW_SCHEMA, SCHEMA_VERSION, VERSION_KEY

    types = {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT", "bool": "BOOLEAN"}
    columns = ", ".join(f"{field.name}::{types[str(field.type)]} AS {field.name}" for field in ROW_SCHEMA)
    path = os.path.join(folder, "inventories", f"broker-{node:03}.parquet")
    connection.execute(
        f"COPY (SELECT {columns} FROM ({found})) TO '{path}' (FORMAT parquet, COMPRESSION zstd, "
        f"ROW_GROUP_SIZE {_ROW_GROUP}, KV_METADATA {{'{VERSION_KEY.decode()}': '{SCHEMA_VERSION}'}})"
    )


if __name__ == "__main__":
    generate(sys.argv[1], int(sys.argv[2]), shape=(*sys.argv[3:], EVEN)[0])
