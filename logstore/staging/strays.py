"""Writes a record into a stray that a broker left, so that a purge may delete the stray when its delay is over.

Kafka renames strays and then forgets them (FACTS §6). The record is the only file that is added: no purge touches a
stray without one, and removing the file undoes everything. Source: DESIGN §5.
"""

from __future__ import annotations

import logging

from layout.directory_name import live_name
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.ours import STAGED_RECORD, StagedRecord, encode_record
from logstore.clock import date_text
from logstore.errors import ChangeRefusedError
from logstore.fs import replace_file
from logstore.log_dir import LogDir
from logstore.staging.listing import Staged
from logstore.staging.placement import Placement
from logstore.staging.records import restored_path

logger = logging.getLogger(__name__)


def adopt_stray(log_dir: LogDir, stray: Staged, reason: tuple[str, str], now_ms: int, delay_ms: int) -> StagedRecord:
    """Write the record of a stray, durably.

    Args:
        log_dir: of a real broker, with the stray in it.
        stray: from :func:`logstore.staging.list_staged`, without a record.
        reason: verdict of the comparison, and the sentence that explains it.
        now_ms: in ms since 1970.
        delay_ms: how long a purge must leave it alone.

    Raises:
        ChangeRefusedError: this is no stray without a record, or not the directory that was listed; or its name may be
            cut, so that its topic is not certain.
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    place = f"{log_dir.path}/{stray.name}"
    if stray.placement is not Placement.IN_PLACE or stray.record is not None:
        raise ChangeRefusedError(f"{place} is no stray that a broker left")
    if stray.partition is None:
        raise ChangeRefusedError(f"{place} cannot be given a due time, because nothing says surely what it was")
    partition, (verdict, evidence) = stray.partition, reason
    try:
        path = live_name(partition.topic, partition.partition)
    except InvalidNameError as error:
        raise ChangeRefusedError(f"{place} cannot be given a due time: {error}") from error
    who = (partition.topic, partition.partition, stray.topic_id or TopicId.ZERO)
    record = StagedRecord(*who, path, verdict, evidence, now_ms, now_ms + delay_ms)
    restored_path(log_dir, record)
    with log_dir.changing(f"{stray.location} cannot be given a record"), log_dir.root.child(stray.name) as directory:
        if directory.key[1] != stray.inode:
            raise ChangeRefusedError(f"{place} is not what it was when it was listed: list again")
        if directory.holds(STAGED_RECORD):
            raise ChangeRefusedError(f"{place} holds a {STAGED_RECORD} that is no use: look at it first")
        # Through a temporary file: half a record would be one more thing to judge.
        replace_file(log_dir.disk, directory, STAGED_RECORD, encode_record(record))
    logger.warning(
        "%s: it may be purged from %s on, because of %s; 'logstore purge' does it",
        *(place, date_text(record.due_ms), verdict),
    )
    return record
