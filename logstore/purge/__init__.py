"""Deletes for ever what is staged and due, and nothing else; throttled and resumable."""

from logstore.purge.background import Purger
from logstore.purge.eligibility import PurgeRules, measure_removal
from logstore.purge.report import LogDirPurge, Purged, PurgeReport
from logstore.purge.run import planned_purge, purge, purge_steps
from logstore.purge.throttle import Throttle
from logstore.tunables import PURGE_WORKERS

__all__ = [
    "PURGE_WORKERS",
    "LogDirPurge",
    "PurgeReport",
    "PurgeRules",
    "Purged",
    "Purger",
    "Throttle",
    "measure_removal",
    "planned_purge",
    "purge",
    "purge_steps",
]
