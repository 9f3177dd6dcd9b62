"""Rows as JSON, NDJSON and CSV."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest

from reconciler.text import csv_cell, csv_text, json_objects, write_array, write_csv, write_lines
from reconciler.text.serialize import PIECE

SCHEMA = pa.schema([("name", pa.string()), ("bytes", pa.int64()), ("due", pa.bool_())])


def table(*rows: tuple[str | None, int | None, bool]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


TABLES = [table(("a", 1, True), ("b", None, False)), table(), table(('c,"\x1b[2J', 3, True))]


def test_objects_come_row_by_row_however_many_pieces_it_takes() -> None:
    many = pa.table({"n": pa.array(range(PIECE + 1))})
    assert [row["n"] for row in json_objects(many)] == list(range(PIECE + 1))


def test_an_array_of_several_tables_is_one_json_document() -> None:
    out = io.BytesIO()
    write_array(TABLES, out)
    assert [row["name"] for row in json.loads(out.getvalue())] == ["a", "b", 'c,"\x1b[2J']


def test_an_array_of_nothing_is_empty() -> None:
    for tables in ([], [table()]):
        out = io.BytesIO()
        write_array(tables, out)
        assert json.loads(out.getvalue()) == []


def test_every_line_of_ndjson_stands_alone() -> None:
    out = io.BytesIO()
    write_lines(TABLES, out, 7)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["schema_version"] for line in lines] == [7, 7, 7]
    assert lines[1] == {"schema_version": 7, "name": "b", "bytes": None, "due": False}


def test_csv_has_one_header_empty_fields_for_null_and_visible_control_characters() -> None:
    out = io.BytesIO()
    write_csv(TABLES, SCHEMA, out)
    rows = list(csv.reader(io.StringIO(out.getvalue().decode())))
    assert rows == [["name", "bytes", "due"], ["a", "1", "true"], ["b", "", "false"], ['c,"\\x1b[2J', "3", "true"]]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x"])
def test_text_that_a_spreadsheet_would_run_is_marked_and_a_negative_number_is_a_number(text: str) -> None:
    out = io.BytesIO()
    write_csv([pa.Table.from_pylist([{"name": text, "bytes": -1, "due": None}], SCHEMA)], SCHEMA, out)
    assert list(csv.reader(io.StringIO(out.getvalue().decode())))[1] == [f"'{text}", "-1", ""]
    assert csv_text(["name", "bytes"], [{"name": text, "bytes": -1}]) == f"name,bytes\n'{text},-1\n"
    assert csv_cell(f"a{text}\n") == f"a{text}\\n"


def test_csv_of_nothing_is_its_header() -> None:
    out = io.BytesIO()
    write_csv([], SCHEMA, out)
    assert out.getvalue().decode().strip() == '"name","bytes","due"'
