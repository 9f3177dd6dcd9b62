"""What a scan says, as data: kinds and states of what was found, the table's columns, Arrow, inventories."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.rows.columns import VARYING, Columns, LogDirFacts, Row, by_column, concat_columns, plain_row, utf8
    from logstore.rows.inventory import (
        InventoryForm,
        check_inventory,
        inventory_form,
        inventory_log_dirs,
        read_inventory,
        write_inventory,
    )
    from logstore.rows.row_batches import columns_to_batch, to_batch, to_table
    from logstore.rows.row_schema import ROW_SCHEMA
    from logstore.rows.rows import SCHEMA_VERSION, VERSION_KEY, Kind, MetadataState
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "columns": ("Columns", "LogDirFacts", "Row", "VARYING", "by_column", "concat_columns", "plain_row", "utf8"),
            "inventory": (
                "InventoryForm",
                "check_inventory",
                "inventory_form",
                "inventory_log_dirs",
                "read_inventory",
                "write_inventory",
            ),
            "row_batches": ("columns_to_batch", "to_batch", "to_table"),
            "row_schema": ("ROW_SCHEMA",),
            "rows": ("Kind", "MetadataState", "SCHEMA_VERSION", "VERSION_KEY"),
        },
    )

__all__ = [
    "ROW_SCHEMA",
    "SCHEMA_VERSION",
    "VARYING",
    "VERSION_KEY",
    "Columns",
    "InventoryForm",
    "Kind",
    "LogDirFacts",
    "MetadataState",
    "Row",
    "by_column",
    "check_inventory",
    "columns_to_batch",
    "concat_columns",
    "inventory_form",
    "inventory_log_dirs",
    "plain_row",
    "read_inventory",
    "to_batch",
    "to_table",
    "utf8",
    "write_inventory",
]
