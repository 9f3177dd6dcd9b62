"""Work spread over processes and threads where that is faster, and helpers for a quick start-up."""

from typing import TYPE_CHECKING

from logstore.parallel.startup import lazy_exports

if TYPE_CHECKING:
    from logstore.parallel.processes import can_fork, processors, spread
    from logstore.parallel.startup import do_without_pandas, paused_gc
    from logstore.parallel.threads import AdaptiveThreadPool, map_chunks
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "processes": ("can_fork", "processors", "spread"),
            "startup": ("do_without_pandas", "paused_gc"),
            "threads": ("AdaptiveThreadPool", "map_chunks"),
        },
    )

__all__ = [
    "AdaptiveThreadPool",
    "can_fork",
    "do_without_pandas",
    "lazy_exports",
    "map_chunks",
    "paused_gc",
    "processors",
    "spread",
]
