"""Arrow schemas in Spark's words: the schema of a data source as a DDL string."""

from __future__ import annotations

import pyarrow as pa

_SPARK_TYPES = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.list_(pa.string()): "array<string>",
    pa.list_(pa.int32()): "array<int>",
}


def ddl(schema: pa.Schema) -> str:
    """The columns of an Arrow schema as Spark's DDL, all nullable.

    Raises:
        KeyError: a type that no table of this project has.
    """
    return ", ".join(f"`{field.name}` {_SPARK_TYPES[field.type]}" for field in schema)
