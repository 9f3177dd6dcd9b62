"""Finds log dirs at or below a folder: of one broker, or of a whole fleet whose disks lie side by side.

A directory is a log dir when it holds ``meta.properties``, ``__cluster_metadata-0`` or one of the four offset
checkpoints. Nothing is said here about what is in it.
"""

from __future__ import annotations

import os

from layout import checkpoint, meta_properties

DEEPEST = 6
"""Levels below the folder that are searched."""

_SIGNS = frozenset({meta_properties.FILE_NAME, "__cluster_metadata-0", *checkpoint.OFFSET_CHECKPOINTS})


def discover(path: str) -> list[str]:
    """The log dirs at or below a folder, sorted; the path itself when there is none, so that a scan says what is wrong.

    Level by level, no deeper than :data:`DEEPEST`, not into a log dir that was found, and along no link except the path
    itself. What cannot be listed is passed over.
    """
    found: list[str] = []
    level = [path]
    for _ in range(DEEPEST + 1):
        below: list[str] = []
        for directory in level:
            children = _children(directory)
            if children is None:
                found.append(directory)
            else:
                below += children
        level = below
    return sorted(found) or [path]


def _children(directory: str) -> list[str] | None:
    """The directories in a directory; None when it is a log dir."""
    # The signs are asked for by name: a log dir may have to be listed nearly to its end until one of them comes up.
    if any(os.path.lexists(f"{directory}/{sign}") for sign in _SIGNS):
        return None
    children: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    children.append(entry.path)
    except (OSError, ValueError):
        return []
    return children
