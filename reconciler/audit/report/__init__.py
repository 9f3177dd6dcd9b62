"""An audit as one HTML page that people act on: what to run next comes first, then what was found and where."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.audit.report.at_uri import PAGE_FILE, HeldAtUri, check_replaceable, held_at, put_report
    from reconciler.audit.report.page import EarlierRun, render_report
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "at_uri": ("PAGE_FILE", "HeldAtUri", "check_replaceable", "held_at", "put_report"),
            "page": ("EarlierRun", "render_report"),
        },
    )

__all__ = [
    "PAGE_FILE",
    "EarlierRun",
    "HeldAtUri",
    "check_replaceable",
    "held_at",
    "put_report",
    "render_report",
]
