"""Numbers, times and rows for people."""

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
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "formatting": (
                "NOTHING", "age", "count", "csv_cell", "csv_text", "listed", "moment", "quoted", "size", "visible",
            ),
            "serialize": ("json_objects", "write_array", "write_csv", "write_lines"),
        },
    )  # fmt: skip

__all__ = [
    "NOTHING", "age", "count", "csv_cell", "csv_text", "json_objects", "listed", "moment", "quoted", "size", "visible",
    "write_array", "write_csv", "write_lines",
]  # fmt: skip
