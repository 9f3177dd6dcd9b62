"""An audit as one HTML page that people act on: what to run next comes first, then what was found and where."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.audit.report.page import EarlierRun, render_report
else:
    __getattr__ = lazy_exports(__name__, {"page": ("EarlierRun", "render_report")})

__all__ = ["EarlierRun", "render_report"]
