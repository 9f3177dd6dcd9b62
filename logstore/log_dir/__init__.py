"""One log dir on its disk: lock, identity, checkpoints, ledgers, open files, and going offline after an I/O error."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.log_dir.batch import FileChange, change_files
    from logstore.log_dir.beside import StagingBeside
    from logstore.log_dir.checkpoints import (
        CHECKPOINT_LIMIT,
        CheckpointFiles,
        OffsetCheckpoints,
        Offsets,
        read_offset_checkpoints,
    )
    from logstore.log_dir.fallback_records import FallbackRecords
    from logstore.log_dir.identity import (
        META_PROPERTIES_LIMIT,
        ExpectedIdentity,
        IdentityFound,
        discover,
        read_identity,
    )
    from logstore.log_dir.ledger import NO_SPACE, LedgerFile, Ledgers, read_ledger
    from logstore.log_dir.lock import LOCK_FILE, LockHolder, find_lock_holder
    from logstore.log_dir.log_dir import DISK_FAILURES, LogDir, open_replica_parent
    from logstore.log_dir.open_files import FileHolder, OpenFiles, UnseenProcess, find_open_files
    from logstore.log_dir.read_only import LogDirView, ReadOnlyLogDir
    from logstore.log_dir.staging_lock import StagingLock
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "batch": ("FileChange", "change_files"),
            "beside": ("StagingBeside",),
            "checkpoints": (
                "CHECKPOINT_LIMIT",
                "CheckpointFiles",
                "OffsetCheckpoints",
                "Offsets",
                "read_offset_checkpoints",
            ),
            "fallback_records": ("FallbackRecords",),
            "identity": ("META_PROPERTIES_LIMIT", "ExpectedIdentity", "IdentityFound", "discover", "read_identity"),
            "ledger": ("NO_SPACE", "LedgerFile", "Ledgers", "read_ledger"),
            "lock": ("LOCK_FILE", "LockHolder", "find_lock_holder"),
            "log_dir": ("DISK_FAILURES", "LogDir", "open_replica_parent"),
            "open_files": ("FileHolder", "OpenFiles", "UnseenProcess", "find_open_files"),
            "read_only": ("LogDirView", "ReadOnlyLogDir"),
            "staging_lock": ("StagingLock",),
        },
    )

__all__ = [
    "CHECKPOINT_LIMIT",
    "DISK_FAILURES",
    "LOCK_FILE",
    "META_PROPERTIES_LIMIT",
    "NO_SPACE",
    "CheckpointFiles",
    "ExpectedIdentity",
    "FallbackRecords",
    "FileChange",
    "FileHolder",
    "IdentityFound",
    "LedgerFile",
    "Ledgers",
    "LockHolder",
    "LogDir",
    "LogDirView",
    "OffsetCheckpoints",
    "Offsets",
    "OpenFiles",
    "ReadOnlyLogDir",
    "StagingBeside",
    "StagingLock",
    "UnseenProcess",
    "change_files",
    "discover",
    "find_lock_holder",
    "find_open_files",
    "open_replica_parent",
    "read_identity",
    "read_ledger",
    "read_offset_checkpoints",
]
