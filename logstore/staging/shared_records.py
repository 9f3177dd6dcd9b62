"""Files of records that lie in a staging root while many replicas are staged: an intent that recovery carries out.

Replicas that are staged together share a file of records. It is made durable in the staging root before any of them is
touched; then each gets a link to it as its record, and is renamed; and the file's own name goes when links and renames
are durable. So there is no order between a link and its rename, and both reach the disk in one go. A crash leaves each
replica in one of four states, and in all of them the file is there::

    no link, not renamed     live, as it was
    a link, not renamed      live: recovery takes the record away
    a link, and renamed      staged
    renamed, and no link     staged: recovery gives it its link

Only a log dir that is marked, so that it will be recovered, may be staged from in this way. Source: DESIGN §5.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from layout.directory_name import DirectoryKind, parse, parse_staged
from layout.ours import (
    STAGED_RECORD,
    STAGED_RECORD_LIMIT,
    StagedRecord,
    encode_records,
    is_shared_records,
    shared_records_name,
)
from logstore.errors import LogStoreError
from logstore.fs import Directory, Disk, remove_file, write_new_file
from logstore.log_dir import DISK_FAILURES, LogDir
from logstore.staging.staged import check_record, records_in, topic_id_in
from logstore.staging.staging_root import Placement

logger = logging.getLogger(__name__)

TOGETHER: Final = 128
"""Replicas that share one file: more would make a file that is long to read for the one that is left of them."""


def write(disk: Disk, root: Directory, number: int, records: Mapping[str, StagedRecord]) -> bool:
    """Write a file of records that passed their check, by the names to come; False: the system has no room, or refuses.

    Raises:
        OSError: the disk fails.
    """
    data = encode_records(records)
    if len(data) > STAGED_RECORD_LIMIT:
        return False
    try:
        write_new_file(disk, root, shared_records_name(number), data, durable=False)
    except OSError as error:
        if error.errno in DISK_FAILURES:
            raise
        return False
    return True


def sync(disk: Disk, root: Directory, numbers: Sequence[int]) -> None:
    """Make files durable one by one, where no call does it for the whole file system. Raises OSError."""
    for number in numbers:
        descriptor = disk.open_to_change(root.descriptor, shared_records_name(number))
        try:
            disk.sync(descriptor)
        finally:
            os.close(descriptor)
    disk.sync(root.descriptor)


def finish_shared_records(log_dir: LogDir, placement: Placement, root: Directory) -> Iterator[str]:
    """Recover one staging root: what was renamed without its link gets that now, and the files go.

    Yields:
        What was done, one sentence for each file.

    Raises:
        OSError: the disk fails.
    """
    for name, is_directory in root.entries():
        if is_directory or not is_shared_records(name):
            continue
        linked, is_done = _link_where_missing(log_dir, placement, root, name)
        if is_done:
            remove_file(log_dir.disk, root, name)
            given = f"; {linked} of its replicas had no record yet, and have it now" if linked else ""
            yield f"{name} in {root.path} was left by a staging that did not finish, and is removed{given}"
        else:
            log_dir.leave_unclean = True  # without it nothing would say what they were


def _link_where_missing(log_dir: LogDir, placement: Placement, root: Directory, file: str) -> tuple[int, bool]:
    """How many staged replicas got their link, and whether none is left that should have one."""
    linked, is_done = 0, True
    for name, record in records_in(root, file).items():
        try:
            with suppress(FileNotFoundError, NotADirectoryError, LogStoreError), root.child(name) as directory:
                if _lacks(log_dir, placement, directory, name, record):
                    log_dir.disk.link(root.descriptor, file, directory.descriptor, STAGED_RECORD)
                    log_dir.disk.sync(directory.descriptor)
                    linked += 1
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            logger.warning("%s cannot get its record back: %s", root.path_of(name), error.strerror)
            is_done = False
    return linked, is_done


def _lacks(log_dir: LogDir, placement: Placement, directory: Directory, name: str, record: StagedRecord) -> bool:
    """Whether a directory is the staged replica that a record speaks of, and has none. Raises LogStoreError: it isn't.

    One that a purge has begun to empty has no topic ID any more, and is let be.
    """
    parsed = parse(name) if placement is Placement.IN_PLACE else parse_staged(name)
    if parsed.kind not in (DirectoryKind.STAGED, DirectoryKind.STRAY) or directory.holds(STAGED_RECORD):
        return False
    check_record(log_dir, directory, parsed, record)
    return topic_id_in(directory) == record.topic_id
