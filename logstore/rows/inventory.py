"""Inventories: the rows of a scan as a file, written on one machine and read on another.

A valid inventory has the columns of ``ROW_SCHEMA`` and a known schema version. Two forms hold the same rows: Parquet,
which an audit joins without loading it, and an Arrow IPC file. The parts of Arrow that read and write Parquet take long
to import, so they are imported where they are used.

The footer of a Parquet inventory holds the number of bytes before it and their CRC-32C, because engines read damaged
pages without complaint. An Arrow file, and a file that another program wrote, is read without such a check.

An inventory of an older release may lack columns that came since. Where those are there that say what a row is
(:data:`NEEDED`), it is read, and the others are null, which is unknown.

A Parquet inventory is sorted by topic and partition, in small row groups, and each page has a checksum of its own. So a
few rows are found (:func:`find_rows`) by the least and the greatest value of each row group, and what is read is sound.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any, BinaryIO

import pyarrow as pa

from logstore.errors import InventoryError
from logstore.fs import SummedWriter, crc32c_of_file
from logstore.rows.arrow import ROW_SCHEMA
from logstore.rows.claims import TEXTS, check_arrow_claims, check_chunk_claims, check_parquet_claims, check_text_claims
from logstore.rows.rows import SCHEMA_VERSION, VERSION_KEY, Kind, LogDirOnHost
from logstore.tunables import INVENTORY_GROUP_ROWS, INVENTORY_ROWS_AT_ONCE

CHECKSUM_KEY = b"logstore.crc32c"
"""In a Parquet file's metadata: ``LENGTH:CRC`` of everything before the footer."""

NEEDED = (
    "cluster_id", "node_id", "log_dir", "name", "kind", "topic", "partition", "topic_id", "metadata_state",
)  # fmt: skip
"""The columns that identity, kind, topic and topic ID come from; a file without one of them is no inventory."""

_FOOTER_TAIL = 8
"""Bytes after a Parquet file's footer: its length, and the magic."""


class InventoryForm(StrEnum):
    """The file format of an inventory."""

    PARQUET = "parquet"
    ARROW = "arrow"


_MAGIC = {b"PAR1": InventoryForm.PARQUET, b"ARRO": InventoryForm.ARROW}


def write_inventory(
    tables: Iterable[pa.Table], out: BinaryIO, form: InventoryForm, schema: pa.Schema = ROW_SCHEMA
) -> int:
    """Write tables one after the other into an open file; return the number of rows.

    The tables have the columns of the schema, whose metadata should carry the schema version; ``out`` is opened for
    writing bytes, and is not closed. Only the rows of scans, and only in Parquet, are sorted on the way.

    Raises:
        OSError: the file cannot be written, and is no inventory now.
    """
    rows = 0
    summed = SummedWriter(out) if form is InventoryForm.PARQUET else None
    is_sorted = summed is not None and schema.equals(ROW_SCHEMA)
    with _writer(pa.PythonFile(out if summed is None else summed, "w"), form, schema) as writer:
        for table in _gathered(tables, schema):
            if is_sorted:
                writer.write_table(_by_topic(table), INVENTORY_GROUP_ROWS)
            else:
                writer.write_table(table)
            rows += table.num_rows
        if summed is not None:
            writer.add_key_value_metadata({CHECKSUM_KEY: f"{summed.length}:{summed.crc32c}"})
    return rows


def inventory_form(path: str) -> InventoryForm | None:
    """Tell the form of an inventory by its first bytes; None: it is no inventory, or cannot be read."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return _MAGIC.get(file.read(4))
    except OSError:
        return None


def check_inventory(path: str) -> None:
    """Check that a file is an inventory with known columns and sound bytes, without reading its rows.

    Raises:
        InventoryError: it is something else, damaged, of another version, lacks columns, or would take far more memory
            than a scan of its size. The message says what to do.
    """
    try:
        _check_schema(path, _dataset(path).schema)
    except UnicodeDecodeError as error:  # Arrow decodes a column's name only when it is read
        raise _damaged(path, error) from error
    _check_bytes(path)
    _check_claims(path)


def read_inventory(path: str, ignored: Collection[LogDirOnHost] = ()) -> pa.Table:
    """Read the rows of an inventory, in ROW_SCHEMA; columns that a later version added are left out.

    ``ignored``: log dirs whose rows are left out (:class:`logstore.rows.InventorySet`).

    Raises:
        InventoryError: as :func:`check_inventory`, or its rows are damaged.
    """
    check_inventory(path)
    try:
        dataset = _dataset(path)
        rows = _completed(dataset.to_table(columns=_present(dataset.schema)))
        return rows if not ignored else rows.filter(_counting(ignored))
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def inventory_content(path: str) -> str:
    """Make the fingerprint of an inventory that was checked: its size, the checksum of its rows, and its footer.

    Two files have the same where they hold the same bytes, whatever their names. The footer has the times of the scans,
    and the checksum that was verified. A file without that checksum is read whole.

    Raises:
        InventoryError: the file cannot be read.
    """
    from hashlib import file_digest, sha256

    import pyarrow.parquet as pq

    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            if inventory_form(path) is InventoryForm.PARQUET:
                metadata = pq.read_metadata(file)
                if CHECKSUM_KEY in (metadata.metadata or {}):
                    file.seek(size - metadata.serialized_size - _FOOTER_TAIL)
                    return f"{size}-{sha256(file.read()).hexdigest()}"
            file.seek(0)
            return f"{size}-{file_digest(file, 'sha256').hexdigest()}"
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def inventory_log_dirs(path: str) -> list[dict[str, Any]]:
    """Read the ``log_dir`` rows of an inventory, one for each of its log dirs, in ROW_SCHEMA's columns.

    Raises:
        InventoryError: as :func:`read_inventory`.
    """
    import pyarrow.compute as pc

    check_inventory(path)
    try:
        dataset = _dataset(path)
        # By the least and greatest name of each row group nearly all are left out: of 10 million rows 0.8 s, not 4.2.
        is_log_dir = (pc.field("name") == ".") & (pc.field("kind") == Kind.LOG_DIR.value)
        found = dataset.to_table(columns=_present(dataset.schema), filter=is_log_dir)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error
    rows: list[dict[str, Any]] = _completed(found).to_pylist()
    return rows


def has_all_columns(path: str) -> bool:
    """Whether an inventory that was checked has every column of ROW_SCHEMA, as engines need it."""
    return len(_present(_dataset(path).schema)) == len(ROW_SCHEMA)


def complete_inventory(path: str, new_path: str) -> None:
    """Write an inventory that was checked as a new Parquet file with every column of ROW_SCHEMA.

    Raises:
        InventoryError: its rows are damaged.
        OSError: the new file cannot be written.
    """
    dataset = _dataset(path)
    columns = _present(dataset.schema)

    def tables() -> Iterator[pa.Table]:
        try:
            for batch in dataset.to_batches(columns=columns):
                yield _completed(pa.Table.from_batches([batch]))
        except pa.ArrowException as error:
            raise _damaged(path, error) from error

    with open(new_path, "wb") as out:
        write_inventory(tables(), out, InventoryForm.PARQUET)


def _present(found: pa.Schema) -> list[str]:
    return [name for name in ROW_SCHEMA.names if name in found.names]


def _completed(rows: pa.Table) -> pa.Table:
    """Add the columns of ROW_SCHEMA that are not there, with nulls."""
    columns = [
        rows.column(field.name) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in ROW_SCHEMA
    ]
    return pa.table(columns, names=ROW_SCHEMA.names).cast(ROW_SCHEMA)


def find_rows(path: str, wanted: Mapping[str, Collection[str]]) -> pa.Table:
    """Read the rows of an inventory in which one of some text columns has one of its wanted values, in ROW_SCHEMA.

    Of a Parquet file only the row groups are read that may hold such a row, first the columns that are compared and
    then, where one fits, the others. What is read is checked by the checksums of its pages. An Arrow file is read
    whole.

    ``wanted``: column → its wanted values; a column without any is not compared.

    Raises:
        InventoryError: as :func:`read_inventory`.
    """
    if inventory_form(path) is not InventoryForm.PARQUET:
        return fitting_rows(read_inventory(path), wanted)
    with _opened_parquet(path) as (opened, file):
        groups = (_rows_of_group(path, opened, file, group, wanted) for group in range(file.num_row_groups))
        return pa.concat_tables([ROW_SCHEMA.empty_table(), *(rows for rows in groups if rows is not None)])


def fitting_rows(rows: pa.Table, wanted: Mapping[str, Collection[str]]) -> pa.Table:
    """Choose the rows in which one of some text columns has one of its wanted values, as :func:`find_rows` does."""
    fitting = _fitting(rows, wanted)
    return rows.slice(0, len(fitting)).filter(fitting)


def inventory_values(path: str, column: str) -> pa.ChunkedArray:
    """Read the values of one text column of an inventory, each once in every row group that has it.

    Raises:
        InventoryError: as :func:`read_inventory`.
    """
    if inventory_form(path) is not InventoryForm.PARQUET:
        return pa.chunked_array([read_inventory(path).column(column).unique()], pa.string())
    values = []
    with _opened_parquet(path) as (opened, file):
        for group in range(file.num_row_groups):
            found = file.metadata.row_group(group)
            check_chunk_claims(path, opened, file.metadata, [found.column(file.metadata.schema.names.index(column))])
            read = file.read_row_group(group, [column], use_threads=False).column(column)
            values += [chunk.dictionary for chunk in read.chunks]
    return pa.chunked_array(values, pa.string())


@contextmanager
def _opened_parquet(path: str) -> Iterator[tuple[BinaryIO, Any]]:
    """Open a Parquet inventory that is read in parts, with texts as dictionaries; its bytes, and what reads its rows.

    Raises:
        InventoryError: it has other columns or another version; or, from the block, it is damaged.
    """
    import pyarrow.parquet as pq

    try:
        # Arrow reads a source of its own without Python's lock, so that threads read several files at once.
        with open(path, "rb") as opened, pa.OSFile(path) as source:
            footer = pq.read_metadata(opened)
            _check_schema(path, footer.schema.to_arrow_schema().with_metadata(footer.metadata))
            texts = [name for name in TEXTS if name in footer.schema.names]
            how = {"metadata": footer, "read_dictionary": texts, "page_checksum_verification": True}
            with pq.ParquetFile(source, **how) as file:
                yield opened, file
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _rows_of_group(
    path: str, opened: BinaryIO, file: Any, group: int, wanted: Mapping[str, Collection[str]]
) -> pa.Table | None:
    """Read the rows of one row group that fit; None: there are none."""
    found = file.metadata.row_group(group)
    chunks = {chunk.path_in_schema: chunk for chunk in map(found.column, range(found.num_columns))}
    compared = {name: values for name, values in wanted.items() if _may_hold(chunks[name], values)}
    if not compared:
        return None
    check_chunk_claims(path, opened, file.metadata, [chunks[name] for name in compared])
    read = file.read_row_group(group, list(compared), use_threads=False)
    fitting = _fitting(read, compared)
    if not len(fitting):
        return None
    others = [name for name in ROW_SCHEMA.names if name in chunks and name not in compared]
    check_chunk_claims(path, opened, file.metadata, [chunks[name] for name in others])
    # What stands behind the last row that fits is not decoded. The rows of log dirs, for one, come first.
    batches: list[pa.RecordBatch] = []
    for batch in file.iter_batches(len(fitting), [group], others, use_threads=False):
        batches.append(batch)
        if sum(map(len, batches)) >= len(fitting):  # Arrow may give fewer at once than it is asked for
            break
    rows = pa.Table.from_batches(batches).slice(0, len(fitting)).filter(fitting)
    for name, column in zip(compared, read.slice(0, len(fitting)).filter(fitting).columns, strict=True):
        rows = rows.append_column(name, column)
    check_text_claims(path, opened, rows)
    return _completed(rows)


def _may_hold(chunk: Any, values: Collection[str]) -> bool:
    """Whether one of some texts may be in a column of a row group, by its least and its greatest value."""
    if not chunk.is_stats_set or not chunk.statistics.has_min_max:
        return bool(values) and not (chunk.is_stats_set and chunk.statistics.null_count == chunk.num_values)
    try:
        least, greatest = chunk.statistics.min, chunk.statistics.max
    except UnicodeDecodeError:  # a writer that shortens them cuts a character
        return bool(values)
    return any(least <= value <= greatest for value in values)


def _fitting(rows: pa.Table, wanted: Mapping[str, Collection[str]]) -> pa.BooleanArray:
    """Compute of each row, up to the last that fits, whether one of its columns has one of its wanted values."""
    import pyarrow.compute as pc

    fits = [pc.is_in(rows.column(name), pa.array(sorted(each), pa.string())) for name, each in wanted.items() if each]
    none = pa.chunked_array([pa.repeat(False, rows.num_rows)])
    fitting = reduce(pc.or_, fits, none).combine_chunks()
    return fitting.slice(0, pc.indices_nonzero(fitting)[-1].as_py() + 1 if fitting.true_count else 0)


def _by_topic(table: pa.Table) -> pa.Table:
    """Sort rows by topic and partition; rows without a topic, such as those of log dirs, come first."""
    import pyarrow.compute as pc

    keys = [("topic", "ascending", "at_start"), ("partition", "ascending", "at_start")]
    return table.take(pc.sort_indices(table.select(["topic", "partition"]).combine_chunks(), sort_keys=keys))


def _counting(ignored: Collection[LogDirOnHost]) -> Any:
    """Make the condition of rows that count."""
    import pyarrow.compute as pc

    left_out = (
        (pc.coalesce(pc.field("host"), pc.scalar("")) == each.host) & (pc.field("log_dir") == each.log_dir)
        for each in ignored
    )
    return ~reduce(or_, left_out)


def _writer(sink: pa.PythonFile, form: InventoryForm, schema: pa.Schema) -> Any:
    if form is InventoryForm.ARROW:
        return pa.ipc.new_file(sink, schema)
    import pyarrow.parquet as pq

    return pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True)


def _gathered(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    held, rows = [schema.empty_table()], 0
    for table in tables:
        held.append(table)
        rows += table.num_rows
        if rows >= INVENTORY_ROWS_AT_ONCE:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _dataset(path: str) -> Any:
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    form = inventory_form(path)
    if form is None:
        if os.path.isfile(path) and not os.access(path, os.R_OK):
            raise InventoryError(f"{path} cannot be read: {os.strerror(errno.EACCES)}; ask as another user, or as root")
        what = "neither a Parquet file nor an Arrow file that can be read" if os.path.exists(path) else "not there"
        raise InventoryError(f"{path} is no inventory: it is {what}; leave it out, or scan again with --format parquet")
    try:
        # Without an absolute path and a file system, Arrow would take a path like s3:/x.parquet for an address.
        return ds.dataset(
            os.path.abspath(path),
            format="parquet" if form is InventoryForm.PARQUET else "ipc",
            filesystem=LocalFileSystem(),
        )
    except (pa.ArrowException, OSError, UnicodeEncodeError) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> InventoryError:
    if isinstance(error, UnicodeEncodeError):  # of the path: what is read is decoded
        return InventoryError(f"{path} has a name that is not UTF-8, which no engine can open: rename it")
    # Every level of Arrow puts its own location before the reason.
    reason = (str(error).splitlines() or ["it cannot be read"])[0].rsplit("': ", 1)[-1]
    return InventoryError(f"{path} is damaged or was not written to its end ({reason:.200}): scan again")


def _check_bytes(path: str) -> None:
    """Verify the bytes before the footer by the checksum in it, where there is one."""
    import pyarrow.parquet as pq

    if inventory_form(path) is not InventoryForm.PARQUET:
        return
    try:
        with open(path, "rb") as file:
            metadata = pq.read_metadata(file)
        noted = (metadata.metadata or {}).get(CHECKSUM_KEY)
        if noted is None:
            return
        length = os.path.getsize(path) - metadata.serialized_size - _FOOTER_TAIL
        found = f"{length}:{crc32c_of_file(path, length)}"
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error
    if found.encode() != noted:
        raise InventoryError(f"{path} is damaged: its checksum does not fit; copy it again, or scan again")


def _check_claims(path: str) -> None:
    """Refuse an inventory that would take far more memory than any scan of its size."""
    try:
        if inventory_form(path) is InventoryForm.PARQUET:
            check_parquet_claims(path)
        else:
            check_arrow_claims(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _check_schema(path: str, found: pa.Schema) -> None:
    version = (found.metadata or {}).get(VERSION_KEY)
    if version is not None and version != str(SCHEMA_VERSION).encode():
        raise InventoryError(
            f"{path} has schema version {version[:20].decode('ascii', 'replace')}, and this program reads version "
            f"{SCHEMA_VERSION}: use the same release of logstore for scan and audit"
        )
    missing = [name for name in NEEDED if name not in found.names]
    if missing:
        raise InventoryError(
            f"{path} is no inventory: it lacks the columns {', '.join(missing)}; write one with "
            "'logstore scan --format parquet'"
        )
    # Other writers of Parquet keep text in large strings; every engine reads those the same.
    wrong = [
        f"{field.name} ({found.field(field.name).type} instead of {field.type})"
        for field in ROW_SCHEMA
        if field.name in found.names
        and found.field(field.name).type not in (field.type, {pa.string(): pa.large_string()}.get(field.type))
    ]
    if wrong:
        raise InventoryError(f"{path} is no inventory: columns of another type: {', '.join(wrong)}")
