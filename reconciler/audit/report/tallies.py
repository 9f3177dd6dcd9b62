"""The sums over all findings that the page shows: by broker and verdict, by topic, and who holds which topic ID.

DuckDB adds them up where the findings lie, so that a million of them cost no more memory than a few.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import duckdb
import pyarrow.dataset as ds

from reconciler.audit.dimension_tables import rows_of
from reconciler.audit.duckdb_join import configure
from reconciler.audit.findings import FINDING_SCHEMA
from reconciler.audit.result import AuditResult
from reconciler.verdicts import BENIGN, IGNORED_FILE, URGENCY, Severity, Verdict, severity

TO_ACT_ON = tuple(verdict for verdict in URGENCY if verdict not in BENIGN)
"""The verdicts that ask for action, the most urgent first."""

RECLAIMABLE = (
    *(Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC, Verdict.STRAY),
    *(Verdict.DUPLICATE, Verdict.STAGED, Verdict.STAGED_DUE),
)
"""What a plan or a repair stages once its checks hold, and a purge deletes; of a DUPLICATE, not the copy of rank 1."""

WORST_TOPICS = 20

Broker = tuple[str | None, int | None]
"""Cluster ID and node.id, either None where the log dir has none."""


class Cell(NamedTuple):
    """The findings of one verdict on one broker that are alike for the page."""

    broker: Broker
    verdict: Verdict
    severity: Severity
    is_reclaimable: bool
    rows: int
    disk_bytes: int


class TopicTally(NamedTuple):
    """The findings of one topic that ask for action."""

    cluster_id: str | None
    topic: str
    brokers: Sequence[int]
    verdicts: Mapping[Verdict, int]
    """Rows by verdict, the most urgent first."""
    disk_bytes: int


class Tallies(NamedTuple):
    """All sums over the findings of an audit."""

    cells: Sequence[Cell]
    topics: Sequence[TopicTally]
    """The worst, at most :data:`WORST_TOPICS`: those with the most critical findings first, then the largest."""
    holders: Mapping[tuple[str | None, str, str], tuple[int, Sequence[int]]]
    """By cluster, topic and topic ID: how many findings hold it, and on which brokers; topics under several IDs."""


_CELLS = f"""
    SELECT cluster_id, broker, verdict, count(*) AS found, CAST(coalesce(sum(disk_bytes), 0) AS BIGINT) AS disk_bytes,
           verdict = 'FOREIGN' AND starts_with(evidence, '{IGNORED_FILE}') AS is_ignored,
           verdict IN {tuple(each.value for each in RECLAIMABLE)}
               AND (verdict <> 'DUPLICATE' OR copy_rank > 1) AS is_reclaimable
    FROM found GROUP BY ALL
"""

_TOPICS = f"""
    SELECT cluster_id, topic, list_sort(list_distinct(flatten(list(brokers)))) AS brokers,
           map_from_entries(list((verdict, found))) AS verdicts, CAST(sum(disk_bytes) AS BIGINT) AS disk_bytes
    FROM (SELECT cluster_id, topic, verdict, count(*) AS found, coalesce(sum(disk_bytes), 0) AS disk_bytes,
                 coalesce(list(DISTINCT broker) FILTER (broker IS NOT NULL), []) AS brokers
          FROM found WHERE topic IS NOT NULL AND verdict IN {tuple(each.value for each in TO_ACT_ON)} GROUP BY ALL)
    GROUP BY cluster_id, topic
    ORDER BY coalesce(sum(found) FILTER (verdict IN
             {tuple(each.value for each in TO_ACT_ON if severity(each) is Severity.CRITICAL)}), 0) DESC,
             disk_bytes DESC, sum(found) DESC, cluster_id, topic
    LIMIT {WORST_TOPICS}
"""

_HOLDERS = """
    SELECT cluster_id, topic, disk_topic_id, count(*) AS replicas,
           coalesce(list_sort(list(DISTINCT broker) FILTER (broker IS NOT NULL)), []) AS brokers
    FROM found JOIN several USING (topic)
    WHERE kind IN ('live', 'future') AND disk_topic_id IS NOT NULL
    GROUP BY ALL
"""


def tally(result: AuditResult) -> Tallies:
    """Add up the findings of an audit, OK rows left out."""
    several = sorted({finding.subject for finding in result.fleet if finding.held})
    with tempfile.TemporaryDirectory(prefix="logstore-report-") as spill, duckdb.connect() as connection:
        configure(connection, spill)
        dataset = ds.dataset(result.findings_path, schema=FINDING_SCHEMA, format="parquet")
        connection.register("found", dataset)
        cells = rows_of(connection, _CELLS)
        topics = rows_of(connection, _TOPICS)
        holders = []
        if several:
            connection.execute("CREATE TABLE several AS SELECT unnest(CAST(? AS VARCHAR[])) AS topic", [several])
            holders = rows_of(connection, _HOLDERS)
    return Tallies(
        [
            Cell(
                (row["cluster_id"], row["broker"]),
                Verdict(row["verdict"]),
                Severity.CALM if row["is_ignored"] else severity(Verdict(row["verdict"])),
                bool(row["is_reclaimable"]),
                int(row["found"]),
                int(row["disk_bytes"]),
            )
            for row in cells
            if row["verdict"] != Verdict.OK
        ],
        [
            TopicTally(
                row["cluster_id"],
                row["topic"],
                row["brokers"],
                {each: row["verdicts"][each.value] for each in URGENCY if each.value in row["verdicts"]},
                int(row["disk_bytes"]),
            )
            for row in topics
        ],
        {
            (row["cluster_id"], row["topic"], row["disk_topic_id"]): (int(row["replicas"]), row["brokers"])
            for row in holders
        },
    )
