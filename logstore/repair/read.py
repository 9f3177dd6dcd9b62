"""Read the files that ``reconciler`` proposes repairs from."""

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
    """Read files, each given as log dir and path below it. Never raises.

    Returns:
        The bytes of each file; None: its directory is there, and the file is not. A file that cannot be read is left
        out.
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
