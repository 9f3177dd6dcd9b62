"""The only code that touches a disk: directories by descriptor, durable changes, copies, small files."""

from logstore.fs.checksum import SummedWriter, crc32c_of, crc32c_of_file
from logstore.fs.copy import Progress, copy_replica
from logstore.fs.directory import DIRECTORY_FLAGS, Directory, mount_of
from logstore.fs.durable import (
    TEMPORARY,
    Disk,
    barrier,
    make_directory,
    move,
    remove_file,
    remove_tree,
    replace_file,
    sync_all,
    write_new_file,
)
from logstore.fs.small_file import PIECE, READ_FLAGS, kind_of_file, read_small_file, refusal

__all__ = [
    "DIRECTORY_FLAGS",
    "PIECE",
    "READ_FLAGS",
    "TEMPORARY",
    "Directory",
    "Disk",
    "Progress",
    "SummedWriter",
    "barrier",
    "copy_replica",
    "crc32c_of",
    "crc32c_of_file",
    "kind_of_file",
    "make_directory",
    "mount_of",
    "move",
    "read_small_file",
    "refusal",
    "remove_file",
    "remove_tree",
    "replace_file",
    "sync_all",
    "write_new_file",
]
