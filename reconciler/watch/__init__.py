"""Report verdicts as they change, while the disks and the metadata change."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.watch.metadata import WatchedMetadata
    from reconciler.watch.stream import machine_ms, verdict_changes
    from reconciler.watch.verdicts import StandingVerdict, VerdictChange, VerdictWatch
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "metadata": ("WatchedMetadata",),
            "stream": ("machine_ms", "verdict_changes"),
            "verdicts": ("StandingVerdict", "VerdictChange", "VerdictWatch"),
        },
    )

__all__ = [
    "StandingVerdict",
    "VerdictChange",
    "VerdictWatch",
    "WatchedMetadata",
    "machine_ms",
    "verdict_changes",
]
