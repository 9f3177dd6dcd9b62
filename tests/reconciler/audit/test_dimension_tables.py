"""The small tables of an audit, from a few rows that an engine would have registered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.audit.dimension_tables import (
    brokers_in,
    keep_log_dirs,
    keep_metadata,
    parquet_files,
    parquet_folder,
    quoted,
    rows_of,
)
from reconciler.desired import BrokerKey, JudgedBroker, RegisteredLogDir

OBSERVED = """
    SELECT *, 'h' AS host, '/' || directory_id AS log_dir, '' AS topic, '' AS problem, true AS clean_shutdown,
           CASE WHEN directory_id = 'd1' THEN 70 ELSE 60 END AS scanned_ms
    FROM (VALUES ('c1', 1, 'log_dir', 'ok', 'd1'), ('c1', 1, 'live', 'ok', 'd1'), ('c1', 1, 'log_dir', 'absent', NULL),
                 ('c1', 2, 'internal', 'ok', 'd2'), ('c2', 3, 'log_dir', 'ok', 'd3'))
         rows (cluster, node, kind, state, directory_id)
"""


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute(f"CREATE VIEW observed AS {OBSERVED}")
        opened.execute("CREATE TABLE disks AS SELECT 'c9' AS cluster")
        yield opened


def values(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    return connection.execute(f"FROM {table} ORDER BY ALL").fetchall()


def test_only_rows_about_log_dirs_are_kept_and_only_log_dirs_make_a_broker(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    assert set(keep_log_dirs(connection)) == {BrokerKey("c1", 1), BrokerKey("c2", 3)}
    assert {row["kind"] for row in rows_of(connection, "FROM log_dirs")} == {"log_dir", "internal"}
    assert set(brokers_in(connection)) == {BrokerKey("c1", 1), BrokerKey("c2", 3)}


def test_what_metadata_says_of_brokers_is_kept_and_homes_are_log_dirs_that_can_be_trusted(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    keep_log_dirs(connection)
    keep_metadata(
        connection,
        ["c1"],
        [JudgedBroker("c1", 1, True, 65)],
        [RegisteredLogDir("c1", 1, "d1"), RegisteredLogDir("c1", 1, "d5")],
    )
    assert values(connection, "speaks") == [("c1", 1, True, 65, 60)]
    assert values(connection, "homes") == [("c1", 1, "d1"), ("c2", 3, "d3")]
    assert values(connection, "registered") == [("c1", 1, "d1"), ("c1", 1, "d5")]


def test_every_cluster_has_a_number_wherever_it_was_seen(connection: duckdb.DuckDBPyConnection) -> None:
    keep_log_dirs(connection)
    keep_metadata(connection, ["c'5"], [])
    (names,) = connection.execute("SELECT enum_range(NULL::clusters)").fetchall()[0]
    assert names == ["", "c'5", "c1", "c2", "c9"]


def test_a_text_with_a_quote_stays_that_text(connection: duckdb.DuckDBPyConnection) -> None:
    assert rows_of(connection, f"SELECT {quoted(chr(39))} AS it") == [{"it": "'"}]


def test_files_are_read_as_their_paths_stand_and_folders_without_what_lies_deeper(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    folder = tmp_path / "node=1" / "[a]"
    (folder / "deeper.parquet").mkdir(parents=True)
    for number, path in enumerate((folder / "*.parquet", folder / "x.parquet")):
        pq.write_table(pa.table({"number": [number]}), path)
    assert rows_of(connection, f"FROM {parquet_files(str(folder / '*.parquet'))}") == [{"number": 0}]
    assert values(connection, parquet_folder(str(folder))) == [(0,), (1,)]
