"""Deletes for ever what is staged and due, throttled, resumable, and never anything else."""

from logstore.purge.judge_staged import Rules, weigh
from logstore.purge.purge_report import LogDirPurge, Purged, PurgeReport
from logstore.purge.purger import Purger
from logstore.purge.run import WORKERS, planned_purge, purge, purge_steps
from logstore.purge.throttle import Throttle

__all__ = [
    "WORKERS",
    "LogDirPurge",
    "PurgeReport",
    "Purged",
    "Purger",
    "Rules",
    "Throttle",
    "planned_purge",
    "purge",
    "purge_steps",
    "weigh",
]
