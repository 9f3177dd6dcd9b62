"""The difference of two audits: findings that are new, gone or grown, and topics whose ID changed.

A finding of the fleet as a whole is the same one where its kind, its cluster and its subject are the same. Another
finding is the same one where its verdict, its place and the topic ID on the disk are the same. It has grown where it
takes more space. Replicas that are OK are no findings, and are left out where an audit listed them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from reconciler.audit import FleetKey
from reconciler.errors import UsageError
from reconciler.history.results import Result
from reconciler.verdicts import BENIGN, URGENCY, Verdict

DIFF_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""

NEW, GONE, GROWN = "new", "gone", "grown"

_KEY = {
    "cluster_id": "''", "broker": "-1", "log_dir": "''", "name": "''", "topic": "''", "partition": "-1",
    "disk_topic_id": "''", "verdict": "''",
}  # fmt: skip
"""What makes a finding the same one, with what stands for null."""

_KEYS = ", ".join(f"coalesce({name}, {instead}) AS {name}" for name, instead in _KEY.items())

_SIDE = f"""
    SELECT {_KEYS}, sum(disk_bytes) AS disk_bytes, any_value(metadata_topic_id) AS metadata_topic_id,
           any_value(evidence) AS evidence
    FROM {{side}}_findings WHERE verdict <> 'OK' GROUP BY ALL
"""

_SHOWN = ", ".join(f"nullif({name}, {instead}) AS {name}" for name, instead in _KEY.items() if name != "verdict")

_CHANGES = f"""
    SELECT change, verdict, {_SHOWN}, metadata_topic_id, old_disk_bytes, new_disk_bytes, evidence
    FROM (SELECT CASE WHEN o.is_there IS NULL THEN '{NEW}' WHEN n.is_there IS NULL THEN '{GONE}'
                      ELSE '{GROWN}' END AS change,
                 {", ".join(_KEY)}, coalesce(n.metadata_topic_id, o.metadata_topic_id) AS metadata_topic_id,
                 CAST(o.disk_bytes AS BIGINT) AS old_disk_bytes, CAST(n.disk_bytes AS BIGINT) AS new_disk_bytes,
                 coalesce(n.evidence, o.evidence) AS evidence
          FROM (SELECT *, true AS is_there FROM old_side) o
          FULL JOIN (SELECT *, true AS is_there FROM new_side) n USING ({", ".join(_KEY)})
          WHERE o.is_there IS NULL OR n.is_there IS NULL OR n.disk_bytes > o.disk_bytes)
    ORDER BY list_position(['{NEW}', '{GROWN}', '{GONE}'], change),
             list_position({[each.value for each in URGENCY]}, verdict), broker, topic, partition, log_dir, name
"""

_TOPICS = """
    SELECT nullif(o.cluster, '') AS cluster_id, topic, o.topic_id AS old_topic_id, n.topic_id AS new_topic_id
    FROM old_topics o JOIN new_topics n USING (cluster, topic)
    WHERE o.topic_id <> n.topic_id ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one audit to another."""

    old: str
    new: str
    findings: pa.Table
    """``change`` (``new``, ``grown`` or ``gone``), verdict, place, topic IDs, space before and after, and evidence."""
    topics: Sequence[Mapping[str, Any]] | None
    """The topics whose ID changed, with both; None: one side does not know the topics."""
    fleet: Sequence[Mapping[str, Any]] | None
    """The findings of the fleet as a whole that are new or gone: ``change``, and the fields of
    :class:`reconciler.audit.FleetFinding`; None: one side does not know them."""
    old_clusters: frozenset[str] = frozenset()
    """The IDs of the clusters that the first audit is about, as far as its findings and topics name them."""
    new_clusters: frozenset[str] = frozenset()

    @property
    def totals(self) -> dict[str, dict[str, int]]:
        """Number of findings by change and verdict, the most urgent first."""
        counted: dict[str, dict[str, int]] = {NEW: {}, GROWN: {}, GONE: {}}
        for row in (
            self.findings.group_by(["change", "verdict"], use_threads=False).aggregate([([], "count_all")]).to_pylist()
        ):
            counted[row["change"]][row["verdict"]] = row["count_all"]
        return counted

    @property
    def is_of_other_clusters(self) -> bool:
        """Whether the audits are about different clusters, so that what one has is new and what the other has gone."""
        return bool(self.old_clusters and self.new_clusters) and self.old_clusters.isdisjoint(self.new_clusters)

    @property
    def is_clean(self) -> bool:
        """Whether nothing that asks for action came or grew, and no topic got another ID."""
        worse = {*self.totals[NEW], *self.totals[GROWN]}
        of_fleet = any(each["change"] == NEW for each in self.fleet or ())
        return not self.topics and not of_fleet and all(Verdict(each) in BENIGN for each in worse)


def compare_results(old: Result, new: Result) -> Difference:
    """Compare two results of audits.

    Raises:
        UsageError: one is damaged.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="logstore-diff-") as spill, duckdb.connect() as connection:
            connection.execute("SET temp_directory = ?", [spill])
            for side, result in (("old", old), ("new", new)):
                connection.register(f"{side}_findings", result.findings)
                connection.execute(f"CREATE TEMP TABLE {side}_side AS {_SIDE.format(side=side)}")
                if result.topics is not None:
                    connection.register(f"{side}_topics", result.topics)
            clusters = [_clusters_of(connection, side, result) for side, result in (("old", old), ("new", new))]
            findings = connection.sql(_CHANGES).to_arrow_table()
            topics = None
            if old.topics is not None and new.topics is not None:
                topics = connection.sql(_TOPICS).to_arrow_table().to_pylist()
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise UsageError(f"{old.name} and {new.name} cannot be compared: {str(error).splitlines()[0]:.200}") from error
    return Difference(old.name, new.name, findings, topics, _fleet_changes(old.fleet, new.fleet), *clusters)


def _clusters_of(connection: duckdb.DuckDBPyConnection, side: str, result: Result) -> frozenset[str]:
    """Gather the IDs of clusters that the findings of one side and its topics name."""
    sql = f"SELECT DISTINCT cluster_id FROM {side}_findings"
    if result.topics is not None:
        sql += f" UNION SELECT DISTINCT cluster FROM {side}_topics"
    return frozenset(cluster for (cluster,) in connection.sql(sql).fetchall() if cluster)


def _fleet_changes(old: pa.Table | None, new: pa.Table | None) -> list[Mapping[str, Any]] | None:
    """List what came and what went, in the order of the reports; they are few, because each kind has a limit."""
    if old is None or new is None:
        return None

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in FleetKey._fields)

    sides = [each.to_pylist() for each in (old, new)]
    before, now = ({key(row) for row in side} for side in sides)
    return [{"change": NEW, **row} for row in sides[1] if key(row) not in before] + [
        {"change": GONE, **row} for row in sides[0] if key(row) not in now
    ]
