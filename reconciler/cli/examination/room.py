"""How much room the disk of a log dir has, and where it ends."""

from __future__ import annotations

import os

from logstore.log_dir import LOCK_FILE
from reconciler.preflight import FULL_BELOW, free_room


def is_blank(path: str) -> bool:
    """Whether a log dir is there, and as empty as a new disk."""
    try:
        return not set(os.listdir(path)) - {"lost+found", LOCK_FILE}
    except OSError:
        return False


def is_full(path: str) -> bool:
    """Whether the disk of a log dir has no room for what a change writes down."""
    room = free_room(path)
    return room is not None and room < FULL_BELOW


def worth_having(path: str) -> int:
    """Return how many bytes more make a difference on the full disk of a log dir: a thousandth of it."""
    if takes_no_file(path):
        return 0  # each directory gives back its names
    try:
        found = os.statvfs(path)
    except OSError:
        return 0
    return found.f_blocks * found.f_frsize // 1000


def takes_no_file(path: str) -> bool:
    """Whether a file system has no inode left; one that does not count them says that it has none in all."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_files > 0 and found.f_favail == 0


def lies_apart(path: str) -> bool:
    """Whether another file system begins at a log dir, so that a move out of it copies: at a mount point, or a link."""
    try:
        return os.stat(path).st_dev != os.stat(os.path.dirname(path)).st_dev
    except OSError:
        return False
