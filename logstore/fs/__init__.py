"""The only code that changes a disk: directories by descriptor, durable changes, copies, reads of small files."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from logstore.fs.batch import Batch
    from logstore.fs.checksum import SummedWriter, crc32c_of, crc32c_of_file
    from logstore.fs.copy import Progress, copy_replica
    from logstore.fs.directory import DIRECTORY_FLAGS, Directory, mount_of
    from logstore.fs.durable import (
        TEMPORARY,
        Disk,
        barrier,
        make_directory,
        publish_file,
        remove_file,
        remove_tree,
        rename_exclusively,
        replace_file,
        sync_all,
        write_new_file,
    )
    from logstore.fs.small_file import READ_FLAGS, kind_of_file, read_small_file, refusal, when_refused
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "batch": ("Batch",),
            "checksum": ("SummedWriter", "crc32c_of", "crc32c_of_file"),
            "copy": ("Progress", "copy_replica"),
            "directory": ("DIRECTORY_FLAGS", "Directory", "mount_of"),
            "durable": (
                "TEMPORARY",
                "Disk",
                "barrier",
                "make_directory",
                "publish_file",
                "remove_file",
                "remove_tree",
                "rename_exclusively",
                "replace_file",
                "sync_all",
                "write_new_file",
            ),
            "small_file": ("READ_FLAGS", "kind_of_file", "read_small_file", "refusal", "when_refused"),
        },
    )

__all__ = [
    "DIRECTORY_FLAGS",
    "READ_FLAGS",
    "TEMPORARY",
    "Batch",
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
    "publish_file",
    "read_small_file",
    "refusal",
    "remove_file",
    "remove_tree",
    "rename_exclusively",
    "replace_file",
    "sync_all",
    "when_refused",
    "write_new_file",
]
