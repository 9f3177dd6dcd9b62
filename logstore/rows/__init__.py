"""The rows of a scan as data: their kinds and states, their columns, Arrow tables, inventory files."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.rows.arrow import ROW_SCHEMA, columns_to_batch, to_batch, to_table
    from logstore.rows.inventory import (
        InventoryForm,
        check_inventory,
        find_rows,
        fitting_rows,
        inventory_content,
        inventory_form,
        inventory_log_dirs,
        inventory_values,
        read_inventory,
        write_inventory,
    )
    from logstore.rows.inventory_layout import parse_scan_name, write_scan
    from logstore.rows.inventory_search import SUFFIXES, expand, inventories_below
    from logstore.rows.inventory_set import InventorySet, read_inventory_set
    from logstore.rows.rows import (
        SCHEMA_VERSION,
        VARYING,
        VERSION_KEY,
        Columns,
        Kind,
        LogDirFacts,
        LogDirOnHost,
        MetadataState,
        Row,
        by_column,
        concat_columns,
        plain_row,
        utf8,
    )
    from logstore.rows.uris import check_uri, fetch, is_uri, join_uri, list_uri, path_of_uri, put, remove_uri
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "arrow": ("ROW_SCHEMA", "columns_to_batch", "to_batch", "to_table"),
            "inventory": (
                "InventoryForm",
                "check_inventory",
                "find_rows",
                "fitting_rows",
                "inventory_content",
                "inventory_form",
                "inventory_log_dirs",
                "inventory_values",
                "read_inventory",
                "write_inventory",
            ),
            "inventory_layout": ("parse_scan_name", "write_scan"),
            "inventory_search": ("SUFFIXES", "expand", "inventories_below"),
            "inventory_set": ("InventorySet", "read_inventory_set"),
            "rows": (
                "Columns",
                "Kind",
                "LogDirFacts",
                "LogDirOnHost",
                "MetadataState",
                "Row",
                "SCHEMA_VERSION",
                "VARYING",
                "VERSION_KEY",
                "by_column",
                "concat_columns",
                "plain_row",
                "utf8",
            ),
            "uris": ("check_uri", "fetch", "is_uri", "join_uri", "list_uri", "path_of_uri", "put", "remove_uri"),
        },
    )

__all__ = [
    "ROW_SCHEMA",
    "SCHEMA_VERSION",
    "SUFFIXES",
    "VARYING",
    "VERSION_KEY",
    "Columns",
    "InventoryForm",
    "InventorySet",
    "Kind",
    "LogDirFacts",
    "LogDirOnHost",
    "MetadataState",
    "Row",
    "by_column",
    "check_inventory",
    "check_uri",
    "columns_to_batch",
    "concat_columns",
    "expand",
    "fetch",
    "find_rows",
    "fitting_rows",
    "inventories_below",
    "inventory_content",
    "inventory_form",
    "inventory_log_dirs",
    "inventory_values",
    "is_uri",
    "join_uri",
    "list_uri",
    "parse_scan_name",
    "path_of_uri",
    "plain_row",
    "put",
    "read_inventory",
    "read_inventory_set",
    "remove_uri",
    "to_batch",
    "to_table",
    "utf8",
    "write_inventory",
    "write_scan",
]
