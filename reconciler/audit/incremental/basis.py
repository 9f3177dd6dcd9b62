"""What the verdicts of each broker rest on, in a few fingerprints that another audit can compare.

The join counts copies, ranks them and looks for log dirs within one broker, so the verdicts of a broker rest on nothing
of another. They rest on the rows of the inventories that hold its log dirs, on the replicas that the metadata wants on
it, on whether and as of when metadata speaks for it, on the topics by whose names and IDs its rows are looked up, on
the time, and on the rules. Topics and the time are compared by :mod:`reconciler.audit.incremental.kept`.

A file of inventories is known by its content, under any name. What was scanned by this audit, or read from an Arrow
file, has no fingerprint, and is judged in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

import duckdb
import pyarrow as pa

from reconciler.audit.dimension_tables import Superseded, parquet_files, rows_of
from reconciler.desired import BrokerKey


@dataclass(frozen=True, slots=True)
class Basis:
    """What the verdicts of one broker rest on."""

    cluster: str
    """Empty: its log dirs name none."""
    node: int
    inventories: str | None
    """Of the content of the files that hold its rows, and of what does not count in them; None: not known."""
    metadata: str
    """Of the replicas that are wanted on it, whatever the metadata's offset; empty: none speaks for it."""
    as_of_ms: int | None
    """As of when that metadata speaks, ms since 1970; None: it does not know."""
    rules: str
    """Of the case table and the queries, as this release has them."""


BASIS_SCHEMA = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("node", pa.int32()),
        pa.field("inventories", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("as_of_ms", pa.int64()),
        pa.field("rules", pa.string()),
    ]
)
"""The fields of :class:`Basis` as a table."""

# Two sums of 64 bits over the rows, in no order. What is hashed is hashed once more, so that no sum of two rows is the
# sum of the same values in other rows.
_WANTED = """
    SELECT cluster, node_id AS node, count(*) AS number, sum(hash(hash(1, {values}))) AS one,
           bit_xor(hash(hash(2, {values}))) AS other
    FROM replicas GROUP BY ALL
""".format(values="topic, partition, topic_id, adding OR removing, in_sync AND isr_size = 1, directory_id")

_BASIS = f"""
    CREATE TABLE basis AS
    SELECT h.cluster, h.node, h.inventories, s.as_of_ms, ? AS rules,
           CASE WHEN s.node IS NULL THEN '' ELSE concat_ws(':', s.complete, w.number, w.one, w.other) END AS metadata
    FROM (SELECT cluster, node, CASE WHEN count(*) = count(content)
                                     THEN sha256(string_agg(content, ' ' ORDER BY content)) END AS inventories
          FROM held GROUP BY ALL) h
    LEFT JOIN speaks s ON s.cluster = h.cluster AND s.node = h.node
    LEFT JOIN ({_WANTED}) w ON w.cluster = h.cluster AND w.node = h.node
"""

_OF = "coalesce(cluster_id, '') AS cluster, coalesce(node_id, -1) AS node"


def note_basis(
    connection: duckdb.DuckDBPyConnection, contents: Mapping[str, str | None], superseded: Superseded, rules: str
) -> None:
    """Make the tables ``held``, ``(file, cluster, node, content)``, and ``basis``, with the fields of :class:`Basis`.

    Args:
        connection: as :func:`reconciler.audit.dimension_tables.register_desired` left it.
        contents: the fingerprint of each inventory's content (:func:`logstore.rows.inventory_content`), by its path;
            None: not known.
        superseded: what does not count in them.
        rules: the fingerprint of the rules.
    """
    connection.execute("CREATE TABLE contents (file VARCHAR, content VARCHAR)")
    if contents:
        given = [[path, _counting(content, path, superseded)] for path, content in contents.items()]
        connection.executemany("INSERT INTO contents VALUES (?, ?)", given)
    holding = [f"SELECT DISTINCT NULL AS file, {_OF} FROM scanned"]
    if contents:
        # A name of our own for the column, because a later release may write one that is called filename.
        files = f"{parquet_files(*contents)[:-1]}, filename = 'logstore_file')"
        holding.append(f"SELECT DISTINCT logstore_file AS file, {_OF} FROM {files}")
    connection.execute(
        f"CREATE TABLE held AS SELECT h.file, h.cluster, h.node, c.content FROM ({' UNION ALL '.join(holding)}) h "
        "LEFT JOIN contents c ON c.file = h.file"
    )
    connection.execute(_BASIS, [rules])


def read_basis(connection: duckdb.DuckDBPyConnection) -> tuple[Basis, ...]:
    """Read what :func:`note_basis` noted, in order."""
    return tuple(
        Basis(**row)
        for row in rows_of(connection, f"SELECT {', '.join(BASIS_SCHEMA.names)} FROM basis ORDER BY cluster, node")
    )


def just_scanned(brokers: Iterable[BrokerKey]) -> tuple[Basis, ...]:
    """Make the basis of brokers that an audit scanned itself: nothing is known of it, so the next one judges them."""
    return tuple(Basis(each.cluster, each.node, None, "", None, "") for each in sorted(brokers))


def _counting(content: str | None, path: str, superseded: Superseded) -> str | None:
    """Add to the fingerprint of a file which of its log dirs do not count."""
    ignored = sorted(f"{each.host}\0{each.log_dir}" for each in superseded.get(path, ()))
    if content is None or not ignored:
        return content
    return f"{content}-{sha256(chr(0).join(ignored).encode()).hexdigest()}"
