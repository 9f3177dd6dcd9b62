"""Gives a stray that a broker left a record, so that a purge may delete the stray when its delay is over.

Kafka renames strays and then forgets them (FACTS §6). Nothing but a line of the ledger is added: no purge touches a
stray without one, and :func:`forget_stray` undoes everything. Source: DESIGN §5.
"""

from __future__ import annotations

import logging

from layout.directory_name import live_name
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE
from logstore.clock import date_text
from logstore.errors import ChangeRefusedError
from logstore.log_dir import FallbackRecords, LogDir
from logstore.staging.listing import Staged
from logstore.staging.placement import Placement
from logstore.staging.records import restored_path
from logstore.staging.root_ledger import RootLedger, note_event

logger = logging.getLogger(__name__)


def adopt_stray(log_dir: LogDir, stray: Staged, reason: tuple[str, str], now_ms: int, delay_ms: int) -> StagedRecord:
    """Write a stray into the ledger of its log dir, durably.

    Args:
        log_dir: with the stray in it.
        stray: from :func:`logstore.staging.list_staged`, without a record.
        reason: verdict of the comparison, and the sentence that explains it.
        now_ms: in ms since 1970.
        delay_ms: how long a purge must leave it alone.

    Raises:
        ChangeRefusedError: this is no stray without a record, or not the directory that was listed; or its name may be
            cut, so that its topic is not certain; or a line speaks of it already, or the ledger cannot be used.
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
    with log_dir.changing(f"{stray.location} cannot be given a record"):
        _check_same(log_dir, stray)
        ledger = log_dir.ledgers.of(log_dir.root)
        said = ledger.ledger.entries.get(stray.name)
        if said is not None and said.event is not LedgerEvent.RESTORED:
            raise ChangeRefusedError(f"{place} has a line in {LEDGER_FILE} already: list what is staged")
        ledger.stage({stray.name: record})
    logger.warning(
        "%s: it may be purged from %s on, because of %s; 'logstore purge' does it",
        *(place, date_text(record.due_ms), verdict),
    )
    return record


def forget_stray(log_dir: LogDir, stray: Staged, *, fallback: FallbackRecords | None = None) -> None:
    """Take the record of a stray back, durably, so that no purge touches it.

    Args:
        log_dir: with the stray in it.
        stray: from :func:`logstore.staging.list_staged`.
        fallback: the fallback records, where its line may be.

    Raises:
        ChangeRefusedError: it is no stray with a record, or not the directory that was listed; its line is in no ledger
            that was given; or a purge may have emptied it in part.
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    if stray.placement is not Placement.IN_PLACE or stray.record is None:
        raise ChangeRefusedError(f"{stray.location} is no stray with a record")
    if stray.may_be_partly_purged:
        raise ChangeRefusedError(
            f"{stray.location} keeps its due time: a purge may have emptied it in part, so it can only be purged"
        )
    with log_dir.changing(f"{stray.location} cannot be left as it was"):
        _check_same(log_dir, stray)
        fallback = fallback or FallbackRecords(None)
        if stray.name not in RootLedger(log_dir, log_dir.root, fallback):
            raise ChangeRefusedError(
                f"{stray.location} keeps its due time: its line is not in {log_dir.path}/{LEDGER_FILE}; name the folder"
                " for spare records with which it was staged"
            )
        note_event(log_dir, log_dir.root, fallback, LedgerEvent.RESTORED, [stray.name], durable=True)
    logger.info("%s: %s has no due time any more", log_dir.path, stray.location)


def _check_same(log_dir: LogDir, stray: Staged) -> None:
    status = log_dir.root.status(stray.name)
    if status is None or status.st_ino != stray.inode:
        raise ChangeRefusedError(f"{log_dir.path}/{stray.name} is not what it was when it was listed: list again")
