"""Where one topic lies in a fleet, on which disks, since when, and who wants it there."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.whereabouts.copies import COPY_VERSION, Copy, copies_of, related_topics
    from reconciler.whereabouts.lookup import Found, nearest, search
    from reconciler.whereabouts.subject import Subject
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "copies": ("COPY_VERSION", "Copy", "copies_of", "related_topics"),
            "lookup": ("Found", "nearest", "search"),
            "subject": ("Subject",),
        },
    )

__all__ = ["COPY_VERSION", "Copy", "Found", "Subject", "copies_of", "nearest", "related_topics", "search"]
