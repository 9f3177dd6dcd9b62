"""Serialize Arrow rows as JSON, NDJSON and CSV. Streams; never holds more than some thousand rows as objects.

Serves the rows of a scan and the findings of an audit alike; the caller chooses the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.csv

from reconciler.text.formatting import FORMULA_STARTS, csv_cell

PIECE = 8192
"""The number of rows that become Python objects at a time."""

Rows: TypeAlias = "pa.Table | pa.RecordBatch"


def json_objects(rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield the rows as mappings from column name to value."""
    names = rows.schema.names
    for start in range(0, rows.num_rows, PIECE):
        piece = rows.slice(start, PIECE)
        columns = [piece.column(name).to_pylist() for name in names]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def write_array(batches: Iterable[Rows], out: BinaryIO) -> None:
    """Write the rows as one JSON array, an object to a line."""
    separator = b"[\n"
    for batch in batches:
        for row in json_objects(batch):
            out.write(separator + orjson.dumps(row))
            separator = b",\n"
    out.write(b"[]" if separator == b"[\n" else b"\n]")


def write_lines(batches: Iterable[Rows], out: BinaryIO, schema_version: int) -> None:
    """Write the rows as NDJSON; each line carries the schema version, so that any part of the file stands alone."""
    for batch in batches:
        for row in json_objects(batch):
            out.write(orjson.dumps({"schema_version": schema_version, **row}) + b"\n")


def write_csv(batches: Iterable[Rows], schema: pa.Schema, out: BinaryIO) -> None:
    """Write the rows as CSV with a header row, text as :func:`csv_cell` has it; null is an empty field."""
    with pyarrow.csv.CSVWriter(out, schema) as writer:
        for batch in batches:
            writer.write(_as_cells(batch))


def _as_cells(rows: Rows) -> Rows:
    """Make every text column safe to print and to open in a spreadsheet; one that is safe costs two passes."""
    import pyarrow.compute as pc

    for index, field in enumerate(rows.schema):
        if field.type != pa.string():
            continue
        column = rows.column(index)
        runs = pc.match_substring_regex(column, f"^[{FORMULA_STARTS}]")
        if pc.all(pc.utf8_is_printable(column), min_count=0).as_py() and not pc.any(runs, min_count=0).as_py():
            continue
        shown = [None if text is None else csv_cell(text) for text in column.to_pylist()]
        rows = rows.set_column(index, field, pa.array(shown, pa.string()))
    return rows
