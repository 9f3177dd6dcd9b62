"""Verdicts that change: what changed on the disks and in the metadata, compared again."""

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
