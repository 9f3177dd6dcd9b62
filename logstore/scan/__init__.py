"""One pass over a log dir gives its content as rows; nothing here can write."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.scan.closed import Denied, is_closed
    from logstore.scan.duplicates import LEADER_EPOCH_LIMIT, last_leader_epoch
    from logstore.scan.listing import KNOWN_FILES, Folder, Listing, NameRule, list_log_dir
    from logstore.scan.metadata_file import (
        METADATA_LIMIT,
        VanishedError,
        judge_metadata,
        read_metadata_file,
        read_topic_id,
    )
    from logstore.scan.observation import Observation
    from logstore.scan.replica import ScanOptions, replica_created_ms, scan_directories
    from logstore.scan.scanner import LiveReplica, scan, scan_all, scan_live
    from logstore.scan.startup_view import (
        METADATA_LOG,
        DirectorySeen,
        FileDamage,
        damaged_checkpoints,
        denied_files,
        look_into_directories,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "closed": ("Denied", "is_closed"),
            "duplicates": ("LEADER_EPOCH_LIMIT", "last_leader_epoch"),
            "listing": ("Folder", "KNOWN_FILES", "Listing", "NameRule", "list_log_dir"),
            "metadata_file": (
                "METADATA_LIMIT",
                "VanishedError",
                "judge_metadata",
                "read_metadata_file",
                "read_topic_id",
            ),
            "observation": ("Observation",),
            "replica": ("ScanOptions", "replica_created_ms", "scan_directories"),
            "scanner": ("LiveReplica", "scan", "scan_all", "scan_live"),
            "startup_view": (
                "DirectorySeen",
                "FileDamage",
                "METADATA_LOG",
                "damaged_checkpoints",
                "denied_files",
                "look_into_directories",
            ),
        },
    )

__all__ = [
    "KNOWN_FILES",
    "LEADER_EPOCH_LIMIT",
    "METADATA_LIMIT",
    "METADATA_LOG",
    "Denied",
    "DirectorySeen",
    "FileDamage",
    "Folder",
    "Listing",
    "LiveReplica",
    "NameRule",
    "Observation",
    "ScanOptions",
    "VanishedError",
    "damaged_checkpoints",
    "denied_files",
    "is_closed",
    "judge_metadata",
    "last_leader_epoch",
    "list_log_dir",
    "look_into_directories",
    "read_metadata_file",
    "read_topic_id",
    "replica_created_ms",
    "scan",
    "scan_all",
    "scan_directories",
    "scan_live",
]
