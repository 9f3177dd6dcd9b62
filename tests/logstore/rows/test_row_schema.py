from __future__ import annotations

from logstore.rows import ROW_SCHEMA, SCHEMA_VERSION, VARYING, VERSION_KEY


def test_the_schema_carries_its_version_to_wherever_rows_are_written() -> None:
    assert ROW_SCHEMA.metadata == {VERSION_KEY: b"%d" % SCHEMA_VERSION}


def test_each_column_has_one_name_and_those_that_differ_from_row_to_row_are_among_them() -> None:
    assert len(set(ROW_SCHEMA.names)) == len(ROW_SCHEMA.names)
    assert set(VARYING) < set(ROW_SCHEMA.names)
