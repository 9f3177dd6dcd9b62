"""A table that stays in its Parquet file, for desired states that are too large to hold.

An engine reads the file where it lies; whoever needs only a column, or all of it after all, asks for that. Owns that
reading; that the file has the right columns is the business of who makes a :class:`SavedTable`
(``reconciler/sources/parquet.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from reconciler.errors import MetadataError


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A Parquet file as a table; what it offers, it offers in the words of ``pyarrow.Table``."""

    path: str
    schema: pa.Schema
    num_rows: int

    def column(self, name: str) -> pa.ChunkedArray:
        """One column, in memory.

        Raises:
            MetadataError: the file went, or is damaged.
        """
        return self._read([name]).column(name)

    def read(self) -> pa.Table:
        """All of it, in memory.

        Raises:
            MetadataError: the file went, or is damaged.
        """
        found = self._read(self.schema.names)
        # Arrow starts its library of functions for a cast, though there be nothing to cast.
        return found if found.schema.equals(self.schema, check_metadata=True) else found.cast(self.schema)

    def _read(self, columns: list[str]) -> pa.Table:
        try:
            # Imported here, because every command that knows a desired state imports this module.
            import pyarrow.parquet as pq

            return pq.ParquetFile(self.path, memory_map=True).read(columns)
        except (pa.ArrowException, OSError) as error:
            raise MetadataError(f"{self.path} cannot be read as Parquet: {str(error).splitlines()[0]:.200}") from error


def in_memory(table: pa.Table | SavedTable) -> pa.Table:
    """The rows of a table, wherever it lies.

    Raises:
        MetadataError: as :meth:`SavedTable.read`.
    """
    return table.read() if isinstance(table, SavedTable) else table
