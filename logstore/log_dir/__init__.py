"""One disk: its lock, identity, checkpoints and open files, and how it goes offline after an I/O error."""

from logstore.log_dir.checkpoint_files import CheckpointFiles, Offsets
from logstore.log_dir.discovery import discover
from logstore.log_dir.identity import META_PROPERTIES_LIMIT, ExpectedIdentity, IdentityFound, read_identity
from logstore.log_dir.lock_holder import LOCK_FILE, LockHolder, find_lock_holder
from logstore.log_dir.log_dir import DISK_FAILURES, LogDir, open_replica_parent
from logstore.log_dir.log_dir_view import LogDirView, ReadOnlyLogDir
from logstore.log_dir.offset_checkpoints import CHECKPOINT_LIMIT, OffsetCheckpoints, read_offset_checkpoints
from logstore.log_dir.open_directories import OpenDirectories
from logstore.log_dir.open_files import FileHolder, OpenFiles, find_open_files
from logstore.log_dir.replace_files import FileChange, change_files

__all__ = [
    "CHECKPOINT_LIMIT",
    "DISK_FAILURES",
    "LOCK_FILE",
    "META_PROPERTIES_LIMIT",
    "CheckpointFiles",
    "ExpectedIdentity",
    "FileChange",
    "FileHolder",
    "IdentityFound",
    "LockHolder",
    "LogDir",
    "LogDirView",
    "OffsetCheckpoints",
    "Offsets",
    "OpenDirectories",
    "OpenFiles",
    "ReadOnlyLogDir",
    "change_files",
    "discover",
    "find_lock_holder",
    "find_open_files",
    "open_replica_parent",
    "read_identity",
    "read_offset_checkpoints",
]
