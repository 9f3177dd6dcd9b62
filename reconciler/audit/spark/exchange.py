"""Files that the driver and the executors of an audit hand to each other.

Where both see one folder, a file lies there once. Where they share none, files go through a store that both reach: the
driver puts there what executors read, and fetches what they wrote. It reaches the store by Arrow; Spark does by its own
connector, such as ``s3a``, with its own settings and credentials.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import unquote

from pyarrow.fs import LocalFileSystem

from logstore import InventoryStoreError
from logstore.rows import fetch, join_uri, list_uri, put, remove_uri
from reconciler.errors import UsageError

logger = logging.getLogger(__name__)

_BELOW = "_exchange-"
"""How the folder of an exchange in a store begins, as Spark's own files do that no reader of a folder counts."""

_GLOB = re.compile(r"[\\*?\[\]{}]")


class Exchange:
    """A folder of the driver, and its counterpart in a store; without one, executors see the folder itself."""

    def __init__(self, folder: str, store: str | None = None, stored: Mapping[str, str] | None = None) -> None:
        """Take the folder, which is there.

        Args:
            folder: for files of the driver, on this machine.
            store: a URI without a query, below which nothing lies; None: all executors see the folder.
            stored: files of the driver that executors read at a URI where they lie already.
        """
        self.folder = folder
        self._store = store
        self._stored = dict(stored or {})

    def give(self, path: str) -> str:
        """Return what Spark reads in the place of a file of the driver, or of a folder of files, as it takes it.

        Raises:
            InventoryStoreError: it cannot be put into the store.
        """
        if self._store is None:
            return escape_glob(path)
        if path not in self._stored:
            target = join_uri(self._store, f"{uuid.uuid4().hex}-{os.path.basename(path)}")
            if os.path.isdir(path):
                for name in os.listdir(path):
                    put(os.path.join(path, name), join_uri(target, name))
            else:
                put(path, target)
            self._stored[path] = target
        return escape_glob(path_in_spark(self._stored[path]))

    def target(self, path: str) -> str:
        """Return where Spark writes a folder of files that the driver will have at ``path``."""
        if self._store is None:
            return path
        self._stored[path] = join_uri(self._store, f"{uuid.uuid4().hex}-{os.path.basename(path)}")
        return path_in_spark(self._stored[path])

    def take(self, path: str) -> None:
        """Bring to ``path`` what Spark wrote to its target, in the place of what lay there.

        Raises:
            InventoryStoreError: it cannot be fetched.
        """
        if self._store is None:
            return
        clear_folder(path)
        # Forgotten, because the driver may add files to the folder, and executors are to read these as well.
        for each in list_uri(self._stored.pop(path)) or ():
            if not each.name.startswith(("_", ".")):  # Spark's own marks
                fetch(each.uri, os.path.join(path, each.name))


@contextmanager
def open_exchange(folder: str, store: str | None, stored: Mapping[str, str] | None) -> Iterator[Exchange]:
    """Provide an exchange in a folder, and for a ``store`` below that URI, where nothing of it stays.

    What could not be removed is logged.
    """
    if store is None:
        yield Exchange(folder)
        return
    below = join_uri(store, f"{_BELOW}{uuid.uuid4().hex}")
    try:
        yield Exchange(folder, below, stored)
    finally:
        try:
            remove_uri(below)
        except InventoryStoreError as error:
            logger.warning("%s is of no use any more, and was not removed: %s", below, error)


def left_exchanges(names: Iterable[str]) -> list[str]:
    """List the exchanges to which files belong, by their names below the URI of a report.

    An audit that is killed leaves its own, and one that runs has one.
    """
    return sorted({name.partition("/")[0] for name in names if name.startswith(_BELOW)})


def check_store(store: str | None, trees: Sequence[str]) -> None:
    """Check that an audit of trees and inventories can hand its files over by a store; None: it needs none.

    Raises:
        UsageError: there are trees, or the URI has a query, which says how Arrow reaches a store, and nothing to Spark.
    """
    if store is None:
        return
    if trees:
        raise UsageError(
            f"executors that list log dirs, such as {trees[0]}, write into a folder that they and this machine see: "
            "name one with --report, or scan them into the store first, and audit their inventories"
        )
    if "?" in store:
        raise UsageError(
            f"{store} has a query, of which Spark knows nothing: leave it out, name the endpoint to this machine in "
            "the environment (AWS_ENDPOINT_URL), and to Spark in its settings (spark.hadoop.fs.s3a.endpoint)"
        )


def path_in_spark(uri: str) -> str:
    """Write a URI without a query as Hadoop has it, where nothing is quoted."""
    return unquote(uri)


def clear_folder(path: str) -> None:
    """Make a folder for files of an audit, in the place of what lay there."""
    files = LocalFileSystem()
    if os.path.isdir(path) and not os.path.islink(path):
        files.delete_dir(path)
    elif os.path.lexists(path):
        files.delete_file(path)
    files.create_dir(path)


def escape_glob(path: str) -> str:
    """Escape the path of a file for Spark, which would expand a path that looks like a glob."""
    return _GLOB.sub(r"\\\g<0>", path)
