"""What a process that looks ahead of a purge hands over of each staged directory, and what it leaves for a closer look.

It judges a directory as the purge itself would (``judge_staged``), and weighs its files. Only what is usual is handed
over: a directory that is due and holds nothing but its record and plain files that have one name, are not large, and
that no process holds; and one whose time has not come. Everything else, and whatever cannot be read, is left to the
process that purges, which has the words for it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from layout.directory_name import DirectoryName
from layout.ours import STAGED_RECORD
from logstore.errors import UnsafePathError
from logstore.fs import Directory
from logstore.purge.judge_staged import StagingRoot, weight_of
from logstore.purge.purge_report import Kept, Why
from logstore.purge.purge_wire import Look, fields_of


def look_at_all(staging: StagingRoot, names: Sequence[DirectoryName]) -> list[Look]:
    """Look at the directories of a batch; nothing is changed, and nothing is raised."""
    return [_look(staging, name) for name in names]


def _look(staging: StagingRoot, name: DirectoryName) -> Look:
    try:
        with staging.root.child(name.text) as directory:
            judged = staging.judge(directory, name)
            if isinstance(judged, Kept):
                return judged.due_ms if judged.why is Why.NOT_DUE else None
            if judged is None or judged.record is None:
                return None
            files = _usual_files(staging, directory)
            return None if files is None else (judged.inode, *files, fields_of(judged.record))
    except (OSError, UnsafePathError):
        return None


def _usual_files(staging: StagingRoot, directory: Directory) -> tuple[list[str], list[int]] | None:
    """Names of all files but the record, and the bytes that each gives back; None: anything about them is unusual."""
    names, weights = [], []
    step, holders = staging.rules.step_bytes, staging.holders
    with os.scandir(directory.descriptor) as found:
        for entry in found:
            name = entry.name
            if name == STAGED_RECORD:
                continue
            status = entry.stat(follow_symlinks=False)
            weight = weight_of(status)
            if status.st_nlink != 1 or weight > step or not stat.S_ISREG(status.st_mode) or status.st_ino in holders:
                return None
            names.append(name)
            weights.append(weight)
    return names, weights
