"""What an inventory claims to hold, before it is read: rows, and bytes in memory.

A few kilobytes can stand for gigabytes: Parquet writes equal values once, and both forms pack what they hold. So the
claims are added up first, from what stands beside the packed bytes, and refused where no scan writes so much into a
file of that size.

Parquet claims in its footer, and again before each page, which counts. An Arrow file claims in three places. Arrow's
Python library shows nothing of this but the footer of Parquet::

    Parquet: page    a header with the size of the page, unpacked and packed; then the page   Thrift, compact
    Arrow: footer    the place of every message; it ends with its own length and "ARROW1"     flatbuffer
    Arrow: message   the number of rows, and the place of every buffer in the body behind it  flatbuffer
    Arrow: buffer    if packed: its size unpacked, -1 for one that is not; then the bytes     int64

Source: ``parquet.thrift`` of Apache Parquet; ``File.fbs`` and ``Message.fbs`` of Apache Arrow.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from logstore.errors import InventoryError
from logstore.rows.arrow import ROW_SCHEMA

MAX_TEXT_BYTES = 1 << 14
"""Longest text in an inventory: a path has at most 4,096 bytes, and a sentence about a file quotes a part of it."""

_LEAST_UNPACKED, _MOST_PACKED = 1 << 26, 200
"""A file of N bytes may unpack to so many bytes, and so many times N; a scan's is packed to a thirteenth at best."""

TEXTS = [field.name for field in ROW_SCHEMA if field.type == pa.string()]
"""The columns of texts, which a reader takes as dictionaries: a text that is in many rows is in memory once."""

_BYTE, _SHORT, _INT, _LONG = struct.Struct("<b"), struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<q")
_BLOCK = struct.Struct("<qi4xq")
"""Where a message stands: offset, length of its metadata, length of its body."""

_MOST_PAGES, _BYTES_OF_A_PAGE = 1 << 12, 1 << 10
"""A Parquet file may have so many pages, and one more for each so many bytes; a page of a scan's has up to a MiB."""

_MOST_HEADER = 1 << 16
_DEEPEST = 4
_TRUE, _FALSE, _INTEGERS, _BINARY, _STRUCT = 1, 2, (4, 5, 6), 8, 12

_BUFFER = struct.Struct("<qq")
_TAIL = struct.Struct("<i6s")
_MAGIC = b"ARROW1"
_GOES_ON = b"\xff\xff\xff\xff"
_V5, _DICTIONARY = 4, 2


class _FlatTable(NamedTuple):
    """A table of a flatbuffer: its fields are found by their number, and one that is absent is 0, empty or None."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> _FlatTable:
        return cls(data, _INT.unpack_from(data)[0])

    def number(self, field: int, form: struct.Struct = _LONG) -> int:
        at = self._place(field)
        return 0 if at is None else int(form.unpack_from(self.data, at)[0])

    def table(self, field: int) -> _FlatTable | None:
        at = self._place(field)
        return None if at is None else _FlatTable(self.data, at + _INT.unpack_from(self.data, at)[0])

    def structs(self, field: int, form: struct.Struct) -> Iterator[tuple[int, ...]]:
        vector = self.table(field)
        if vector is not None:
            (count,) = _INT.unpack_from(self.data, vector.at)
            for number in range(count):
                yield form.unpack_from(self.data, vector.at + _INT.size + number * form.size)

    def _place(self, field: int) -> int | None:
        fields = self.at - _INT.unpack_from(self.data, self.at)[0]
        slot = 2 * _SHORT.size + field * _SHORT.size
        if slot >= _SHORT.unpack_from(self.data, fields)[0]:
            return None
        (offset,) = _SHORT.unpack_from(self.data, fields + slot)
        return self.at + offset if offset else None


def check_arrow_claims(path: str) -> None:
    """Refuse an Arrow file that would take far more memory than any scan of its size.

    Raises:
        InventoryError: it claims more rows or bytes than its size explains.
        ValueError, OSError: its footer or a message cannot be read.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        try:
            _walk_messages(path, file, size)
        except struct.error as error:
            raise ValueError("its footer or a message of it ends too soon") from error


def _walk_messages(path: str, file: BinaryIO, size: int) -> None:
    rows = unpacked = spread = 0
    for offset, length, body in _blocks(file, size):
        spread += length + body
        claimed_rows, claimed_bytes = _claims_of_message(file, offset, length, size)
        rows, unpacked = rows + claimed_rows, unpacked + claimed_bytes
        # Messages stand beside one another, so those of a sound file are together no longer than it is.
        if spread > size or not _are_plausible(rows, unpacked, size):
            raise _refused(path, rows, max(unpacked, spread), size)


def check_parquet_claims(path: str) -> None:
    """Refuse a Parquet file that would take far more memory than any scan of its size.

    The footer has the number of rows and their size before packing, and the header of each page its own, which is what
    a reader takes. A text that stands in many rows is written once, in the dictionary of its column, of which one row
    is read; only where the longest texts in all rows would be too much, the lengths of all are added up.

    Raises:
        InventoryError: it claims more rows or bytes than its size explains, or holds a text that no scan writes.
        pyarrow.ArrowException, ValueError, OSError: it cannot be read.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    size = os.path.getsize(path)
    with open(path, "rb") as opened:
        # A file of an older release may lack some of them.
        known = frozenset(pq.read_schema(opened).names)
    texts = [name for name in TEXTS if name in known]
    with open(path, "rb") as opened, pq.ParquetFile(opened, read_dictionary=texts) as file:
        rows, groups = file.metadata.num_rows, range(file.metadata.num_row_groups)
        chunks = [
            file.metadata.row_group(group).column(number)
            for group in groups
            for number in range(file.metadata.num_columns)
        ]
        unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
        if _are_plausible(rows, unpacked, size):
            unpacked = _unpacked_pages(opened, chunks, size)
        if not _are_plausible(rows, unpacked, size):
            raise _refused(path, rows, unpacked, size)
        most = unpacked
        for group in groups:
            first = next(file.iter_batches(1, row_groups=[group], columns=texts), None)
            for name, column in zip(texts, () if first is None else first.columns, strict=False):
                longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
                if longest > MAX_TEXT_BYTES:
                    raise InventoryError(
                        f"{path} holds a text of {longest:,} bytes in the column {name}, and {MAX_TEXT_BYTES:,} is "
                        "the most that a scan writes: scan again"
                    )
                most += longest * file.metadata.row_group(group).num_rows
        if not _are_plausible(rows, most, size):
            _add_up_texts(path, file, size, texts)


def check_chunk_claims(path: str, file: BinaryIO, metadata: Any, chunks: Sequence[Any]) -> None:
    """Refuse to read some columns of row groups that would take far more memory than any scan of the file's size.

    ``file``: opened at ``path``; ``metadata``: its footer.

    Raises:
        InventoryError: they claim more bytes than its size explains, or the file more rows.
        ValueError, OSError: they cannot be read.
    """
    size = os.fstat(file.fileno()).st_size
    unpacked = _unpacked_pages(file, chunks, size)
    if not _are_plausible(metadata.num_rows, unpacked, size):
        raise _refused(path, metadata.num_rows, unpacked, size)


def check_text_claims(path: str, file: BinaryIO, rows: pa.Table) -> None:
    """Refuse rows whose texts would take far more memory than any scan of the file's size; they are dictionaries yet.

    Raises:
        InventoryError: as it says.
    """
    size = os.fstat(file.fileno()).st_size
    chunks = (chunk for name in TEXTS if name in rows.column_names for chunk in rows.column(name).chunks)
    length = sum(map(_length_of_texts, chunks))
    if not _are_plausible(rows.num_rows, length, size):
        raise _refused(path, rows.num_rows, length, size)


def _unpacked_pages(file: BinaryIO, chunks: Sequence[Any], size: int) -> int:
    """Add up what the pages take when they are unpacked; one byte more than is plausible where there are too many."""
    unpacked = pages = 0
    for chunk in chunks:
        # A chunk without rows has no page of data, whose place is then 0.
        at = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0)
        end = at + chunk.total_compressed_size if at else 0
        while at < end:
            numbers, length = _page_header(file, at)
            pages += 1
            unpacked += max(numbers.get(2, 0), 0)
            at += length + max(numbers.get(3, 0), 0)
            if pages > _MOST_PAGES + size // _BYTES_OF_A_PAGE or unpacked > _most_unpacked(size):
                return max(unpacked, _most_unpacked(size) + 1)
    return unpacked


def _page_header(file: BinaryIO, at: int) -> tuple[dict[int, int], int]:
    """Read the numbers in a page's header, by field, and the length of the header."""
    file.seek(at)
    data = file.read(_BYTES_OF_A_PAGE)
    try:
        return _thrift_struct(data, 0)
    except IndexError:  # a header with long texts in its statistics
        data += file.read(_MOST_HEADER)
    try:
        return _thrift_struct(data, 0)
    except IndexError as error:
        raise ValueError("the header of a page of it cannot be read") from error


def _thrift_struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, int], int]:
    """Read the integers of a struct in Thrift's compact form, and the offset behind it; skip its other fields."""
    numbers: dict[int, int] = {}
    field = 0
    while head := data[at]:
        at += 1
        kind, step = head & 0x0F, head >> 4
        if step:
            field += step
        else:
            field, at = _thrift_number(data, at)
        if kind in _INTEGERS:
            numbers[field], at = _thrift_number(data, at)
        elif kind == _BINARY:
            length, at = _thrift_varint(data, at)
            at += length
        elif kind == _STRUCT and depth < _DEEPEST:
            _, at = _thrift_struct(data, at, depth + 1)
        elif kind not in (_TRUE, _FALSE):
            raise ValueError("the header of a page of it has another form")
    return numbers, at + 1


def _thrift_number(data: bytes, at: int) -> tuple[int, int]:
    raw, at = _thrift_varint(data, at)
    return (raw >> 1) ^ -(raw & 1), at


def _thrift_varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 0x80:  # nearly every one
        return value, at + 1
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("the header of a page of it has a number of more than 64 bits")


def _add_up_texts(path: str, file: Any, size: int, columns: Sequence[str]) -> None:
    """Add up the lengths of the texts of all rows, and refuse them where they are too much for a file of this size."""
    rows = texts = 0
    for batch in file.iter_batches(columns=columns):
        rows += batch.num_rows
        texts += sum(map(_length_of_texts, batch.columns))
        if not _are_plausible(rows, texts, size):
            raise _refused(path, file.metadata.num_rows, texts, size)


def _length_of_texts(column: pa.DictionaryArray) -> int:
    import pyarrow.compute as pc

    return pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0


def _most_unpacked(size: int) -> int:
    return _LEAST_UNPACKED + _MOST_PACKED * size


def _are_plausible(rows: int, unpacked: int, size: int) -> bool:
    return rows <= size and unpacked <= _most_unpacked(size)


def _refused(path: str, rows: int, unpacked: int, size: int) -> InventoryError:
    return InventoryError(
        f"{path} claims {rows:,} rows of {unpacked:,} bytes in a file of {size:,} bytes, which no scan writes: scan "
        "again"
    )


def _blocks(file: BinaryIO, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of all messages, as the footer has them."""
    file.seek(size - _TAIL.size)
    length, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != _MAGIC or not 0 < length <= size - _TAIL.size:
        raise ValueError("it has no footer")
    file.seek(size - _TAIL.size - length)
    footer = _FlatTable.root(file.read(length))
    for field in (2, 3):  # the dictionaries, the batches of rows
        yield from footer.structs(field, _BLOCK)


def _claims_of_message(file: BinaryIO, offset: int, length: int, size: int) -> tuple[int, int]:
    """Return the number of rows that a message claims, and of their bytes when they are unpacked."""
    if not 0 <= offset <= offset + length <= size:
        raise ValueError("a message of it stands outside it")
    file.seek(offset)
    data = file.read(length)
    message = _FlatTable.root(data[8 if data[:4] == _GOES_ON else 4 :])
    batch, is_dictionary = message.table(2), message.number(1, _BYTE) == _DICTIONARY
    if batch is not None and is_dictionary:
        batch = batch.table(1)
    if batch is None:
        return 0, 0
    is_packed = batch.table(3) is not None or (message.number(0, _SHORT) < _V5 and message.table(4) is not None)
    unpacked = 0
    for start, held in batch.structs(2, _BUFFER):
        claimed = held
        if is_packed and held >= _LONG.size:
            file.seek(offset + length + start)
            (claimed,) = _LONG.unpack(file.read(_LONG.size))
        unpacked += max(held, claimed)
    return 0 if is_dictionary else batch.number(0), unpacked
