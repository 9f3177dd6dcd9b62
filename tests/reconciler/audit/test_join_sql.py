"""The views, read as text: what both engines must be able to run, and that the joined row is complete."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from logstore.rows import ROW_SCHEMA
from reconciler.audit.join_sql import VIEWS
from reconciler.desired import REPLICA_SCHEMA, TOPIC_SCHEMA
from reconciler.verdicts import JoinedRow


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, schema in (("scanned", ROW_SCHEMA), ("r", REPLICA_SCHEMA), ("t", TOPIC_SCHEMA)):
        connection.register(name, schema.empty_table())
    connection.execute("CREATE VIEW rows AS SELECT *, CAST(0 AS BIGINT) AS now_ms FROM scanned")
    connection.execute("CREATE VIEW replicas AS SELECT '' AS cluster, * FROM r")
    connection.execute("CREATE VIEW topics AS SELECT '' AS cluster, * FROM t")
    connection.execute("CREATE TABLE speaks (cluster VARCHAR, node INTEGER, complete BOOLEAN)")
    connection.execute("CREATE TABLE homes (cluster VARCHAR, node INTEGER, directory_id VARCHAR)")
    for name, sql in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {sql}")
    return connection


def test_joined_has_every_column_of_the_joined_row() -> None:
    columns = {column[0] for column in connect().execute("SELECT * FROM joined").description or ()}
    assert set(JoinedRow.__dataclass_fields__) <= columns


def test_nothing_joined_with_nothing_is_nothing() -> None:
    assert connect().execute("SELECT count(*) FROM joined").fetchall() == [(0,)]


def test_no_column_of_the_joined_row_is_null_on_either_side_alone() -> None:
    connection = connect()
    live = dict.fromkeys(ROW_SCHEMA.names) | {"kind": "live", "name": "t-0", "topic": "t", "partition": 0}
    other = dict.fromkeys(ROW_SCHEMA.names) | {"kind": "foreign", "name": "lost+found"}
    connection.register("scanned", pa.Table.from_pylist([live, other], schema=ROW_SCHEMA))
    wanted = dict.fromkeys(REPLICA_SCHEMA.names) | {
        "topic": "u", "partition": 1, "node_id": 1, "isr_size": 1, "in_sync": True, "adding": False, "removing": False,
    }  # fmt: skip
    connection.register("r", pa.Table.from_pylist([wanted], schema=REPLICA_SCHEMA))
    connection.execute("INSERT INTO speaks VALUES ('', 1, true)")
    columns = ", ".join(JoinedRow.__dataclass_fields__)
    rows = connection.execute(f"SELECT {columns} FROM joined").fetchall()
    assert len(rows) == 3
    assert all(value is not None for row in rows for value in row)
