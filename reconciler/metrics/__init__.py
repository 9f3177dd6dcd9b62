"""What commands found, as metrics for Prometheus: families with their names and labels, and their text."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.metrics.families import FAMILIES, OTHER_TOPICS, Family, Readings
    from reconciler.metrics.of_changes import read_apply, read_plan
    from reconciler.metrics.of_findings import read_audit, read_judged, read_metadata, read_scan
    from reconciler.metrics.of_purge import read_purge
    from reconciler.metrics.text_format import exposition
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "families": ("FAMILIES", "Family", "OTHER_TOPICS", "Readings"),
            "of_changes": ("read_apply", "read_plan"),
            "of_findings": ("read_audit", "read_judged", "read_metadata", "read_scan"),
            "of_purge": ("read_purge",),
            "text_format": ("exposition",),
        },
    )

__all__ = [
    "FAMILIES",
    "OTHER_TOPICS",
    "Family",
    "Readings",
    "exposition",
    "read_apply",
    "read_audit",
    "read_judged",
    "read_metadata",
    "read_plan",
    "read_purge",
    "read_scan",
]
