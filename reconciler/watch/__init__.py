"""Report verdicts as they change, while the disks and the metadata change."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.watch.metadata import WatchedMetadata
    from reconciler.watch.stream import verdict_changes
    from reconciler.watch.verdicts import VerdictChange
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "metadata": ("WatchedMetadata",),
            "stream": ("verdict_changes",),
            "verdicts": ("VerdictChange",),
        },
    )

__all__ = [
    "VerdictChange",
    "WatchedMetadata",
    "verdict_changes",
]
