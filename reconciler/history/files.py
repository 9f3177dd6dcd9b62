"""The files of a history or a report, which lie in a folder of this machine or at a URI in a store."""

from __future__ import annotations

import os

import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from logstore.rows import is_uri, open_uri, store_sentences


def locate(path: str) -> tuple[FileSystem, str]:
    """Return the file system of a path or a URI, and its path there.

    Raises:
        InventoryStoreError: the URI is not well formed, or its store cannot be reached.
    """
    return open_uri(path) if is_uri(path) else (LocalFileSystem(), os.path.abspath(path))


def is_there(path: str) -> bool:
    """Whether a file or a folder is at a path or a URI.

    Raises:
        InventoryStoreError: the store cannot be reached, or refuses.
    """
    return _kind(path) != FileType.NotFound if is_uri(path) else os.path.exists(path)


def is_folder(path: str) -> bool:
    """Whether a folder is at a path or a URI.

    Raises:
        InventoryStoreError: the store cannot be reached, or refuses.
    """
    return _kind(path) == FileType.Directory if is_uri(path) else os.path.isdir(path)


def _kind(uri: str) -> FileType:
    with store_sentences(uri):
        system, path = open_uri(uri)
        return system.get_file_info(path).type


def names_in(folder: str) -> list[str]:
    """List the names in a folder; none where it is not there.

    Raises:
        OSError: it cannot be listed.
        InventoryStoreError: the store cannot be reached, or refuses.
    """
    if is_uri(folder):
        with store_sentences(folder):
            system, path = open_uri(folder)
            try:
                found = system.get_file_info(FileSelector(path))
            except FileNotFoundError:  # unlike a bucket that is not there
                return []
            return [each.base_name for each in found]
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def first_bytes(path: str, most: int | None = None) -> bytes:
    """Read the beginning of a file; None: all of it.

    Raises:
        OSError: it cannot be read.
        InventoryStoreError: the store cannot be reached, or has no such file.
    """
    if is_uri(path):
        with store_sentences(path):
            system, place = open_uri(path)
            with system.open_input_stream(place, compression=None) as stream:
                data: bytes = stream.read(most)
                return data
    with open(path, "rb") as file:
        return file.read(most)


def open_parquet(path: str) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        OSError, pyarrow.ArrowException: it cannot be read.
    """
    system, place = locate(path)
    return pq.ParquetFile(place, filesystem=system)
