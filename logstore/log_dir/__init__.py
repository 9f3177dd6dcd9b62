"""One disk: its lock, identity, checkpoints and open files, and how it goes offline after an I/O error."""

from logstore.log_dir.checkpoint_files import CheckpointFiles, Offsets
from logstore.log_dir.discovery import discover
from logstore.log_dir.identity import META_PROPERTIES_LIMIT, ExpectedIdentity, IdentityFound, read_identity
from logstore.log_dir.lock_holder import LOCK_FILE, LockHolder, find_lock_holder
from logstore.log_dir.log_dir import DISK_FAILURES, LogDir, open_home
from logstore.log_dir.log_dir_view import LogDirView, ReadOnlyLogDir
from logstore.log_dir.offset_checkpoints import CHECKPOINT_LIMIT, OffsetCheckpoints, read_offset_checkpoints
from logstore.log_dir.open_directories import OpenDirectories
from logstore.log_dir.open_files import OpenFiles, Process, find_open_files
from logstore.log_dir.replace_files import NewBytes, put_all

__all__ = [
    "CHECKPOINT_LIMIT",
    "DISK_FAILURES",
    "LOCK_FILE",
    "META_PROPERTIES_LIMIT",
    "CheckpointFiles",
    "ExpectedIdentity",
    "IdentityFound",
    "LockHolder",
    "LogDir",
    "LogDirView",
    "NewBytes",
    "OffsetCheckpoints",
    "Offsets",
    "OpenDirectories",
    "OpenFiles",
    "Process",
    "ReadOnlyLogDir",
    "discover",
    "find_lock_holder",
    "find_open_files",
    "open_home",
    "put_all",
    "read_identity",
    "read_offset_checkpoints",
]
