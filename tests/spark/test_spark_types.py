"""Arrow schemas as DDL, without a session."""

from __future__ import annotations

import pyarrow as pa
import pytest

from logstore.rows import ROW_SCHEMA
from reconciler.audit.spark.log_dirs import ddl
from reconciler.desired import BROKER_SCHEMA


def test_every_column_keeps_its_name_its_place_and_its_width() -> None:
    columns = ddl(ROW_SCHEMA).split(", ")
    assert [column.split("`")[1] for column in columns] == ROW_SCHEMA.names
    assert "`partition` int" in columns
    assert "`bytes` bigint" in columns


def test_a_list_is_an_array() -> None:
    assert ddl(BROKER_SCHEMA).endswith("`directory_ids` array<string>")


def test_a_type_that_no_table_has_is_refused() -> None:
    with pytest.raises(KeyError):
        ddl(pa.schema([pa.field("x", pa.float16())]))
