"""The join of rows with the desired state in Spark's SQL, as one lazily evaluated DataFrame of findings.

:data:`SPARK_VIEWS` gives the same rows and columns as :data:`reconciler.audit.join_sql.VIEWS`. Where DuckDB builds hash
tables, Spark shuffles and sorts each large side, and pays for every column again each time. So some views are written
differently, with the same answer:

- the columns that only a finding shows travel as one column ``disk``, which halves the code that Spark generates for
  every join, and keeps it below the size at which the JVM would interpret it;
- a hash leads the keys of the large join, because Spark compares the first eight bytes of the first key in place, and
  topic names often begin alike;
- ``live`` counts the copies of a live partition by a window over the keys of the join that follows, which needs no
  shuffle and no sort of its own; ``copies`` serves only the few directories that are not live;
- directories that are not live, mostly few, meet only the wanted replicas whose topic ID occurs among them;
- what is looked up of a broker is one row, and names and IDs of topics are keys of one table, because every table that
  Spark sends to all executors is a job of its own;
- an audit settles what is plainly in order first (:func:`unsettled`), by rows of few columns, and reads only the rest
  with all of them;
- ``desired`` takes its cluster from ``speaks``: of a constant, Spark would make a condition instead of a key.

The views decide nothing, as the shared text decides nothing. Tests hold both engines to the same value in every column
of a finding.

No temporary view is made in anybody's session: views are stated in the query, over DataFrames. So the findings are
a DataFrame of the session that they were asked for in, over Spark Connect too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from reconciler.audit.case_sql import case_number, doubt, evidence, is_listed, is_worth_a_look, verdict
from reconciler.audit.duckdb_join import DuckDBDialect
from reconciler.audit.duckdb_join import rules as judged_by_duckdb
from reconciler.audit.findings import findings_sql
from reconciler.audit.join_sql import (
    BY_NAME,
    BY_TOPIC_ID,
    CARRIED,
    DESIRED,
    SAME_NAME,
    VIEWS,
    WANTED,
)

_PARTITION_KEYS = "topic, partition, node, cluster"

_DISKS = f"SELECT *, struct({', '.join(CARRIED)}) AS disk FROM observed"

_HASH = "xxhash64(topic, partition, node, cluster)"

_DESIRED = f"SELECT *, {_HASH} AS hash FROM (SELECT s.cluster, s.node, {DESIRED})"

_BESIDE_LIVE = "('future', 'delete', 'stray', 'staged')"
"""Directories whose verdict depends on the live replicas of their partition on the broker."""

_NOBODYS = "concat('/', disk.name)"
"""A key that meets nothing, and spreads the rows that have none over all tasks: no topic and no ID has a slash."""

_COPIES = f"""
    SELECT {_PARTITION_KEYS}, count(*) AS copies
    FROM observed LEFT SEMI JOIN (SELECT * FROM observed WHERE kind IN {_BESIDE_LIVE}) f USING ({_PARTITION_KEYS})
    WHERE kind = 'live' AND node >= 0
    GROUP BY {_PARTITION_KEYS}
"""

_LIVE = f"""
    SELECT *, CASE WHEN node >= 0 THEN count(*) OVER (PARTITION BY hash, {_PARTITION_KEYS}) ELSE 1 END AS copies
    FROM (SELECT *, {_HASH} AS hash FROM disks WHERE kind = 'live')
"""

_PAIRS = f"""
    SELECT o.disk, {BY_NAME}, coalesce(o.copies, 0) AS copies
    FROM live o FULL OUTER JOIN wanted d ON o.hash = d.hash AND {SAME_NAME}
    UNION ALL
    SELECT o.disk, {BY_TOPIC_ID}, coalesce(c.copies, 0) AS copies
    FROM (SELECT *, CASE WHEN disk_topic_id = '' THEN {_NOBODYS} ELSE disk_topic_id END AS id_key,
                 CASE WHEN kind IN {_BESIDE_LIVE} THEN topic ELSE {_NOBODYS} END AS topic_key
          FROM disks WHERE kind <> 'live') o
    LEFT JOIN (SELECT * FROM desired
               WHERE wanted_topic_id IN (SELECT disk_topic_id FROM observed WHERE kind <> 'live')) d
      ON o.id_key = d.wanted_topic_id AND o.partition = d.partition AND o.node = d.node AND o.cluster = d.cluster
    LEFT JOIN copies c
      ON o.topic_key = c.topic AND o.partition = c.partition AND o.node = c.node AND o.cluster = c.cluster
"""

_SPEAKS = "SELECT cluster, node, complete FROM brokers WHERE speaks"

_TOPIC_NAMES = """
    SELECT cluster, concat('/', topic) AS key, topic_id AS value FROM topics
    UNION ALL SELECT cluster, topic_id AS key, topic AS value FROM topics
"""

_LOOKED_UP = """
    p.node_to_look_up IS NULL OR coalesce(b.speaks, false) AS judged,
    coalesce(p.wanted_completely, b.complete, false) AS complete,
    p.name_to_look_up IS NULL OR n.key IS NOT NULL AS name_known,
    CASE WHEN p.name_to_look_up IS NULL THEN p.wanted_topic_id ELSE coalesce(n.value, '') END AS name_topic_id,
    CASE WHEN p.disk_topic_id = '' THEN '' WHEN p.id_to_look_up IS NULL THEN p.wanted_topic
         ELSE coalesce(i.value, '') END AS id_topic,
    p.home_to_look_up IS NULL OR coalesce(array_contains(b.homes, p.home_to_look_up), false) AS home_seen,
    b.as_of_ms, b.scanned_ms
"""

_LOOKUPS = """
    LEFT JOIN brokers b ON p.node = b.node AND p.cluster = b.cluster
    LEFT JOIN topic_names n ON concat('/', p.name_to_look_up) = n.key AND p.cluster = n.cluster
    LEFT JOIN topic_names i ON p.id_to_look_up = i.key AND p.cluster = i.cluster
"""

_NOT_LIVE = 64
"""Hashes from 1 - 64 to 0 stand for directories that are not live, so that they do not all go to one task."""

_HASH_OF_ROW = f"""
    CASE WHEN kind = 'live'
         THEN xxhash64(coalesce(topic, ''), coalesce(partition, -1), coalesce(node_id, -1), coalesce(cluster_id, ''))
         ELSE -pmod(xxhash64(name), {_NOT_LIVE}) END
"""

_MET = f"""
    SELECT {BY_NAME}, coalesce(o.copies, 0) AS copies, coalesce(o.hash, d.hash) AS hash,
           coalesce({SAME_NAME}, false) AS same_name
    FROM (SELECT *, count(*) OVER (PARTITION BY hash) AS copies
          FROM (SELECT *, {_HASH} AS hash FROM observed WHERE kind = 'live' OR kind IN {_BESIDE_LIVE})) o
    FULL OUTER JOIN desired d ON o.hash = d.hash
"""
"""Live directories, those beside them and wanted replicas of one hash: a sort by one number is what Spark does best.
Other partitions of the same hash show as copies or under another name, and so does what lies beside a live one."""

_UNSETTLED = "SELECT d.* FROM desired d LEFT SEMI JOIN unsettled u ON d.hash = u.hash"

SPARK_VIEWS: dict[str, str] = {
    "observed": VIEWS["observed"],
    "disks": _DISKS,
    "speaks": _SPEAKS,
    "desired": _DESIRED,
    "copies": _COPIES,
    "live": _LIVE,
    "wanted": WANTED,
    "pairs": _PAIRS,
    "topic_names": _TOPIC_NAMES,
    "joined": f"SELECT p.*, {_LOOKED_UP} FROM pairs p {_LOOKUPS}",
}
"""The views, each after the views that it builds on, over ``rows``, ``replicas`` and ``topics`` as
:data:`reconciler.audit.join_sql.VIEWS` needs them, and ``brokers``: ``speaks`` and ``homes`` as one table (see
:func:`reconciler.audit.spark.tables.broker_frame`). ``joined`` has the columns of CARRIED within ``disk``."""

_APART = "CASE WHEN copies > 1 THEN 0L ELSE xxhash64(disk.log_dir, disk.name) END"
"""Spreads rows without a topic, which have all other keys in common; copies of a partition stay together."""


class SparkDialect:
    """The expressions of Spark that the case table needs."""

    def column(self, name: str) -> Column:
        """Name a column of the relation."""
        return sf.col(name)

    def literal(self, value: str | int | bool | None) -> Column:
        """Make a constant; None is null."""
        return sf.lit(value)

    def choose(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Column:
        """Make CASE WHEN … ELSE …."""
        (condition, value), *rest = branches
        expression = sf.when(condition, value)
        for condition, value in rest:
            expression = expression.when(condition, value)
        return expression.otherwise(otherwise)

    def concat(self, parts: Sequence[Any]) -> Column:
        """Concatenate the parts as text."""
        return sf.concat(*parts)


def select(sql: str, frames: Mapping[str, Any], views: Mapping[str, str] | None = None) -> DataFrame:
    """Run a query over DataFrames of one session by name, and over views that build on them.

    ``views``: the text of each, in an order in which each follows the views that it builds on.
    """
    stated = [f"{name} AS (SELECT * FROM {{{name}}})" for name in frames]
    stated += [f"{name} AS ({text})" for name, text in (views or {}).items()]
    session: SparkSession = next(iter(frames.values())).sparkSession
    return session.sql(f"WITH {', '.join(stated)} {sql}", **frames)


def rules(all_rows: bool) -> str:
    """Make the fingerprint of all that decides here beside the rows, as :func:`reconciler.audit.duckdb_join.rules`."""
    settled = (_MET, str(is_worth_a_look(DuckDBDialect())), _HASH_OF_ROW, _UNSETTLED)
    joined = (*SPARK_VIEWS.values(), findings_sql("apart"))
    stated = (judged_by_duckdb(all_rows), pyspark.__version__, *settled, *joined)
    return sha256("\0".join(stated).encode()).hexdigest()


def unsettled(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Find the partitions on brokers that may have a finding, lazily; ``frames`` as :func:`find` takes them.

    Nearly every replica of a fleet is in order, and its name, its topic ID and its state prove it: this reads and
    shuffles nothing else. The one column ``hash`` has each value once. Partitions may share one, so what it names may
    be in order; what it does not name is.
    """
    met = select("SELECT * FROM met", frames, {**SPARK_VIEWS, "met": _MET})
    named = met.where(~sf.col("same_name") | is_worth_a_look(SparkDialect()))
    not_live = met.sparkSession.range(1 - _NOT_LIVE, 1)
    return named.select("hash").union(not_live).distinct()


def unsettled_rows(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Keep of the table ``rows`` what the table ``unsettled`` names, and every directory that is not live."""
    named = frames["unsettled"]
    return frames["rows"].join(named, sf.expr(_HASH_OF_ROW) == named.hash, "left_semi")


def unsettled_wanted(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Keep of the wanted replicas what the table ``unsettled`` names, in the columns of the view ``desired``."""
    return select(_UNSETTLED, frames, {name: SPARK_VIEWS[name] for name in ("speaks", "desired")})


def find(frames: Mapping[str, DataFrame], all_rows: bool) -> DataFrame:
    """Join and judge rows, lazily; return the columns of FINDING_SCHEMA.

    ``frames``: the tables that :data:`SPARK_VIEWS` asks for, of one session. Where the view ``wanted`` is among them,
    it is of :func:`unsettled_wanted`, and ``rows`` of :func:`unsettled_rows`. ``all_rows``: whether to list the OK rows
    as well.
    """
    dialect = SparkDialect()
    views = {name: text for name, text in SPARK_VIEWS.items() if name not in frames}
    # The ranks of copies need this partitioning anyway. Here it separates the generated code of the filter from that
    # of the case table: together they are one method, so long that the JVM would interpret it for every row.
    judged = (
        select("SELECT * FROM joined", frames, views)
        .where(is_listed(dialect, all_rows))
        .withColumn("apart", sf.expr(_APART))
        .repartition("cluster", "node", "topic", "partition", "apart")
        .withColumn("case_no", case_number(dialect))
        .withColumns({"verdict": verdict(dialect), "evidence": evidence(dialect)})
        .select("*", "disk.*")
        .withColumn("doubt", doubt(dialect))
    )
    return select(findings_sql("apart"), {"found": judged})
