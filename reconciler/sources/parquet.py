"""Save a desired state in a folder as three Parquet tables and one JSON file, and load it again.

    FOLDER/replicas.parquet   REPLICA_SCHEMA, a row per (partition, replica), sorted by topic
    FOLDER/topics.parquet     TOPIC_SCHEMA
    FOLDER/brokers.parquet    BROKER_SCHEMA
    FOLDER/identity.json      schema version, identity, rows and checksum of each table; empty until all is saved

Any engine reads the tables as they are (Spark: ``spark.read.parquet(FOLDER + "/replicas.parquet")``). The row counts
and checksums in ``identity.json`` reveal tables that belong to another state or are damaged.
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any, get_type_hints

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from logstore import check_argument
from logstore.fs import crc32c_of, crc32c_of_file
from reconciler.desired import (
    BROKER_SCHEMA,
    DESIRED_VERSION,
    REPLICA_SCHEMA,
    TOPIC_SCHEMA,
    Completeness,
    DesiredState,
    MetadataIdentity,
    SavedTable,
    in_memory,
)
from reconciler.errors import MetadataError, UsageError

IDENTITY_FILE = "identity.json"
TABLES = {"replicas": REPLICA_SCHEMA, "topics": TOPIC_SCHEMA, "brokers": BROKER_SCHEMA}
"""Each table's name, which is its file's name without the suffix, and its schema."""

_FIELDS = (
    *("source", "location", "cluster_id", "completeness", "scope", "offset", "epoch", "timestamp_ms"),
    *("tail_uncommitted", "digest", "metadata_version", "keeper", "keeper_runs", "as_of_from", "keeper_decides"),
    *("problems", "ends_early", "uncommitted"),
)
"""The fields of the saved identity, in the order in which wrong ones are named."""

STATE_GROUP_ROWS = 1 << 17
"""Rows of a row group of replicas: a topic is in one or two, and DuckDB gives each thread a row group at a time."""

MAX_TEXT_BYTES = (1 << 31) - 1
"""Most text of a column of which Arrow takes out rows, where its offsets have four bytes: they count from its begin."""

_WIDE_SCHEMA = pa.schema(
    [field.with_type(pa.large_string()) if field.type == pa.string() else field for field in REPLICA_SCHEMA]
)
"""Replicas whose texts have offsets of eight bytes."""

MAX_IDENTITY_BYTES = 16 << 20
"""A longer identity file is not read; the problems of a source take a few hundred bytes each."""


def is_saved_state(path: str) -> bool:
    """Whether the path is a folder that :func:`save_state` wrote, by the names of its files."""
    return all(os.path.isfile(os.path.join(path, name)) for name in (IDENTITY_FILE, _file("replicas")))


def save_state(state: DesiredState, folder: str) -> None:
    """Write the state into an existing folder that is empty, or that holds an earlier state, which is replaced.

    Raises:
        UsageError: the folder is absent, holds anything else (as a log dir does), or cannot be written.
    """
    tables = {name: _table(state, name) for name in TABLES}
    document: dict[str, Any] = {
        "schema_version": DESIRED_VERSION,
        "identity": _document(state.identity),
        "rows": {name: table.num_rows for name, table in tables.items()},
    }
    try:
        strangers = sorted(set(os.listdir(folder)) - {IDENTITY_FILE, *map(_file, TABLES)})
        if strangers:
            raise UsageError(
                f"{folder} holds {strangers[0]!r}, so no desired state is saved there: name an empty folder"
            )
        # The identity is empty until the tables are complete, so an interrupted save never loads.
        with open(os.path.join(folder, IDENTITY_FILE), "wb") as file:
            for name, table in tables.items():
                write = _write_replicas if name == "replicas" else pq.write_table
                write(table, os.path.join(folder, _file(name)))
            document["crc32c"] = _checksums(folder, document)
            file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise UsageError(f"{folder}: a desired state cannot be saved there: {_reason(error)}") from error


def load(path: str) -> DesiredState:
    """Load a saved state: topics and brokers are read, replicas stay in their file until they are needed.

    The identity is the saved one, with ``parquet`` as its source and the path as its location.

    Raises:
        UsageError: there is no such folder.
        MetadataError: a file is absent, damaged, of another schema or version, or of another state than the others.
    """
    if not os.path.isdir(path):
        found = "is no folder, as a saved state is" if os.path.lexists(path) else "is not there"
        raise UsageError(f"{path} {found}")
    identity, document = _read_identity(path)
    tables = {name: _open_table(os.path.join(path, _file(name)), schema) for name, schema in TABLES.items()}
    for name, table in tables.items():
        if document["rows"].get(name) != table.num_rows:
            raise MetadataError(
                f"{os.path.join(path, _file(name))} has {table.num_rows} rows where {IDENTITY_FILE} says"
                f" {document['rows'].get(name)}: the tables are not of one state; save it again"
            )
    _check_checksums(path, document)
    return DesiredState(
        replace(identity, source="parquet", location=path),
        tables["replicas"],
        tables["topics"].read(),
        tables["brokers"].read(),
    )


def _write_replicas(replicas: pa.Table, path: str) -> None:
    """Write replicas sorted by topic, part by part, because a sorted copy would take as much memory again.

    Those that are sorted already are not even copied.
    """
    import pyarrow.compute as pc

    order = None
    if not _is_sorted(replicas["topic"]):
        order = pc.sort_indices(replicas, [("topic", "ascending")])
        if replicas.nbytes > MAX_TEXT_BYTES:
            replicas = replicas.cast(_WIDE_SCHEMA).combine_chunks()
    with pq.ParquetWriter(path, REPLICA_SCHEMA) as writer:
        for start in range(0, replicas.num_rows, STATE_GROUP_ROWS):
            part = replicas.slice(start, STATE_GROUP_ROWS)
            if order is not None:
                part = replicas.take(order.slice(start, STATE_GROUP_ROWS)).cast(REPLICA_SCHEMA)
            writer.write_table(part)


def _is_sorted(column: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    return len(column) < 2 or pc.all(pc.less_equal(column.slice(0, len(column) - 1), column.slice(1))).as_py() is True


def _file(table: str) -> str:
    return f"{table}.parquet"


def _table(state: DesiredState, name: str) -> pa.Table:
    return {"replicas": in_memory(state.replicas), "topics": state.topics, "brokers": state.brokers}[name]


def _document(identity: MetadataIdentity) -> dict[str, Any]:
    """The identity as JSON can hold it: bytes of a path that are not UTF-8 are escaped."""
    scope = None if identity.scope is None else sorted(identity.scope)
    return asdict(identity) | {
        "location": _escaped(identity.location),
        "as_of_from": _escaped(identity.as_of_from),
        "problems": list(map(_escaped, identity.problems)),
        "ends_early": list(map(_escaped, identity.ends_early)),
        "scope": scope,
    }


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _checksums(folder: str, document: dict[str, Any]) -> dict[str, str]:
    """The CRC-32C of each table's file, and of the rest of the document. Raises OSError."""
    said = orjson.dumps([document["identity"], document["rows"]], option=orjson.OPT_SORT_KEYS)
    return {IDENTITY_FILE: crc32c_of(said)} | {
        _file(name): crc32c_of_file(os.path.join(folder, _file(name))) for name in TABLES
    }


def _check_checksums(folder: str, document: dict[str, Any]) -> None:
    try:
        found = _checksums(folder, document)
    except OSError as error:
        raise MetadataError(f"{folder} cannot be read: {_reason(error)}") from error
    noted = document.get("crc32c")
    if not isinstance(noted, dict):
        raise MetadataError(f"{os.path.join(folder, IDENTITY_FILE)} has no checksums: save the state again")
    wrong = sorted(name for name, value in found.items() if noted.get(name) != value)
    if wrong:
        raise MetadataError(
            f"{folder}: {', '.join(wrong)} changed after the state was saved, by the checksums in {IDENTITY_FILE}: "
            "copy the folder again, or save the state again"
        )


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _open_table(path: str, schema: pa.Schema) -> SavedTable:
    try:
        with pq.ParquetFile(path) as file:
            found, rows = file.schema_arrow, file.metadata.num_rows
            differing = [name for name in schema.names if name not in found.names]
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise MetadataError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]:.200}") from error
    if not found.equals(schema):
        has = ", ".join(f"{column.name}: {column.type}" for column in found)
        detail = f"it lacks {', '.join(differing)}" if differing else f"it has {has:.300}"
        raise MetadataError(f"{path} does not have the columns of a desired state: {detail}")
    # Absolute, because an engine may interpret the first character of a relative name, such as ~.
    return SavedTable(os.path.abspath(path), schema, rows)


def _read_identity(folder: str) -> tuple[MetadataIdentity, dict[str, Any]]:
    """Read the identity, and the whole document that holds it."""
    path = os.path.join(folder, IDENTITY_FILE)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_IDENTITY_BYTES + 1)
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {_reason(error)}") from error
    if len(data) > MAX_IDENTITY_BYTES:
        raise MetadataError(f"{path} is longer than {MAX_IDENTITY_BYTES} bytes: it is no identity of a desired state")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MetadataError(f"{path} is no JSON: {error}") from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != DESIRED_VERSION:
        raise MetadataError(f"{path} has schema version {version!r:.40}; this program reads {DESIRED_VERSION}")
    if not isinstance(document.get("rows"), dict):
        raise MetadataError(f"{path} does not say how many rows each table has")
    return _identity(document.get("identity"), path), document


def _identity(found: object, path: str) -> MetadataIdentity:
    """Check every field of the saved identity, and build it; the error names all wrong fields."""
    if not isinstance(found, dict):
        raise MetadataError(f"{path} has no identity")
    values: dict[str, Any] = {name: found.get(name) for name in _FIELDS}
    values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    wrong, kinds = [], get_type_hints(MetadataIdentity) | {"scope": tuple[int, ...] | None}
    for name, value in values.items():
        try:
            check_argument(name, value, kinds[name], MetadataError)
        except MetadataError:
            wrong.append(name)
    if wrong:
        raise MetadataError(f"{path}: {', '.join(wrong)} cannot be read")
    values["completeness"] = Completeness(values["completeness"])
    values["scope"] = None if values["scope"] is None else frozenset(values["scope"])
    return MetadataIdentity(**values)
