"""Logs each staged replica with the time from which on it may be deleted. Source: KIP516-6."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from logstore.clock import date_text
from logstore.staging.listing import Staged

logger = logging.getLogger(__name__)

_WILL_GO: Final = "will be deleted at %s"
_MAY_GO: Final = "may be purged from %s on; 'logstore purge' does it"


def log_staged(staged: Sequence[Staged], *, has_purger: bool) -> None:
    """Log replicas that were staged just now, each with its record, at WARN.

    Args:
        staged: they and their records.
        has_purger: something in this program purges what is due, so that it will be deleted.
    """
    if not logger.isEnabledFor(logging.WARNING):
        return
    records = [(each, each.record) for each in staged if each.record is not None]
    due = {moment: date_text(moment) for moment in {record.due_ms for _, record in records}}
    text = f"%s: %s (topic ID %s) is staged as %s because of %s, and {_WILL_GO if has_purger else _MAY_GO}"
    # All records come from the same source line, so it is looked up once: that takes as long as all the rest.
    file, line, function, _ = logger.findCaller()
    is_plain = logging.getLogRecordFactory() is logging.LogRecord

    def made(values: tuple[object, ...]) -> logging.LogRecord:
        return logger.makeRecord(logger.name, logging.WARNING, file, line, text, values, None, function)

    first = made(())
    for each, record in records:
        values = each.log_dir, each.partition, each.topic_id, each.location, record.verdict, due[record.due_ms]
        if is_plain:
            # The moment and the process are the same as well, and are copied.
            logged = logging.LogRecord.__new__(logging.LogRecord)
            logged.__dict__.update(first.__dict__, args=values)
        else:
            logged = made(values)
        logger.handle(logged)
