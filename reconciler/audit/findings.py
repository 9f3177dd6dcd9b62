"""The columns of a finding, and the SQL with which both engines end.

A finding is a row of ``found`` (``joined`` with the verdict and the evidence of the case table) with the column names
of a report. Every verdict but OK is a finding; ``--all`` lists the OK rows as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from reconciler.verdicts import CASES, Doubt, Verdict

SCRATCH_PREFIX = "logstore-audit-"
"""The beginning of the name of a folder that is there while an audit runs; Spark's lies in the folder of the report."""

FINDINGS_FILE, TOPICS_FILE = "findings.parquet", "topics.parquet"
"""What an audit leaves in its folder: the findings, and the topics in the metadata, for the next audit."""

SUMMARY_FILE = "summary.json"
"""What a report has beside them: totals, brokers and the findings of the fleet as a whole."""

FINDING_SCHEMA = pa.schema(
    [
        pa.field("verdict", pa.string()),
        pa.field("cluster_id", pa.string()),
        pa.field("broker", pa.int32()),  # node.id; null where the log dir has none
        pa.field("host", pa.string()),
        pa.field("log_dir", pa.string()),  # null: the replica lies on no disk
        pa.field("directory_id", pa.string()),
        pa.field("name", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("namespace", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("disk_topic_id", pa.string()),
        pa.field("metadata_topic_id", pa.string()),  # of the wanted replica, else of the topic's name
        pa.field("bytes", pa.int64()),
        pa.field("disk_bytes", pa.int64()),
        pa.field("files", pa.int32()),
        pa.field("modified_ms", pa.int64()),
        pa.field("due_ms", pa.int64()),
        pa.field("copy_rank", pa.int32()),  # DUPLICATE only: 1 is the copy to keep
        pa.field("only_in_sync", pa.bool_()),  # the metadata's only in-sync replica of the partition
        pa.field("evidence", pa.string()),
        pa.field("doubt", pa.string()),  # a Doubt: one side is too old for this verdict; null: none
    ]
)

# The better copy by DESIGN §3: the wanted topic ID, then the later leader epoch, then the higher end offset, then the
# log dir that the metadata assigns. The path comes last, only so that the same input gives the same order.
_RANK = """
    row_number() OVER (
        PARTITION BY {keys}
        ORDER BY CASE WHEN disk_topic_id = wanted_topic_id THEN 0 ELSE 1 END, coalesce(leader_epoch, -1) DESC,
                 coalesce(end_offset, -1) DESC, CASE WHEN directory_id = wanted_directory_id THEN 0 ELSE 1 END,
                 host, log_dir, name)
"""

_FINDINGS = """
    SELECT verdict, nullif(cluster, '') AS cluster_id, CASE WHEN node >= 0 THEN node END AS broker, host, log_dir,
           directory_id, name, nullif(kind, '') AS kind, namespace, nullif(topic, '') AS topic,
           CASE WHEN partition >= 0 THEN partition END AS partition, nullif(disk_topic_id, '') AS disk_topic_id,
           coalesce(nullif(wanted_topic_id, ''), nullif(name_topic_id, '')) AS metadata_topic_id,
           bytes, disk_bytes, files, modified_ms, due_ms, CAST({rank} AS INTEGER) AS copy_rank, only_in_sync, evidence,
           doubt
    FROM found
"""

_PARTITION = "cluster, node, topic, partition"


def findings_sql(*apart: str) -> str:
    """Write the query for the columns of :data:`FINDING_SCHEMA` from ``found`` in one pass, in no particular order.

    ``apart``: further columns of ``found`` that all copies of a partition have in common.
    """
    rank = _RANK.format(keys=", ".join((_PARTITION, "verdict", *apart)))
    return _FINDINGS.format(rank=f"CASE WHEN verdict = 'DUPLICATE' THEN {rank} END")


# A window sorts all rows that it sees, whether or not they use it. Here ``found`` is a table, so a second pass over it
# costs far less than to sort half a million findings of which no two are copies.
FINDINGS = f"""
    {_FINDINGS.format(rank=_RANK.format(keys=_PARTITION))} WHERE verdict = 'DUPLICATE'
    UNION ALL {_FINDINGS.format(rank="NULL")} WHERE verdict <> 'DUPLICATE'
"""
"""The same query for DuckDB."""

MAY_BE_NEWER = tuple(
    verdict.value
    for verdict in Verdict
    if {case.doubt for case in CASES if case.verdict is verdict} == {Doubt.CHANGED_SINCE_METADATA}
)
"""Verdicts that are in doubt wherever what lies on the disk is newer than the metadata."""

TOTALS = f"""
    SELECT cluster, node, log_dir, verdict, count(*) AS rows_found, coalesce(sum(bytes), 0) AS bytes_found,
           coalesce(sum(disk_bytes), 0) AS disk_bytes_found,
           coalesce(sum(CASE WHEN kind <> 'internal' THEN bytes END), 0) AS bytes_counted,
           coalesce(sum(CASE WHEN kind <> 'internal' THEN disk_bytes END), 0) AS disk_bytes_counted,
           count(CASE WHEN on_disk AND kind NOT IN ('log_dir', 'internal') THEN 1 END) AS rows_observed,
           count(doubt) AS doubts_found,
           count(CASE WHEN on_disk AND verdict IN {MAY_BE_NEWER} AND modified_ms IS NULL THEN 1 END) AS undated_found,
           min(due_ms) AS first_due_ms
    FROM found GROUP BY cluster, node, log_dir, verdict
"""
"""The query over ``found`` for what each verdict says of each log dir, and for what no engine could tell."""

FEW = 100_000
"""Findings that are kept in memory once they were read, some 30 MB: a report asks for those of each verdict anew."""


class StoredFindings:
    """The findings that an audit left; few of them are read once."""

    def __init__(self, path: str) -> None:
        """Take a Parquet file or a folder of them, in the columns of FINDING_SCHEMA."""
        self._path = path
        self._kept: pa.Table | None = None

    def dataset(self) -> Any:
        """Open the files as a dataset."""
        # Where pandas is installed, pyarrow.dataset imports it, which takes as long as the audit of a hundred brokers.
        import pyarrow.dataset as ds

        return ds.dataset(self._path, schema=FINDING_SCHEMA, format="parquet")

    def of(self, verdict: str, columns: Sequence[str] = tuple(FINDING_SCHEMA.names)) -> pa.Table:
        """Return some columns of all findings of one verdict, in no particular order."""
        import pyarrow.compute as pc

        if self._kept is None:
            dataset = self.dataset()
            asked = pc.field("verdict") == verdict
            if dataset.count_rows() > FEW:
                return dataset.to_table(columns=list(columns), filter=asked)
            self._kept = dataset.to_table()
        kept = self._kept.select(list(columns))
        return kept.filter(pc.equal(self._kept.column("verdict"), verdict))
