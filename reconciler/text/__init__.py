"""Numbers, times, rows and tables for people, and files that people write."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.text.formatting import (
        NOTHING,
        age,
        count,
        csv_cell,
        csv_text,
        listed,
        moment,
        quoted,
        size,
        visible,
    )
    from reconciler.text.serialize import json_objects, write_array, write_csv, write_lines
    from reconciler.text.table import Column, cut_middle, fit_table, fold, share_folders, wrapped
    from reconciler.text.toml_file import TomlFile
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "formatting": (
                "NOTHING", "age", "count", "csv_cell", "csv_text", "listed", "moment", "quoted", "size", "visible",
            ),
            "serialize": ("json_objects", "write_array", "write_csv", "write_lines"),
            "table": ("Column", "cut_middle", "fit_table", "fold", "share_folders", "wrapped"),
            "toml_file": ("TomlFile",),
        },
    )  # fmt: skip

__all__ = [
    "NOTHING", "Column", "TomlFile", "age", "count", "csv_cell", "csv_text", "cut_middle", "fit_table", "fold",
    "json_objects", "listed", "moment", "quoted", "share_folders", "size", "visible", "wrapped", "write_array",
    "write_csv", "write_lines",
]  # fmt: skip
