"""Arrow schemas in Spark's words: the schema of a data source as a DDL string."""

from __future__ import annotations

import pyarrow as pa

_SPARK_TYPES = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.bool_(): "boolean"}


def ddl(schema: pa.Schema) -> str:
    """The columns of an Arrow schema as Spark's DDL, all nullable.

    Raises:
        KeyError: a type that no table of this project has.
    """
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    return _SPARK_TYPES[kind]
