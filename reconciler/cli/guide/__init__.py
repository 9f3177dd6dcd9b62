"""The pages of ``logstore help`` and ``logstore runbook``: Markdown files, and how they are read and rendered."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.guide.markdown import inlines, parse_page, table_cells
    from reconciler.cli.guide.shelf import RUNBOOKS, TOPICS, GuidePage, read_page
    from reconciler.cli.guide.terminal import as_text
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "markdown": ("inlines", "parse_page", "table_cells"),
            "shelf": ("GuidePage", "RUNBOOKS", "TOPICS", "read_page"),
            "terminal": ("as_text",),
        },
    )

__all__ = ["RUNBOOKS", "TOPICS", "GuidePage", "as_text", "inlines", "parse_page", "read_page", "table_cells"]
