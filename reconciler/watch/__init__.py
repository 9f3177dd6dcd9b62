"""Verdicts that change: what changed on the disks and in the metadata, compared again."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.watch.verdict_stream import verdict_changes
    from reconciler.watch.watch_verdicts import VerdictChange
    from reconciler.watch.watched_metadata import WatchedMetadata
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "verdict_stream": ("verdict_changes",),
            "watch_verdicts": ("VerdictChange",),
            "watched_metadata": ("WatchedMetadata",),
        },
    )

__all__ = [
    "VerdictChange",
    "WatchedMetadata",
    "verdict_changes",
]
