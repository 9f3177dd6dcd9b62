"""Where the desired state comes from: the kinds of metadata sources, and which one a spec means.

Every source yields a :class:`reconciler.desired.DesiredState`. Sources only read; ``parquet.save_state`` alone writes.
A source that cannot be read whole is refused: a shorter list would make replicas look unwanted. Source: DESIGN §7.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.sources.kinds import SOURCES
    from reconciler.sources.locate import candidates, find, load, newest_per_cluster, split_spec
    from reconciler.sources.parquet import is_saved_state, save_state
    from reconciler.sources.request_file import STANDARD_INPUT, read_request
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "kinds": ("SOURCES",),
            "locate": ("candidates", "find", "load", "newest_per_cluster", "split_spec"),
            "parquet": ("is_saved_state", "save_state"),
            "request_file": ("STANDARD_INPUT", "read_request"),
        },
    )

__all__ = [
    "SOURCES",
    "STANDARD_INPUT",
    "candidates",
    "find",
    "is_saved_state",
    "load",
    "newest_per_cluster",
    "read_request",
    "save_state",
    "split_spec",
]
