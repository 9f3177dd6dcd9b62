"""Numbers, times and rows for people."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.text.figures import NOTHING, age, count, listed, moment, quoted, size, visible
    from reconciler.text.row_text import json_objects, write_array, write_csv, write_lines
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "figures": ("NOTHING", "age", "count", "listed", "moment", "quoted", "size", "visible"),
            "row_text": ("json_objects", "write_array", "write_csv", "write_lines"),
        },
    )

__all__ = [
    "NOTHING",
    "age",
    "count",
    "json_objects",
    "listed",
    "moment",
    "quoted",
    "size",
    "visible",
    "write_array",
    "write_csv",
    "write_lines",
]
