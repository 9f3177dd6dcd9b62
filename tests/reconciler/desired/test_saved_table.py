"""A table that stays in its file: what it gives of it, and that a file which went or broke is said."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.desired import SavedTable, in_memory
from reconciler.errors import MetadataError

TABLE = pa.table({"topic": ["orders", None], "node_id": pa.array([1, 2], pa.int32())})


@pytest.fixture
def saved(tmp_path: Path) -> SavedTable:
    path = str(tmp_path / "replicas.parquet")
    pq.write_table(TABLE, path)
    return SavedTable(path, TABLE.schema, TABLE.num_rows)


def test_all_of_it_can_be_read(saved: SavedTable) -> None:
    assert saved.read().equals(TABLE, check_metadata=True)
    assert in_memory(saved).equals(TABLE)


def test_one_column_can_be_read_alone(saved: SavedTable) -> None:
    assert saved.column("node_id").to_pylist() == [1, 2]


def test_a_table_in_memory_is_itself() -> None:
    assert in_memory(TABLE) is TABLE


def test_a_file_that_went_or_broke_is_a_metadata_error_with_its_path(saved: SavedTable) -> None:
    path = Path(saved.path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(MetadataError, match=r"replicas.parquet cannot be read"):
        saved.read()
    path.unlink()
    with pytest.raises(MetadataError, match=r"replicas.parquet cannot be read"):
        saved.column("topic")
