"""What changed in log dirs since the last look."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.watch.known_rows import LOG_DIR_KEY, RowChange, RowState, name_of_key
    from logstore.watch.watch import Watch, WatchTimes
    from logstore.watch.watched_log_dir import LogDirState, WatchedLogDir
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "known_rows": ("LOG_DIR_KEY", "RowChange", "RowState", "name_of_key"),
            "watch": ("Watch", "WatchTimes"),
            "watched_log_dir": ("LogDirState", "WatchedLogDir"),
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
]
