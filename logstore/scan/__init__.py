"""One pass over a log dir: what lies there, as rows. Cannot write."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.scan.duplicates import LEADER_EPOCH_LIMIT
    from logstore.scan.entries import KNOWN_FILES, Folder, Listing, NameRule, list_log_dir
    from logstore.scan.observation import Observation
    from logstore.scan.partition_files import (
        METADATA_LOG,
        DirectorySeen,
        FileDamage,
        damaged_checkpoints,
        look_into_directories,
    )
    from logstore.scan.replica_dir import ScanOptions, scan_directories
    from logstore.scan.replica_id import METADATA_LIMIT, read_topic_id
    from logstore.scan.scanner import scan, scan_all
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "duplicates": ("LEADER_EPOCH_LIMIT",),
            "entries": ("Folder", "KNOWN_FILES", "Listing", "NameRule", "list_log_dir"),
            "observation": ("Observation",),
            "partition_files": (
                "DirectorySeen",
                "FileDamage",
                "METADATA_LOG",
                "damaged_checkpoints",
                "look_into_directories",
            ),
            "replica_dir": ("ScanOptions", "scan_directories"),
            "replica_id": ("METADATA_LIMIT", "read_topic_id"),
            "scanner": ("scan", "scan_all"),
        },
    )

__all__ = [
    "KNOWN_FILES",
    "LEADER_EPOCH_LIMIT",
    "METADATA_LIMIT",
    "METADATA_LOG",
    "DirectorySeen",
    "FileDamage",
    "Folder",
    "Listing",
    "NameRule",
    "Observation",
    "ScanOptions",
    "damaged_checkpoints",
    "list_log_dir",
    "look_into_directories",
    "read_topic_id",
    "scan",
    "scan_all",
    "scan_directories",
]
