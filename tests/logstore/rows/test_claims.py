"""What an inventory claims: a small file that would fill the memory is refused before its rows are read."""

from __future__ import annotations

import hashlib
import io
import os
import struct
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import InventoryError
from logstore.rows import ROW_SCHEMA, check_inventory, claims, read_inventory


def told(*problems: str) -> pa.Table:
    """Make a row for each problem, with a name of its own that does not pack well."""
    names = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(len(problems))]
    made = [{"name": name, "problem": problem} for name, problem in zip(names, problems, strict=True)]
    return pa.Table.from_pylist(made, schema=ROW_SCHEMA)


def packed(path: Path, number: int, problem: str) -> str:
    """Write a file of equal rows, each with one long text, in a few kilobytes."""
    columns = []
    for field in ROW_SCHEMA:
        if field.type == pa.string():
            text = problem if field.name == "problem" else "a"
            columns.append(pa.DictionaryArray.from_arrays(pa.array([0] * number, pa.int32()), pa.array([text])))
        else:
            columns.append(pa.array([0] * number).cast(field.type))
    table = pa.table(columns, names=ROW_SCHEMA.names).replace_schema_metadata(ROW_SCHEMA.metadata)
    pq.write_table(table, path, compression="zstd", store_schema=False)
    return str(path)


def test_more_rows_than_bytes_are_refused_before_one_is_read(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.parquet", 200_000, "")
    assert os.path.getsize(path) < 200_000
    with pytest.raises(InventoryError, match=r"claims 200,000 rows .*, which no scan writes: scan again"):
        check_inventory(path)


@pytest.mark.parametrize(("length", "refused"), [(claims.MAX_TEXT_BYTES, False), (2_000_000, True)])
def test_a_long_text_that_stands_in_every_row_is_refused_before_the_rows_are_read(
    tmp_path: Path, length: int, refused: bool
) -> None:
    path = packed(tmp_path / "a.parquet", 2000, "x" * length)
    assert os.path.getsize(path) < 20_000
    if not refused:
        check_inventory(path)
        return
    with pytest.raises(InventoryError, match="a text of 2,000,000 bytes in the column problem"):
        check_inventory(path)


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(told("x" * 70_000_000), path, compression="zstd", use_dictionary=False, write_statistics=False)
    with pytest.raises(InventoryError, match="claims 1 rows of 70,"):
        check_inventory(path)


@pytest.mark.parametrize(("often", "refused"), [(False, False), (True, True)])
def test_long_texts_count_as_often_as_they_stand_in_rows(tmp_path: Path, often: bool, refused: bool) -> None:
    long = "x" * claims.MAX_TEXT_BYTES
    path = str(tmp_path / "a.parquet")
    pq.write_table(told(long, *([long] if often else [""]) * 9_999), path, compression="zstd")
    assert 10_000 < os.path.getsize(path) < 500_000
    if not refused:
        assert read_inventory(path).num_rows == 10_000
        return
    with pytest.raises(InventoryError, match=r"claims 10,000 rows of 16\d,.* bytes in a file of .*: scan again"):
        check_inventory(path)


def varint(number: int) -> bytes:
    """Encode a number as Thrift does in its compact form."""
    out, left = bytearray(), number << 1
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def in_footer(path: str) -> int:
    """The size of the problems before packing, by the footer."""
    column = pq.read_metadata(path).row_group(0).column(ROW_SCHEMA.get_field_index("problem"))
    return int(column.total_uncompressed_size)


def test_the_header_of_a_page_counts_where_the_footer_claims_less(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(told("x" * 80_000_000), path, compression="zstd", use_dictionary=False, write_statistics=False)
    claimed = varint(in_footer(path))
    with_footer_changed(path, claimed, b"\x80" * (len(claimed) - 1) + b"\0")
    assert in_footer(path) == 0
    with pytest.raises(InventoryError, match=r"claims 1 rows of 80,\d+,\d+ bytes in a file of .*: scan again"):
        check_inventory(path)


def test_pages_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(told(*map(str, range(2_000))), path, data_page_size=64, write_batch_size=16)
    check_inventory(path)
    monkeypatch.setattr(claims, "_MOST_PAGES", 20)
    with pytest.raises(InventoryError, match=r"claims 2,000 rows of .*: scan again"):
        check_inventory(path)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data_page_version": "2.0"},
        {"compression": "gzip", "use_dictionary": False},
        {"compression": "none", "write_page_index": True, "write_page_checksum": True},
    ],
)
def test_pages_of_every_form_are_walked(tmp_path: Path, options: dict[str, Any]) -> None:
    table = told(*["the file is empty " * 100] * 3_000)
    path = str(tmp_path / "a.parquet")
    pq.write_table(table, path, **options)
    assert read_inventory(path).equals(table)
    duckdb.sql(f"COPY (FROM '{path}') TO '{tmp_path}/b.parquet' (FORMAT parquet)")
    assert read_inventory(f"{tmp_path}/b.parquet").num_rows == 3_000


@given(st.binary(max_size=40))
def test_any_bytes_are_the_header_of_a_page_or_none(data: bytes) -> None:
    try:
        _, length = claims._page_header(io.BytesIO(data), 0)
    except ValueError:
        return
    assert length > 0


ARROW_FORMS = [
    pytest.param({"compression": "zstd"}, id="zstd"),
    pytest.param({"compression": "lz4"}, id="lz4"),
    pytest.param({"compression": "zstd", "metadata_version": pa.ipc.MetadataVersion.V4}, id="before 1.0"),
    pytest.param({"compression": "zstd", "use_legacy_format": True}, id="before 0.15"),
]


def as_arrow(path: Path, table: pa.Table, **options: Any) -> str:
    # Files before Arrow 1.0 name the codec of a batch in metadata of its own.
    codec = {"ARROW:experimental_compression": options["compression"]} if "metadata_version" in options else None
    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch, custom_metadata=codec)
    return str(path)


@pytest.mark.parametrize("options", [*ARROW_FORMS, pytest.param({}, id="not packed")])
def test_a_sound_arrow_file_is_read_in_every_form(tmp_path: Path, options: dict[str, Any]) -> None:
    table = told(*["the file is empty"] * 5_000)
    assert read_inventory(as_arrow(tmp_path / "a.arrow", table, **options)).equals(table)


@pytest.mark.parametrize("options", [form for form in ARROW_FORMS if form.id != "lz4"])  # packs to a 255th at best
def test_an_arrow_file_that_unpacks_to_far_more_than_its_size_is_refused(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    path = as_arrow(tmp_path / "a.arrow", told("x" * 200_000_000), **options)
    assert os.path.getsize(path) < 1_000_000
    with pytest.raises(InventoryError, match=r"claims 1 rows of 200,\d+,\d+ bytes in a file of .*: scan again"):
        check_inventory(path)


def test_an_arrow_file_of_more_rows_than_bytes_is_refused(tmp_path: Path) -> None:
    path = as_arrow(
        tmp_path / "a.arrow", ROW_SCHEMA.empty_table().take(pa.array([None] * 200_000, pa.int64())), compression="zstd"
    )
    assert os.path.getsize(path) < 200_000
    with pytest.raises(InventoryError, match=r"claims 200,000 rows of .*: scan again"):
        check_inventory(path)


def test_the_texts_of_a_dictionary_in_an_arrow_file_count_too(tmp_path: Path) -> None:
    more = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["x" * 80_000_000]))
    path = as_arrow(tmp_path / "a.arrow", told("").append_column("more", more), compression="zstd")
    with pytest.raises(InventoryError, match=r"claims 0 rows of 80,\d+,\d+ bytes"):
        check_inventory(path)


def with_footer_changed(path: str, old: bytes, new: bytes) -> None:
    data = Path(path).read_bytes()
    at = data.rindex(old)
    Path(path).write_bytes(data[:at] + new + data[at + len(old) :])


def blocks_of(path: str) -> list[tuple[int, ...]]:
    with open(path, "rb") as file:
        return list(claims._blocks(file, os.path.getsize(path)))


def test_messages_that_lie_upon_one_another_are_refused(tmp_path: Path) -> None:
    path = as_arrow(tmp_path / "a.arrow", told("a", "b"))
    ((offset, length, body),) = blocks_of(path)
    block = struct.Struct("<qi4xq")
    with_footer_changed(path, block.pack(offset, length, body), block.pack(offset, length, os.path.getsize(path)))
    with pytest.raises(InventoryError, match=r"claims 2 rows of .*: scan again"):
        check_inventory(path)


@pytest.mark.parametrize(
    ("place", "said"),
    [((1 << 40, 64), "a message of it stands outside it"), ((8, 4), "its footer or a message of it ends too soon")],
)
def test_a_message_that_is_not_there_is_damage(tmp_path: Path, place: tuple[int, int], said: str) -> None:
    path = as_arrow(tmp_path / "a.arrow", told("a"))
    ((offset, length, body),) = blocks_of(path)
    block = struct.Struct("<qi4xq")
    with_footer_changed(path, block.pack(offset, length, body), block.pack(*place, body))
    with pytest.raises(InventoryError, match=f"is damaged or was not written to its end \\({said}\\): scan again"):
        check_inventory(path)
