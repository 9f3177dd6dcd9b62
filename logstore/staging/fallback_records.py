"""Records of staged replicas for which the log dir had no room, so that even a full disk can be cleaned.

A staged directory carries its record inside (DESIGN §5). Where not even that small file fits, the record goes to a
folder on another disk, under a name made from the log dir's path and the staged directory's name. Restore and purge
look there when a staged directory holds no record. Without that folder, nothing can be staged on a full disk.
"""

from __future__ import annotations

import hashlib
import logging

from layout.ours import STAGED_RECORD, STAGED_RECORD_LIMIT
from logstore.errors import LogStoreError
from logstore.fs import Directory, Disk, make_directory, read_small_file, remove_file, replace_file
from logstore.log_dir import LogDirView

logger = logging.getLogger(__name__)


class FallbackRecords:
    """A folder for records, on another disk than the log dirs."""

    def __init__(self, folder: str | None, disk: Disk | None = None) -> None:
        """Use an existing folder; None: there is none, and :meth:`write` refuses."""
        self.folder = folder
        self._disk = disk or Disk()

    def write(self, log_dir: LogDirView, staged: str, record: bytes) -> bool:
        """Write the record of a directory that will be renamed to ``staged``; False: there is no folder.

        Raises:
            OSError: it cannot be written.
        """
        if self.folder is None:
            return False
        with (
            Directory.open(self.folder) as top,
            make_directory(self._disk, top, _key(log_dir)) as folder,
            make_directory(self._disk, folder, staged) as own,
        ):
            replace_file(self._disk, own, STAGED_RECORD, record)
        return True

    def read(self, log_dir: LogDirView, staged: str) -> bytes | None:
        """Read the record of a staged directory; None: this folder has none.

        Raises:
            UnreadableFileError: the record is no plain file, or is too large.
        """
        if self.folder is None:
            return None
        return read_small_file(f"{self.folder}/{_key(log_dir)}/{staged}/{STAGED_RECORD}", STAGED_RECORD_LIMIT)

    def remove(self, log_dir: LogDirView, staged: str) -> None:
        """Remove the record of a directory that holds its own record now, or is gone. A missing record is no error.

        A record that cannot be removed does no harm: the record inside a directory is read first.
        """
        if self.folder is None:
            return
        try:
            with Directory.open(self.folder) as top, top.child(_key(log_dir)) as folder:
                with folder.child(staged) as own:
                    remove_file(self._disk, own, STAGED_RECORD)
                self._disk.rmdir(folder.descriptor, staged)
        except FileNotFoundError:
            return
        except (OSError, LogStoreError) as error:
            logger.warning("the record of %s/%s in %s cannot be removed: %s", log_dir.path, staged, self.folder, error)


def _key(log_dir: LogDirView) -> str:
    """Make a folder name from the path of a log dir: two log dirs of one machine never share one."""
    return hashlib.sha256(log_dir.path.encode("utf-8", "surrogateescape")).hexdigest()[:32]
