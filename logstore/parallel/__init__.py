"""Processes and threads, and when they pay."""

from typing import TYPE_CHECKING

from logstore.parallel.startup import lazy_exports

if TYPE_CHECKING:
    from logstore.parallel.pace import AdaptiveThreadPool, map_chunks
    from logstore.parallel.startup import do_without_pandas, paused_gc
    from logstore.parallel.workers import PIPE_BYTES, can_fork, end_child, fork_with_pipe, processors, spread
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "pace": ("AdaptiveThreadPool", "map_chunks"),
            "startup": ("do_without_pandas", "paused_gc"),
            "workers": ("PIPE_BYTES", "can_fork", "end_child", "fork_with_pipe", "processors", "spread"),
        },
    )

__all__ = [
    "PIPE_BYTES",
    "AdaptiveThreadPool",
    "can_fork",
    "do_without_pandas",
    "end_child",
    "fork_with_pipe",
    "lazy_exports",
    "map_chunks",
    "paused_gc",
    "processors",
    "spread",
]
