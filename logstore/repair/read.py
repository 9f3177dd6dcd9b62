"""Reads the files that a repair plan is made from; what is made of them is left to ``reconciler``."""

from __future__ import annotations

import os
from collections.abc import Iterable

from layout import checkpoint, partition_metadata
from logstore.errors import UnreadableFileError
from logstore.fs import read_small_file
from logstore.log_dir import CHECKPOINT_LIMIT
from logstore.scan import LEADER_EPOCH_LIMIT, METADATA_LIMIT

_LIMITS = {
    partition_metadata.FILE_NAME: METADATA_LIMIT,
    checkpoint.LEADER_EPOCH_CHECKPOINT: LEADER_EPOCH_LIMIT,
}


def read_files(wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], bytes | None]:
    """Read files of log dirs, by (log dir, path below it). Never raises.

    Returns:
        The bytes of each; None: there is no such file in a directory that is there; left out: it cannot be read.
    """
    found: dict[tuple[str, str], bytes | None] = {}
    for log_dir, path in wanted:
        place = f"{log_dir}/{path}"
        try:
            data = read_small_file(place, _LIMITS.get(os.path.basename(path), CHECKPOINT_LIMIT))
        except (UnreadableFileError, ValueError):
            continue
        if data is not None or os.path.isdir(os.path.dirname(place)):
            found[log_dir, path] = data
    return found
