"""What commands found, as metrics for Prometheus: families with their names and labels, and their text."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.metrics.families import FAMILIES, OTHER_TOPICS, Family, Readings
    from reconciler.metrics.of_changes import read_apply, read_plan
    from reconciler.metrics.of_findings import read_audit, read_judged, read_metadata, read_scan
    from reconciler.metrics.of_purge import read_purge, read_purge_under_way
    from reconciler.metrics.of_watch import begin_watch, read_changes, read_watch
    from reconciler.metrics.text_format import exposition, registry_of
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "families": ("FAMILIES", "Family", "OTHER_TOPICS", "Readings"),
            "of_changes": ("read_apply", "read_plan"),
            "of_findings": ("read_audit", "read_judged", "read_metadata", "read_scan"),
            "of_purge": ("read_purge", "read_purge_under_way"),
            "of_watch": ("begin_watch", "read_changes", "read_watch"),
            "text_format": ("exposition", "registry_of"),
        },
    )

__all__ = [
    "FAMILIES",
    "OTHER_TOPICS",
    "Family",
    "Readings",
    "begin_watch",
    "exposition",
    "read_apply",
    "read_audit",
    "read_changes",
    "read_judged",
    "read_metadata",
    "read_plan",
    "read_purge",
    "read_purge_under_way",
    "read_scan",
    "read_watch",
    "registry_of",
]
