"""Numbers, times, rows and tables for people."""

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
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "formatting": (
                "NOTHING", "age", "count", "csv_cell", "csv_text", "listed", "moment", "quoted", "size", "visible",
            ),
            "serialize": ("json_objects", "write_array", "write_csv", "write_lines"),
            "table": ("Column", "cut_middle", "fit_table", "fold", "share_folders", "wrapped"),
        },
    )  # fmt: skip

__all__ = [
    "NOTHING", "Column", "age", "count", "csv_cell", "csv_text", "cut_middle", "fit_table", "fold", "json_objects",
    "listed", "moment", "quoted", "share_folders", "size", "visible", "wrapped", "write_array", "write_csv",
    "write_lines",
]  # fmt: skip
