"""Watches log dirs, and reports which of their rows changed."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.watch.log_dir import LogDirState, WatchedLogDir
    from logstore.watch.row_cache import LOG_DIR_KEY, RowChange, RowState, name_of_key, net_changes
    from logstore.watch.watch import Watch, WatchTimes
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "log_dir": ("LogDirState", "WatchedLogDir"),
            "row_cache": ("LOG_DIR_KEY", "RowChange", "RowState", "name_of_key", "net_changes"),
            "watch": ("Watch", "WatchTimes"),
        },
    )

__all__ = [
    "LOG_DIR_KEY",
    "LogDirState",
    "RowChange",
    "RowState",
    "Watch",
    "WatchTimes",
    "WatchedLogDir",
    "name_of_key",
    "net_changes",
]
